//! `fanfold tasks …`.

mod cancel;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Commands for tasks.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    what: Tasks,
}

#[derive(Debug, Subcommand)]
enum Tasks {
    Cancel(cancel::CancelArgs),
}

pub(super) async fn run(args: TasksArgs) -> Result<ExitCode, Failure> {
    match args.what {
        Tasks::Cancel(args) => cancel::run(args).await,
    }
}
