//! The command `fanfold`.

mod args;
mod batch_api;
mod check;
mod counters;
mod failure;
mod guard;
mod job;
mod log;
mod rows;
mod run;
mod serve;
mod stack;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start(cli.verbose);
    let result = match cli.command {
        Command::Run(args) => run::run(args).await,
        Command::Serve(args) => serve::serve(args).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("fanfold: {failure}");
            failure.exit()
        }
    }
}
