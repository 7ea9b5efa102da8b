//! Batch APIs of the local runner: HTTP endpoints and commands.

mod command;
mod process_group;
mod program;
mod reach;
mod said;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use fanfold::policy::{BatchApi, Way};
use fanfold_handle::api::{Call, Caller, Calling};
use fanfold_handle::http::HttpCaller;

use crate::failure::Failure;
use command::CommandCaller;

pub(crate) use reach::check;
pub(crate) use server::Process;

/// Calls a URL or runs a command, as the policy says.
#[derive(Debug)]
struct LocalCaller {
    http: HttpCaller,
    command: CommandCaller,
}

/// The batch APIs of policies; commands are run in `folder`.
pub(crate) fn local(folder: PathBuf) -> Result<Arc<dyn Caller>, Failure> {
    let http = HttpCaller::new().map_err(|error| Failure::Tls(error.to_string()))?;
    Ok(Arc::new(LocalCaller { http, command: CommandCaller::new(folder) }))
}

impl Caller for LocalCaller {
    fn call<'a>(&'a self, batch_api: &'a BatchApi, key: &'a str, call: &'a Call) -> Calling<'a> {
        match &batch_api.way {
            Way::Command(command) => Box::pin(self.command.run(command, batch_api.timeout.0, key, call)),
            Way::Url(_) => self.http.call(batch_api, key, call),
        }
    }
}
