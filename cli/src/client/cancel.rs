//! `fanfold cancel`.

use std::process::ExitCode;

use clap::Args;
use uuid::Uuid;

use super::connection::Connection;
use super::{fanout_id, view};
use crate::failure::Failure;

/// Cancels a fan-out: no more calls begin for it.
///
/// Calls in progress run to their end, and their outcomes count; all other items
/// that are not done count as missing. `fanfold wait` waits until nothing is in
/// progress. Cancelling again does no harm. The exit status is
///
///   0   the fan-out is cancelled
///   1   it has completed, failed or expired, or the stack cannot be reached
///   2   there is no such fan-out
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CancelArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: CancelArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let fanout = stack.api.cancel(args.fanout).await.map_err(|error| stack.failed(error))?;
    stack.print(|| fanout.raw.clone(), || view::text(&fanout))?;
    Ok(ExitCode::SUCCESS)
}
