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
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

/// Batches in flight that are named per lane.
const NAMED: usize = 3;

/// Lists lanes that are busy, or in which tasks wait.
///
///   fanfold lanes --kind parcel           lanes of a kind
///   fanfold lanes --paused                lanes that are paused
///
/// Below a lane: since when it has a leader, and its first batches in flight, for
/// `fanfold batches`.
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
            pending["oldest"].as_u64().map(view::moment).unwrap_or_default(),
            HumanCount(number(&lane["in_flight"])).to_string(),
        ]
    };
    let rows: Vec<_> = lanes.iter().map(row).collect();
    let table = table(["LANE", "", " WAIT", " BYTES", "OLDEST", " IN FLIGHT"], &rows);
    // A line per lane, after that of the heads.
    let below = std::iter::once(Vec::new()).chain(lanes.iter().map(below));
    table
        .lines()
        .map(str::to_owned)
        .zip(below)
        .flat_map(|(line, below)| [vec![line], below].concat())
        .collect::<Vec<_>>()
        .join("\n")
}

/// What does not fit into a line of 80 columns.
fn below(lane: &Value) -> Vec<String> {
    let leader = lane["leads_since"].as_u64().map(|since| format!("  leader since {}", view::moment(since)));
    let ids = lane["batches"].as_array().into_iter().flatten().filter_map(Value::as_str).take(NAMED);
    let batches: Vec<String> = ids.map(|id| format!("  batch {id}")).collect();
    let in_flight = lane["in_flight"].as_u64().unwrap_or_default();
    let more = in_flight.saturating_sub(batches.len() as u64);
    let more =
        (more > 0 && !batches.is_empty()).then(|| format!("  and {}", count(more, "other batch", "other batches")));
    leader.into_iter().chain(batches).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_batches_in_flight_are_named() {
        let batches: Vec<String> = (1..=5).map(|n| format!("b{n}")).collect();
        let lane =
            json!({"lane": "row:0:a", "pending": {"tasks": 0}, "in_flight": 5, "batches": batches, "leads_since": 0});
        let idle = json!({"lane": "row:0:b", "pending": {"tasks": 7, "at_least": true}, "in_flight": 0, "batches": [], "paused": true});
        let text = anstream::adapter::strip_str(&text(&[lane, idle])).to_string();
        let lines: Vec<&str> = text.lines().skip(1).map(str::trim_end).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[0]), ["row:0:a", "0", "0", "B", "5"]);
        assert_eq!(
            lines[1..6],
            ["  leader since 1970-01-01T00:00:00Z", "  batch b1", "  batch b2", "  batch b3", "  and 2 other batches"]
        );
        assert_eq!(words(lines[6])[..4], ["row:0:b", "paused", "≥", "7"]);
        assert_eq!(lines.len(), 7);
    }
}
