//! The server of the protocol.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};

use crate::command::Command;
use crate::tool::Spec;
use crate::tools::TOOLS;

/// What assistants read first.
const INSTRUCTIONS: &str = "Fanfold groups tasks into batches per target, calls batch APIs, and tracks fan-outs: sets of items that are \
                            pending until they are acked. Begin with check_stack. Ids of items are ids of tasks; a task names its batch.";

/// Serves the tools.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    command: Command,
    actions: bool,
}

impl Server {
    /// With actions, or only with what reads.
    pub(crate) fn new(command: Command, actions: bool) -> Self {
        Self { command, actions }
    }

    fn offered(&self) -> impl Iterator<Item = &'static Spec> {
        let actions = self.actions;
        TOOLS.iter().filter(move |spec| actions || !spec.action)
    }

    async fn call(&self, spec: &Spec, given: &JsonObject) -> CallToolResult {
        let run = async {
            let arguments = spec.arguments(given).map_err(|error| error.to_string())?;
            self.command.run(&arguments, spec.time).await.map_err(|error| error.to_string())
        };
        match run.await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("fanfold", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<Tool> = self.offered().map(Spec::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(spec) = self.offered().find(|spec| spec.name == request.name) else {
            let names: Vec<&str> = self.offered().map(|spec| spec.name).collect();
            let problem = format!("there is no tool `{}`; there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(problem, None));
        };
        Ok(self.call(spec, &request.arguments.unwrap_or_default()).await.into())
    }
}
