//! The command `fanfold`.

mod args;
mod batch_api;
mod check;
mod client;
mod completions;
mod count;
mod counters;
mod failure;
mod fault;
mod folder;
mod guard;
mod init;
mod job;
mod latencies;
mod log;
mod mcp;
mod pages;
mod plan;
mod policies;
mod prometheus;
mod rows;
mod run;
mod sandbox;
mod say;
mod serve;
mod sources;
mod stack;
mod stop;
mod sweeping;
mod up;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::args::{Cli, Command};
use crate::say::say;

/// The embedded database allocates much and in small pieces, which the system's allocator spends a third of a run on.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start(cli.verbose, matches!(cli.command, Command::Run(_)));
    let result = match cli.command {
        Command::Run(args) => run::run(args, cli.verbose > 0).await,
        Command::Up(args) => up::up(args).await.map(|()| ExitCode::SUCCESS),
        Command::Sandbox(args) => sandbox::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Init(args) => init::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Plan(args) => plan::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Mcp(args) => mcp::run(&args),
        Command::Completions(args) => completions::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Client(command) => client::run(command).await,
    };
    match result {
        Ok(status) => status,
        Err(failure) => {
            say(format_args!("fanfold: {failure}"));
            failure.exit()
        }
    }
}
