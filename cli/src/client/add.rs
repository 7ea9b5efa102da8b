//! `fanfold add`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::ItemGroup;
use serde_json::json;
use uuid::Uuid;

use super::connection::Connection;
use super::fanout_id;
use crate::failure::Failure;

/// Adds items to an open fan-out, and prints them as ranges for `fanfold ack`, one per line.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// The number of items to add.
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    items: u64,
    /// Repeated with the same key, the command adds nothing more, and prints the same.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: AddArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let added = stack.api.add(args.fanout, args.items, args.idempotency_key.as_deref()).await;
    let added = added.map_err(|error| stack.failed(error))?;
    let range = |ItemGroup { id, upto }: &ItemGroup| match upto {
        1 => format!("{}:{id}:0", added.fanout),
        _ => format!("{}:{id}:0-{}", added.fanout, upto - 1),
    };
    stack.print(|| json!(added), || added.groups.iter().map(range).collect::<Vec<_>>().join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
