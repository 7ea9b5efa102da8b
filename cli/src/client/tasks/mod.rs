//! `fanfold tasks`.

mod register;
mod rows;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Tasks: registers them.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Register(register::RegisterArgs),
}

pub(super) async fn run(args: TasksArgs) -> Result<ExitCode, Failure> {
    match args.what {
        What::Register(args) => register::run(args).await,
    }
}
