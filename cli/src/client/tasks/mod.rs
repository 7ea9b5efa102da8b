//! `fanfold tasks`.

mod cancel;
mod register;
mod reset;
mod rows;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Tasks: registers, cancels and resets them.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Register(register::RegisterArgs),
    Cancel(cancel::CancelTasksArgs),
    Reset(reset::ResetTasksArgs),
}

pub(super) async fn run(args: TasksArgs) -> Result<ExitCode, Failure> {
    match args.what {
        What::Register(args) => register::run(args).await,
        What::Cancel(args) => cancel::run(args).await,
        What::Reset(args) => reset::run(args).await,
    }
}
