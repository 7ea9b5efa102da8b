//! `fanfold mcp`, which another program does: most users of the command need none of what it is made of.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::failure::Failure;
use crate::fault::Fault;

/// The program.
const PROGRAM: &str = "fanfold-mcp";

/// Offers a stack to assistants, by the Model Context Protocol.
///
///   fanfold mcp                                    the stack that `fanfold up` runs, to read only
///   fanfold mcp --allow-actions -- --stack shop    a deployed stack, with actions
///
/// It communicates over standard input and output, as assistants expect of such
/// servers. The options after `--` say which stack, as for all clients of a stack.
/// It needs the program fanfold-mcp, beside this one or on the PATH. The archives
/// of a release have it; from the sources, `cargo install --locked --path mcp`
/// installs it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct McpArgs {
    /// Also offer what changes something: pause, resume, drain, cancel, reissue, reset, redrive, tasks cancel.
    #[arg(long)]
    allow_actions: bool,
    /// Options that say which stack: --endpoint, --stack, --profile, --region, --no-sign.
    #[arg(last = true, value_name = "OPTIONS")]
    connection: Vec<String>,
}

/// Runs the program to its end.
pub(crate) fn run(args: &McpArgs) -> Result<ExitCode, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::io("this program", error))?;
    let beside = own.with_file_name(PROGRAM);
    let program = if beside.is_file() { beside } else { PathBuf::from(PROGRAM) };
    let mut command = Command::new(program);
    command.env("FANFOLD", own).args(args.allow_actions.then_some("--allow-actions"));
    if !args.connection.is_empty() {
        command.arg("--").args(&args.connection);
    }
    let status = command.status().map_err(|error| {
        let problem = format_args!(
            "cannot be run: {error}; put it beside `fanfold`: the archives of a release have it, and from the sources \
             `cargo install --locked --path mcp` installs it"
        );
        Fault::new(PROGRAM, problem)
    })?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
