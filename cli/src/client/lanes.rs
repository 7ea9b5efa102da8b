//! `fanfold lanes`.

use std::process::ExitCode;

use clap::Args;
use futures::{StreamExt, TryStreamExt};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};

use super::connection::Connection;
use super::print::table;
use super::scope::Part;
use super::view;
use crate::failure::Failure;
use crate::say::say;

/// Lists lanes that are busy, or in which tasks wait.
///
///   fanfold lanes --kind parcel           lanes of a kind
///   fanfold lanes --paused                lanes that are paused
///
/// Only the first hundred records of a lane, in its order, are counted: if there
/// are more, `≥` is before the numbers.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LanesArgs {
    #[command(flatten)]
    part: Part,
    /// Only lanes that are paused.
    #[arg(long)]
    paused: bool,
    /// The maximum number of lanes.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: LanesArgs) -> Result<ExitCode, Failure> {
    let LanesArgs { part, paused, limit, connection } = args;
    let stack = connection.stack()?;
    let most = limit as usize;
    let found = stack.api.lanes(&part.scope(), paused).take(most + 1).try_collect::<Vec<Value>>().await;
    let mut lanes = found.map_err(|error| stack.failed(error))?;
    let more = lanes.len() > most;
    lanes.truncate(most);
    stack.print(|| json!({"lanes": lanes, "more": more}), || text(&lanes))?;
    if more && !stack.json() {
        say(format_args!("There are more: --limit {limit} ends the list here."));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(lanes: &[Value]) -> String {
    let row = |lane: &Value| {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let moment = |value: &Value| value.as_u64().map(view::moment).unwrap_or_default();
        let pending = &lane["pending"];
        let least = if pending["at_least"] == true { "≥ " } else { "" };
        let standing = match (lane["paused"] == true, lane["draining"] == true) {
            (true, _) => "paused",
            (false, true) => "drains",
            _ => "",
        };
        [
            view::shown(lane["lane"].as_str().unwrap_or_default()),
            standing.to_owned(),
            format!("{least}{}", HumanCount(number(&pending["tasks"]))),
            format!("{least}{}", HumanBytes(number(&pending["bytes"]))),
            moment(&pending["oldest"]),
            HumanCount(number(&lane["in_flight"])).to_string(),
            moment(&lane["leads_since"]),
        ]
    };
    let rows: Vec<_> = lanes.iter().map(row).collect();
    table(["LANE", "", " WAIT", " BYTES", "OLDEST", " IN FLIGHT", "LEADER SINCE"], &rows)
}
