//! Batch APIs of the local runner: what every stack can call, and programs of this machine.

mod command;
mod needs;
mod process_group;
mod program;
mod reach;
mod said;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use fanfold_batch_api::{Caller, Callers};

pub(crate) use command::{Input, LocalPrograms};
pub(crate) use reach::{Reached, check};
pub(crate) use server::Process;

/// The batch APIs of policies; programs are run in `folder`.
pub(crate) fn local(folder: PathBuf) -> Arc<dyn Caller> {
    Arc::new(Callers::local(|name| std::env::var(name).ok()).with_programs(Arc::new(LocalPrograms::new(folder))))
}
