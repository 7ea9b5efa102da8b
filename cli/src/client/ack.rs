//! `fanfold ack`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::process::ExitCode;

use super::connection::{Connection, Stack};
use super::print::table;
use super::refusal::Refusal;
use super::view;
use crate::failure::Failure;
use crate::fault::{Fault, Faults};
use clap::Args;
use fanfold_client::{AckAnswer, AckedFanout, ClientError, Entry, Refused, expand_ranges};
use serde_json::json;

/// The most entries of a request: some 4 MB of the 6 MB that it may have.
const ENTRIES_MAX: usize = 45_000;

/// The most groups of a request, of the 3,500 that it may name.
const GROUPS_MAX: usize = 3_000;

/// Acks items as done, and shows the state of their fan-outs.
///
///   fanfold ack ITEM ITEM              acks items, or ranges: <fanout>:<group>:<first>-<last>
///   fanfold items ID | fanfold ack -   acks all pending items
///
/// You may ack an item again: it counts once, with its first outcome. The exit status is
///
///   0   all items are acked
///   1   the stack cannot be reached: some items may be acked, repeat the command
///   2   an argument is not an item, and nothing is acked;
///       or items do not exist, and all others are acked
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AckArgs {
    /// Items and ranges; `-` reads them from standard input, one per line.
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<String>,
    /// Ack them as failed.
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: AckArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let items = read(args.items)?;
    let (mut fanouts, mut refused) = (BTreeMap::new(), Vec::new());
    for request in requests(items) {
        match ack(&stack, &request, args.failed).await {
            Ok(answer) => {
                fanouts.extend(answer.fanouts.into_iter().map(|fanout| (fanout.id, fanout)));
                refused.extend(answer.refused);
            }
            // None of these items exists; those of other requests may.
            Err(error) => match strangers(&request, &error) {
                strangers if strangers.is_empty() => return Err(stack.failed(error)),
                strangers => refused.extend(strangers),
            },
        }
    }
    let fanouts: Vec<AckedFanout> = fanouts.into_values().collect();
    stack.print(|| json!({"fanouts": fanouts, "refused": refused}), || text(&fanouts))?;
    if refused.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let problems: Vec<String> = refused.into_iter().map(|refused| refused.problem).collect();
    Err(Refusal::Refused(problems.join("\n")).into())
}

async fn ack(stack: &Stack, items: &[String], failed: bool) -> Result<AckAnswer, ClientError> {
    let entries: Vec<Entry> = items.iter().cloned().map(Entry::Text).collect();
    if failed { stack.api.ack(&[], &entries).await } else { stack.api.ack(&entries, &[]).await }
}

/// The groups of a request none of whose items exist. The problem names each group by its first entry.
fn strangers(items: &[String], error: &ClientError) -> Vec<Refused> {
    let problem = match error {
        ClientError::Api { problem, .. } if problem.code == "invalid_acks" => problem,
        _ => return Vec::new(),
    };
    let refused = problem.errors.iter().filter_map(|error| {
        let at: usize = error.field.split_once('[')?.1.strip_suffix(']')?.parse().ok()?;
        let (name, _) = items.get(at)?.rsplit_once(':')?;
        let (fanout, group) = name.split_once(':')?;
        let indexes = items.iter().filter_map(|item| item.strip_prefix(name)?.strip_prefix(':'));
        Some(Refused {
            fanout: fanout.parse().ok()?,
            group: group.parse().ok()?,
            items: indexes.map(str::to_owned).collect(),
            problem: error.problem.clone(),
        })
    });
    refused.collect()
}

/// Reads all items, and checks that each is one.
fn read(given: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut items = Vec::new();
    for item in given {
        if item == "-" {
            for line in std::io::stdin().lock().lines() {
                let line = line.map_err(|error| Failure::io("standard input", error))?;
                items.extend(Some(line.trim().to_owned()).filter(|line| !line.is_empty()));
            }
        } else {
            items.push(item);
        }
    }
    let mut faults = Faults::default();
    for item in &items {
        if let Err(problem) = expand_ranges(item) {
            faults.add(Fault::new("ITEM", problem));
        }
    }
    faults.check().map(|()| items)
}

/// Splits the items into requests of allowed size.
fn requests(items: Vec<String>) -> Vec<Vec<String>> {
    let mut requests: Vec<Vec<String>> = Vec::new();
    let mut groups = BTreeSet::new();
    for item in items {
        let group = item.rsplit_once(':').map(|(group, _)| group.to_owned());
        let full = |request: &Vec<String>| {
            request.len() >= ENTRIES_MAX
                || groups.len() >= GROUPS_MAX && !group.as_ref().is_some_and(|it| groups.contains(it))
        };
        if requests.last().is_none_or(full) {
            requests.push(Vec::new());
            groups.clear();
        }
        groups.extend(group);
        if let Some(request) = requests.last_mut() {
            request.push(item);
        }
    }
    requests
}

fn text(fanouts: &[AckedFanout]) -> String {
    let key = |fanout: &AckedFanout| fanout.user_key.as_deref().map(view::shown).unwrap_or_default();
    let rows: Vec<_> = fanouts.iter().map(|it| [it.id.to_string(), it.state.to_string(), key(it)]).collect();
    table(["ID", "STATE", "USER KEY"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_no_more_than_it_may() {
        let item = |group: usize, index: usize| format!("f:{group}:{index}");
        assert!(requests(Vec::new()).is_empty());
        let apart: Vec<String> = (0..2 * GROUPS_MAX + 1).map(|group| item(group, 0)).collect();
        assert_eq!(requests(apart.clone()).iter().map(Vec::len).collect::<Vec<_>>(), [GROUPS_MAX, GROUPS_MAX, 1]);
        let together: Vec<String> = (0..ENTRIES_MAX + 1).map(|index| item(0, index)).collect();
        assert_eq!(requests(together).iter().map(Vec::len).collect::<Vec<_>>(), [ENTRIES_MAX, 1]);
        let twice = [apart.clone(), apart].concat();
        assert_eq!(requests(twice.clone()).concat(), twice);
    }
}
