//! `fanfold-mcp`: a server of the Model Context Protocol over standard input and output. Its tools are commands of `fanfold`, so they
//! find the stack, sign their requests and report errors as these do. `fanfold mcp` starts it.

mod command;
mod server;
mod tool;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rmcp::ServiceExt;

use crate::command::Command;
use crate::server::Server;

/// Offers a stack to assistants, by the Model Context Protocol over standard input and output.
#[derive(Debug, Parser)]
#[command(name = "fanfold-mcp", version)]
struct Args {
    /// Also offer what changes something: pause, resume, drain, cancel, reissue, reset, redrive, tasks cancel.
    #[arg(long)]
    allow_actions: bool,
    /// The command `fanfold`.
    #[arg(long, value_name = "PROGRAM", env = "FANFOLD", default_value = "fanfold")]
    fanfold: PathBuf,
    /// Options of the command that say which stack: --endpoint, --stack, --profile, --region, --no-sign.
    #[arg(last = true, value_name = "OPTIONS")]
    connection: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { allow_actions, fanfold, connection } = Args::parse();
    let server = Server::new(Command { program: fanfold, connection }, allow_actions);
    match serve(server).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fanfold-mcp: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until standard input ends.
async fn serve(server: Server) -> Result<(), Box<dyn std::error::Error>> {
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
