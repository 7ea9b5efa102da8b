//! `fanfold items`.

use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fanfold_client::{ItemsState, expand_ranges};
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use uuid::Uuid;

use super::connection::Connection;
use super::fanout_id;
use super::print::print;
use crate::failure::Failure;

const STATES: [ItemsState; 5] =
    [ItemsState::Pending, ItemsState::Succeeded, ItemsState::Failed, ItemsState::Duplicate, ItemsState::Missing];

/// Lists the items of a fan-out that are in a state, as ids and ranges for `fanfold ack`, one per line.
///
///   fanfold items ID --state failed
///   fanfold items ID --each | while read item; do …; done
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ItemsArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// The state of the items.
    #[arg(long, value_name = "STATE", default_value = "pending", value_parser = states())]
    state: ItemsState,
    /// List each item by its id, without ranges.
    #[arg(long)]
    each: bool,
    #[command(flatten)]
    connection: Connection,
}

fn states() -> impl TypedValueParser<Value = ItemsState> {
    let named = |name: String| STATES.into_iter().find(|state| state.name() == name).unwrap_or(ItemsState::Pending);
    PossibleValuesParser::new(STATES.map(ItemsState::name)).map(named)
}

pub(super) async fn run(args: ItemsArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut ranges = pin!(stack.api.ranges(args.fanout, args.state).map_err(|error| stack.failed(error)));
    let mut items = Vec::new();
    while let Some(range) = ranges.next().await {
        let range = range?;
        let shown = match expand_ranges(&range) {
            Ok(each) if args.each => each.map(|item| item.to_string()).collect(),
            _ => vec![range],
        };
        if stack.json() {
            items.extend(shown);
        } else if !print(&shown.join("\n"))? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if stack.json() {
        print(&format!("{:#}", json!({ "items": items })))?;
    }
    Ok(ExitCode::SUCCESS)
}
