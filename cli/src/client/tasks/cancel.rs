//! `fanfold tasks cancel`.

use std::process::ExitCode;

use clap::Args;
use futures::TryStreamExt;
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::client::connection::{Connection, Stack};
use crate::client::progress::in_pages;
use crate::client::scope::{Chosen, named};
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

/// Cancels tasks that no batch has claimed: they are never called.
///
///   fanfold tasks cancel ID ID                           these tasks
///   fanfold tasks cancel --kind parcel --target NY/005   all that wait there
///
/// If a task is an item of a fan-out, the item counts as failed. The task's key is
/// released. With --kind, tasks that are registered meanwhile may be cancelled,
/// too. Use `fanfold pause` first, so that no batch claims tasks meanwhile. It
/// works page by page, and shows on standard error how far it is. Repeated, it
/// does the rest. The exit status is
///
///   0   they are cancelled
///   1   batches have claimed some of them, which are named; or the stack cannot be reached
///   2   some of them do not exist, or the command line is wrong
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CancelTasksArgs {
    #[command(flatten)]
    tasks: Chosen,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: CancelTasksArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if !args.tasks.ids.is_empty() {
        return each(&stack, &args.tasks.ids).await;
    }
    let scope = args.tasks.part.scope();
    let cancelled = in_pages(
        stack.api.cancel_tasks_by_page(&scope).map_err(|error| stack.failed(error)),
        0,
        |sum, page| sum + page,
        |sum| format!("{} cancelled so far", count(*sum, "task is", "tasks are")),
    );
    let cancelled = cancelled.await?;
    let text = || format!("{}: {} tasks are cancelled", named(&json!(scope)), HumanCount(cancelled));
    stack.print(|| json!({ "cancelled": cancelled }), text)?;
    Ok(ExitCode::SUCCESS)
}

/// Cancels tasks one by one: all that can be cancelled, also after one that cannot.
async fn each(stack: &Stack, ids: &[String]) -> Result<ExitCode, Failure> {
    let (mut cancelled, mut first) = (Vec::<Value>::new(), None);
    for id in ids {
        match stack.api.cancel_task(id).await {
            Ok(_) => cancelled.push(json!(id)),
            Err(error) => {
                let failure = stack.failed(error);
                match first {
                    None => first = Some(failure),
                    Some(_) => say(format_args!("fanfold: {failure}")),
                }
            }
        }
    }
    let text = || format!("{} of {} tasks are cancelled", cancelled.len(), ids.len());
    stack.print(|| json!({ "cancelled": cancelled }), text)?;
    first.map_or(Ok(ExitCode::SUCCESS), Err)
}
