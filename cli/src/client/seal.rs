//! `fanfold seal`.

use std::process::ExitCode;

use clap::Args;
use uuid::Uuid;

use super::connection::Connection;
use super::{fanout_id, view};
use crate::failure::Failure;

/// Seals a fan-out: no more items can be added, and it completes when all are done.
///
/// Sealing again does no harm.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SealArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: SealArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let fanout = stack.api.seal(args.fanout).await.map_err(|error| stack.failed(error))?;
    stack.print(|| fanout.raw.clone(), || view::text(&fanout))?;
    Ok(ExitCode::SUCCESS)
}
