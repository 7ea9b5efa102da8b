//! `fanfold batches`.

use std::process::ExitCode;

use clap::Args;
use indicatif::HumanCount;
use serde_json::{Value, json};

use super::connection::Connection;
use super::print::{paragraphs, state, table};
use super::view::{moment, notice_text, request_text, shown, word};
use crate::count::count;
use crate::failure::Failure;

/// Shows batches: lane, status, attempts, and the outcome of each member.
///
/// `fanfold tasks get` shows which batch has claimed a task, `fanfold lanes` which
/// batches are in flight. If the policy reports failed tasks, `notice` shows
/// whether that was delivered, or the last error. The exit status is 2 if one of
/// the batches does not exist.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BatchesArgs {
    /// The batches.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Show the request of each batch's call, too, written again from the contents of
    /// its tasks and the policy as it is now.
    #[arg(long)]
    request: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: BatchesArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut batches = Vec::new();
    for id in &args.ids {
        let mut batch = stack.api.batch(id).await.map_err(|error| stack.failed(error))?;
        if args.request {
            batch["request"] = stack.api.batch_request(id).await.map_err(|error| stack.failed(error))?;
        }
        batches.push(batch);
    }
    stack.print(|| json!({ "batches": batches }), || paragraphs(&batches, text))?;
    Ok(ExitCode::SUCCESS)
}

fn text(batch: &Value) -> String {
    let mut lines = vec![format!("batch {}: {}\n", word(&batch["id"]), state(word(&batch["status"])))];
    let mut row = |name: &str, value: Option<String>| lines.extend(value.map(|value| format!("  {name:<14}{value}")));
    row("lane", batch["lane"].as_str().map(shown));
    row("formed", batch["created_at"].as_u64().map(moment));
    row("changed", batch["updated_at"].as_u64().map(moment));
    row("attempts", batch["attempts"].as_u64().map(|count| attempts(count, batch["refused"].as_u64().unwrap_or(0))));
    row("latest began", batch["begun_at"].as_u64().map(moment));
    row("next attempt", batch["retry_at"].as_u64().map(moment));
    row("answer until", batch["answers_until"].as_u64().map(moment));
    row("parts to call", batch["parts"].as_u64().map(|count| HumanCount(count).to_string()));
    row("last error", batch["last_error"].as_str().map(shown));
    row("notice", batch["notice"].is_object().then(|| notice_text(&batch["notice"])));
    lines.push(String::new());
    lines.push(members(batch));
    if batch["request"].is_object() {
        lines.extend([String::new(), request(&batch["request"])]);
    }
    lines.join("\n")
}

/// How many attempts have begun, and how many of these do not count.
fn attempts(count: u64, refused: u64) -> String {
    match refused {
        0 => HumanCount(count).to_string(),
        _ => format!("{} ({} refused, which do not count)", HumanCount(count), HumanCount(refused)),
    }
}

fn request(of: &Value) -> String {
    let mut text = match of["problem"].as_str() {
        Some(problem) => format!("no request: {problem}"),
        None => {
            let members = of["members"].as_array().map_or(0, Vec::len) as u64;
            format!("request for {}\n{}", count(members, "member", "members"), request_text(&of["request"]))
        }
    };
    for left_out in of["left_out"].as_array().into_iter().flatten() {
        text.push_str(&format!("\n  without {}: {}", word(&left_out["id"]), shown(word(&left_out["problem"]))));
    }
    text
}

fn members(batch: &Value) -> String {
    let row = |member: &Value| {
        ["id", "outcome", "code", "error"].map(|name| member[name].as_str().map(shown).unwrap_or_default())
    };
    let rows: Vec<_> = batch["members"].as_array().into_iter().flatten().map(row).collect();
    table(["MEMBER", "OUTCOME", "CODE", "ERROR"], &rows)
}
