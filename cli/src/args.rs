//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::client::ClientCommand;
use crate::completions::CompletionsArgs;
use crate::init::InitArgs;
use crate::mcp::McpArgs;
use crate::plan::PlanArgs;
use crate::sandbox::SandboxArgs;

/// Fans work out and folds it back: groups tasks by target into batches, calls your batch API with each batch as a whole, and
/// reports exactly when the last task is done.
#[derive(Debug, Parser)]
#[command(name = "fanfold", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log to standard error: -v logs events, -vv logs details. RUST_LOG sets levels per module.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Run(RunArgs),
    Up(UpArgs),
    Sandbox(SandboxArgs),
    Plan(PlanArgs),
    #[command(flatten)]
    Client(ClientCommand),
    Mcp(McpArgs),
    Completions(CompletionsArgs),
}

/// Handles every row of a folder's CSV or NDJSON file as a task, and waits for the last one.
///
/// The folder holds
///
///   policy.yaml   how tasks are grouped, paced and called
///
///   *.csv, *.ndjson or *.jsonl   the tasks: each row or line is the `content` of one
///
///   run.yaml   optional: `start` is a command that serves the batch API on the port in the variable
///              PORT; ${PORT} in `start` and in policy.yaml stands for the same port. `start_timeout`
///              (60s) is how long the command may take to open it. `input` names the file of tasks if
///              there are several.
///
/// The command checks everything before it registers the first task. The exit status is
///
///   0     every task succeeded, or is a duplicate: another task has its key
///   1     another error, such as a full disk, or a batch API that ended
///   2     something in the folder or on the command line cannot be used
///   3     some tasks failed (the summary lists them), --fail-fast stopped the run, or its fan-out was
///         cancelled, failed or expired: tasks not done by then are counted as `missing` and are
///         not called any more
///   130   Ctrl-C stopped the run (143: SIGTERM did; 129: SIGHUP, as when a terminal is closed)
///
/// After Ctrl-C, calls in progress come to their end, for which the policy's `timeout` gives them time;
/// a second Ctrl-C ends them at once. After SIGTERM and SIGHUP they have 15 seconds. A call that is cut
/// off is made again when the run is resumed.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Keep all state in this folder, which belongs to this run. After a stop, even by `kill -9`, the same
    /// command resumes the run; if the run is finished, it only shows the summary again. Another run needs
    /// another folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// With --data: start a new run of the same file if the last one is finished.
    #[arg(long, requires = "data")]
    pub(crate) again: bool,
    /// The file of tasks, if the folder has several: a path from the working directory on. A run that is
    /// resumed keeps its file if that is in the folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Handle only the first N tasks of the file.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<u64>,
    /// Stop when N tasks have failed: take no more rows, begin no more calls, and let those in progress
    /// end (Ctrl-C ends them at once). With --data, the same command resumes the run; tasks that failed
    /// before that do not count. Not with --listen, since tasks of others could fail.
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "listen")]
    pub(crate) fail_fast: Option<u64>,
    /// Print only one JSON document, at the end, and show no progress. A run that ends without a summary
    /// prints none.
    #[arg(long)]
    pub(crate) json: bool,
    /// Only check the folder and the batch API: whether the commands can be executed, and whether it answers.
    /// With --json it prints {"tasks": …, "reached": …} if there are no problems.
    #[arg(long)]
    pub(crate) check: bool,
    /// Also serve the HTTP API during the run, at this HOST:PORT. Without it, only the dashboard is served, at
    /// a free port, if the run shows its progress in a terminal.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// Parses a number of tasks.
fn at_least_one(text: &str) -> Result<u64, String> {
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a whole number from 1 on is expected".to_owned())
}

/// Runs a whole stack on this machine and serves its HTTP API until Ctrl-C, SIGTERM or SIGHUP.
///
/// After Ctrl-C, calls in progress come to their end; a second one ends them at once. After the other
/// signals they have 15 seconds.
///
/// It is the API that is deployed, but without authentication: do not expose it. Example:
///
///   curl --json '{"items": 3, "seal": true}' localhost:8080/fanouts
///
/// With --json it prints {"url": …, "dashboard": …} to standard output.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct UpArgs {
    /// Where to listen: HOST:PORT.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Keep all state in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A file of policies to store at the start; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// Print the addresses of the HTTP API and the dashboard as one JSON document, once they are served.
    #[arg(long)]
    pub(crate) json: bool,
}
