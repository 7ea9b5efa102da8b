//! Batch APIs of the local runner: HTTP endpoints and commands.

mod command;
mod group;
mod program;
mod reach;
mod said;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use fanfold::policy::Handler;
use fanfold_handle::api::{BatchApi, Call, Calling};
use fanfold_handle::http::HttpApi;

use crate::failure::Failure;
use command::CommandApi;

pub(crate) use reach::check;
pub(crate) use server::Process;

/// Calls a URL or runs a command, as the policy says.
#[derive(Debug)]
struct EitherApi {
    http: HttpApi,
    command: CommandApi,
}

/// The batch APIs of policies; commands are run in `folder`.
pub(crate) fn local(folder: PathBuf) -> Result<Arc<dyn BatchApi>, Failure> {
    let http = HttpApi::new().map_err(|error| Failure::Tls(error.to_string()))?;
    Ok(Arc::new(EitherApi { http, command: CommandApi::new(folder) }))
}

impl BatchApi for EitherApi {
    fn call<'a>(&'a self, handler: &'a Handler, key: &'a str, call: &'a Call) -> Calling<'a> {
        match &handler.command {
            Some(command) => Box::pin(self.command.run(command, handler.timeout.0, key, call)),
            None => self.http.call(handler, key, call),
        }
    }
}
