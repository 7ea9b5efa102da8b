//! `fanfold reissue`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::{Connection, Stack};
use super::fanout_id;
use crate::failure::Failure;

/// Calls the failed items of a fan-out again, as a new fan-out whose id it prints.
///
///   new=$(fanfold reissue ID)                  when it has ended
///   new=$(fanfold reissue ID --max-batch 1)    each task alone, to see which one spoils batches
///   fanfold wait "$new" --timeout 10m
///   fanfold reissue ID --outstanding           sends the lost messages of its outstanding items again
///
/// Nothing that succeeded is called again. The exit status is
///
///   0   it is reissued, or the messages are sent
///   1   it has not ended, has no failed items or was reissued before; or the stack cannot be reached
///   2   there is no such fan-out, or something on the command line cannot be used
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ReissueArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// Instead send again the messages that items which are not done may wait for. Calls in progress continue.
    #[arg(long, conflicts_with_all = ["missing", "max_batch", "content", "again", "idempotency_key"])]
    outstanding: bool,
    /// Also items that were missing at its end: their tasks were not called, because it was cut short.
    #[arg(long)]
    missing: bool,
    /// Put at most N of the tasks in a batch, if the policy allows more.
    #[arg(long, value_name = "N")]
    max_batch: Option<u32>,
    /// Replace the content of an item: ITEM=JSON. May be given up to 100 times.
    #[arg(long, value_name = "ITEM=JSON", value_parser = corrected)]
    content: Vec<(String, Value)>,
    /// Also if it was reissued before: all of its failed items, even those that succeeded since.
    #[arg(long)]
    again: bool,
    /// Repeated with the same key, the command opens no other fan-out, and prints the same.
    #[arg(long, value_name = "KEY")]
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
    let stack = args.connection.stack()?;
    if args.outstanding {
        return wake(&stack, args.fanout).await;
    }
    let contents = args.content.into_iter().map(|(id, content)| json!({"id": id, "content": content}));
    let mut request = json!({"missing": args.missing, "again": args.again, "contents": contents.collect::<Vec<_>>()});
    if let Some(most) = args.max_batch {
        request["max_batch"] = most.into();
    }
    let reissued = stack.api.reissue(args.fanout, &request, args.idempotency_key.as_deref()).await;
    let reissued = reissued.map_err(|error| stack.failed(error))?;
    stack.print(|| reissued.raw.clone(), || reissued.id.to_string())?;
    Ok(ExitCode::SUCCESS)
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
