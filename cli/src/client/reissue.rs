//! `fanfold reissue`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::Fanout;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::{Connection, Stack};
use super::filter::ENDED;
use super::many::{ChosenFanouts, Deed, each};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::say::say;

const REISSUE: Deed = Deed { verb: "reissue", done: "reissued", states: &ENDED };

/// Calls the failed items of fan-outs again, as new fan-outs whose ids it prints.
///
///   new=$(fanfold reissue ID)                  when it has ended
///   new=$(fanfold reissue ID --max-batch 1)    each task alone, to find culprits
///   fanfold wait "$new" --timeout 10m
///   fanfold reissue --opened-after 1d          all that `fanfold list` finds
///   fanfold reissue ID --outstanding           before its end: sends the messages
///                                              of its outstanding items again
///
/// Nothing that succeeded is called again.
///
/// With a filter the command says how many fan-outs it finds that have ended with
/// failed items (with --missing: or missing ones) and were not reissued, and asks
/// before it reissues them. In a script, give --yes. The exit status is
///
///   0   they are reissued, or the messages are sent
///   1   one has not ended, has no failed items or was reissued before, which does
///       not stop the others; or the stack cannot be reached, or the question was
///       not answered with yes
///   2   one does not exist, or something on the command line cannot be used
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReissueArgs {
    #[command(flatten)]
    fanouts: ChosenFanouts,
    /// Instead send again the messages that items which are not done may wait for. Calls in progress continue.
    #[arg(long, conflicts_with_all = ["Filter", "missing", "max_batch", "content", "again", "idempotency_key"])]
    outstanding: bool,
    /// Also items that were missing at its end: their tasks were not called, because it was cut short.
    #[arg(long)]
    missing: bool,
    /// Put at most N of the tasks in a batch, if the policy allows more.
    #[arg(long, value_name = "N")]
    max_batch: Option<u32>,
    /// Replace the content of an item of the fan-out: ITEM=JSON. May be given up to 100 times.
    #[arg(long, value_name = "ITEM=JSON", value_parser = corrected, conflicts_with = "Filter")]
    content: Vec<(String, Value)>,
    /// Also if it was reissued before: all of its failed items, even those that succeeded since.
    #[arg(long)]
    again: bool,
    /// Repeated with the same key for one fan-out, the command opens no other one, and prints the same.
    #[arg(long, value_name = "KEY", conflicts_with = "Filter")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

fn corrected(text: &str) -> Result<(String, Value), String> {
    let (item, content) = text.split_once('=').ok_or("ITEM=JSON is expected: the id of an item, and its content")?;
    let content = serde_json::from_str(content).map_err(|error| format!("the content is not JSON: {error}"))?;
    Ok((item.to_owned(), content))
}

pub(super) async fn run(args: ReissueArgs) -> Result<ExitCode, Failure> {
    let ReissueArgs { fanouts, outstanding, missing, max_batch, content, again, idempotency_key, connection } = args;
    let (stack, one) = (connection.stack()?, fanouts.one());
    let of_one = [
        ("--outstanding", outstanding),
        ("--content", !content.is_empty()),
        ("--idempotency-key", idempotency_key.is_some()),
    ];
    if let Some((option, _)) = of_one.iter().find(|(_, given)| *given && one.is_none()) {
        return Err(Fault::new(option, "is allowed for one fan-out: name one ID").into());
    }
    if let Some(id) = one.filter(|_| outstanding) {
        return wake(&stack, id).await;
    }
    let contents = content.into_iter().map(|(id, content)| json!({"id": id, "content": content}));
    let mut request = json!({"missing": missing, "again": again, "contents": contents.collect::<Vec<_>>()});
    if let Some(most) = max_batch {
        request["max_batch"] = most.into();
    }
    let reissue = async |id| stack.api.reissue(id, &request, idempotency_key.as_deref()).await;
    if let Some(id) = one {
        let reissued = reissue(id).await.map_err(|error| stack.failed(error))?;
        stack.print(|| reissued.raw.clone(), || reissued.id.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(ids) = fanouts.choose(&stack, REISSUE, |fanout| is_wanted(fanout, missing, again)).await? else {
        say("fanfold: nothing is reissued");
        return Ok(ExitCode::FAILURE);
    };
    let outcomes = each(&stack, &ids, REISSUE, reissue).await;
    let new = || outcomes.done.iter().map(|fanout| fanout.id.to_string()).collect::<Vec<_>>().join("\n");
    if stack.json() || !outcomes.done.is_empty() {
        stack.print(|| outcomes.document("reissued"), new)?;
    }
    outcomes.end().map(|()| ExitCode::SUCCESS)
}

/// Whether a fan-out that a filter finds has something to reissue.
fn is_wanted(fanout: &Fanout, missing: bool, again: bool) -> bool {
    let items = fanout.failed + if missing { fanout.missing } else { 0 };
    let new = again || !fanout.raw["reissued_as"].is_string();
    fanout.has_ended() && items > 0 && new && fanout.raw["mode"] != "estimated"
}

async fn wake(stack: &Stack, fanout: Uuid) -> Result<ExitCode, Failure> {
    let woken = stack.api.wake(fanout).await.map_err(|error| stack.failed(error))?;
    let text = || {
        let count = |name: &str| woken[name].as_u64().unwrap_or_default();
        format!(
            "{} wait, {} are in flight, {} have their outcome, {} are duplicates, {} have no task",
            count("waiting"),
            count("in_flight"),
            count("settled"),
            count("duplicates"),
            count("without_task"),
        )
    };
    stack.print(|| woken.clone(), text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_an_item_and_json() {
        assert_eq!(corrected("a:b:1={\"x\": \"=\"}").unwrap(), ("a:b:1".to_owned(), json!({"x": "="})));
        for wrong in ["a:b:1", "a:b:1=", "a:b:1={x}"] {
            assert!(corrected(wrong).is_err(), "{wrong}");
        }
    }
}
