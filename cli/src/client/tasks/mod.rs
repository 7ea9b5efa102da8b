//! `fanfold tasks`.

mod cancel;
mod get;
mod register;
mod rows;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Tasks: registers, shows and cancels them.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Register(register::RegisterArgs),
    Get(get::GetTasksArgs),
    Cancel(cancel::CancelTasksArgs),
}

pub(super) async fn run(args: TasksArgs) -> Result<ExitCode, Failure> {
    match args.what {
        What::Register(args) => register::run(args).await,
        What::Get(args) => get::run(args).await,
        What::Cancel(args) => cancel::run(args).await,
    }
}
