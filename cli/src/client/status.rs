//! `fanfold status`.

use std::process::ExitCode;

use clap::Args;
use uuid::Uuid;

use super::connection::Connection;
use super::watch::watch;
use super::{fanout_id, view};
use crate::failure::Failure;

/// Shows a fan-out's state and counts.
///
/// With --watch it shows on standard error how they change, until the fan-out has
/// ended. The exit status is 0, whatever the fan-out's state is; 2 if there is no
/// such fan-out; 1 if the stack cannot be reached.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct StatusArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// Also count in groups that have not ended: exact in most cases, but reads each of them.
    #[arg(long)]
    exact: bool,
    /// Follow it until it has ended.
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: StatusArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let api = &stack.api;
    let answer = match (args.watch, args.exact) {
        (true, exact) => watch(&stack, args.fanout, exact, !stack.json()).await,
        (false, true) => api.get_exact(args.fanout).await,
        (false, false) => api.get(args.fanout).await,
    };
    let fanout = answer.map_err(|error| stack.failed(error))?;
    stack.print(|| fanout.raw.clone(), || view::text(&fanout))?;
    Ok(ExitCode::SUCCESS)
}
