//! `fanfold tasks cancel`.

use std::process::ExitCode;

use clap::Args;
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::client::connection::{Connection, Stack};
use crate::client::scope::{Part, named};
use crate::failure::Failure;
use crate::say::say;

/// Cancels tasks that no batch has claimed: they are never called.
///
///   fanfold tasks cancel ID ID                           these tasks
///   fanfold tasks cancel --kind parcel --target NY/005   all that wait there
///
/// An item of a fan-out counts as failed. Another task may have the key of one that was cancelled. Tasks that come
/// while others are cancelled by --kind may be cancelled, too; `fanfold pause` first keeps batches from taking them.
/// The exit status is
///
///   0   they are cancelled
///   1   some could not be, as batches have them: they are named; or the stack does not answer
///   2   some of them do not exist, or what was given cannot be used
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CancelArgs {
    /// The tasks.
    #[arg(value_name = "ID", conflicts_with = "kind", required_unless_present = "kind")]
    ids: Vec<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: CancelArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if !args.ids.is_empty() {
        return each(&stack, &args.ids).await;
    }
    let scope = args.part.scope();
    let cancelled = stack.api.cancel_tasks(&scope).await.map_err(|error| stack.failed(error))?;
    let text = || format!("{}: {} tasks are cancelled", named(&json!(scope)), HumanCount(cancelled));
    stack.print(|| json!({ "cancelled": cancelled }), text)?;
    Ok(ExitCode::SUCCESS)
}

/// Cancels tasks one by one. One that cannot be cancelled does not keep the others from it.
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
