//! `fanfold reset`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::ResetTasks;
use futures::TryStreamExt;
use indicatif::HumanCount;
use serde_json::json;

use super::connection::{Connection, Stack};
use super::progress::in_pages;
use super::scope::{Chosen, named};
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

/// Registers the work of failed tasks once more, each as a new task, whose id it prints.
///
///   fanfold reset ID ID         these tasks
///   fanfold reset --kind mail   all of the kind that failed and are not items
///
/// Tasks that are items of a fan-out are called again by `fanfold reissue`. With
/// --kind, the command reads the records of all batches page by page, and shows on
/// standard error how far it is. Resetting a task again does no harm. The exit
/// status is
///
///   0   their work is registered again
///   1   some have not failed or are items, or with --kind cannot be accepted any more;
///       or the stack cannot be reached
///   2   some of them do not exist or cannot be accepted any more, or the command line is wrong
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    tasks: Chosen,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: ResetArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if !args.tasks.ids.is_empty() {
        return each(&stack, &args.tasks.ids).await;
    }
    let scope = args.tasks.part.scope();
    let all = in_pages(
        stack.api.reset_tasks_by_page(&scope).map_err(|error| stack.failed(error)),
        ResetTasks::default(),
        ResetTasks::plus,
        |all| format!("{} again so far", count(all.reset, "task waits", "tasks wait")),
    );
    let all = all.await?;
    let text = || {
        let counts = [(all.known, "were reset before or are duplicates"), (all.refused, "cannot be accepted any more")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: String = counts.map(|(count, what)| format!(", {} {what}", HumanCount(count))).collect();
        let problem = all.problem.as_ref().map(|problem| format!(" ({problem})")).unwrap_or_default();
        format!("{}: {} tasks wait again{counts}{problem}", named(&json!(scope)), HumanCount(all.reset))
    };
    stack.print(|| json!(all), text)?;
    Ok(if all.refused > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Resets tasks one by one: all that can be reset, also after one that cannot.
async fn each(stack: &Stack, ids: &[String]) -> Result<ExitCode, Failure> {
    let (mut reset, mut first) = (Vec::<String>::new(), None);
    for id in ids {
        match stack.api.reset_task(id).await {
            Ok(task) => reset.extend(task["id"].as_str().map(str::to_owned)),
            Err(error) => {
                let failure = stack.failed(error);
                match first {
                    None => first = Some(failure),
                    Some(_) => say(format_args!("fanfold: {failure}")),
                }
            }
        }
    }
    if stack.json() || !reset.is_empty() {
        stack.print(|| json!({ "reset": reset }), || reset.join("\n"))?;
    }
    first.map_or(Ok(ExitCode::SUCCESS), Err)
}
