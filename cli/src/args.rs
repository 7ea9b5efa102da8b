//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::client::Ask;

/// Fans work out and folds it back: groups tasks by target into batches, calls your batch API once per batch, and knows
/// exactly when the last one is done.
#[derive(Debug, Parser)]
#[command(name = "fanfold", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log to standard error: -v for events, -vv for details. RUST_LOG sets levels per module.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Serve(ServeArgs),
    #[command(flatten)]
    Ask(Ask),
}

/// Handles every row of a folder's CSV or NDJSON file as a task, and waits for the last one.
///
/// The folder holds
///
///   policy.yaml   how tasks are targeted, grouped, paced and handled
///
///   *.csv, *.ndjson or *.jsonl   the tasks: the row or object is a task's `content`
///
///   run.yaml   optional: `start` is a command that serves the batch API on the port in PORT, and
///              ${PORT} in policy.yaml is replaced by the same port. `start_timeout` (60s) is how long
///              it may take to open that port. `input` names the file of tasks if there are several.
///
/// Everything is checked before the first task is registered. The exit status is
///
///   0     every task succeeded (or was dropped because another has its key)
///   1     something broke: a disk that is full, a batch API that ended
///   2     something in the folder or on the command line cannot be used
///   3     some tasks failed (the summary lists them), or --fail-fast stopped the run
///   130   it was stopped by Ctrl-C (143: by SIGTERM)
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RunArgs {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Keep all state in this folder, which belongs to this run. A run that was ended, however harshly,
    /// goes on when it is started again with the same folder; one that is finished only shows its summary
    /// again. Another run needs another folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// With --data: start a new run of the same file even if the last one is finished.
    #[arg(long, requires = "data")]
    pub(crate) again: bool,
    /// The file of tasks, if the folder has several.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Only the first N tasks of the file.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Stop once N tasks have failed: no more rows are taken, no more calls are begun, and those in
    /// progress end. With --data, starting it again goes on where it stopped.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) fail_fast: Option<u64>,
    /// Print one JSON document at the end and nothing else on standard output; no progress.
    #[arg(long)]
    pub(crate) json: bool,
    /// Check the folder and the batch API (whether its commands can be executed, whether it answers),
    /// and stop there.
    #[arg(long)]
    pub(crate) check: bool,
    /// Serve the HTTP API meanwhile, at this HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// Runs a whole stack on this machine and serves its HTTP API until Ctrl-C or SIGTERM.
///
/// The API is the one that is deployed, without authentication: keep it on this machine. Example:
///
///   curl --json '{"items": 3, "seal": true}' localhost:8080/fanouts
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// Where to listen: HOST:PORT.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: String,
    /// Keep all state in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A file of policies to start with; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
}
