//! `fanfold cancel`.

use std::process::ExitCode;

use clap::Args;
use uuid::Uuid;

use super::connection::Connection;
use super::{fanout_id, view};
use crate::failure::Failure;

/// Cancels a fan-out: nothing of it is begun any more.
///
/// Calls that were begun end, and are counted; everything else that is not done is missing.
/// `fanfold wait` waits until nothing of it is in progress. Cancelling it again does no harm.
/// The exit status is
///
///   0   it is cancelled
///   1   it completed, failed or expired before, or the stack does not answer
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
