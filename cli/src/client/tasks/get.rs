//! `fanfold tasks get`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::client::connection::Connection;
use crate::client::print::{paragraphs, state};
use crate::client::view::{moment, shown, word};
use crate::failure::Failure;

/// Shows tasks: status, batch, content, and the error or the result.
///
/// The exit status is 2 if one of them does not exist.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct GetTasksArgs {
    /// The tasks.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: GetTasksArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut tasks = Vec::new();
    for id in &args.ids {
        tasks.push(stack.api.task(id).await.map_err(|error| stack.failed(error))?);
    }
    stack.print(|| json!({ "tasks": tasks }), || paragraphs(&tasks, text))?;
    Ok(ExitCode::SUCCESS)
}

fn text(task: &Value) -> String {
    let mut lines = vec![format!("task {}: {}\n", word(&task["id"]), state(word(&task["status"])))];
    let mut row = |name: &str, value: Option<String>| {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("  {name:<14}{value}")));
    };
    row("lane", task["lane"].as_str().map(shown));
    row("registered", task["created_at"].as_u64().map(moment));
    row("item", task["item"].as_str().map(shown));
    row("batch", task["batch"].as_str().map(shown));
    row("duplicate of", task["duplicate_of"].as_str().map(shown));
    row("reset as", task["reset_as"].as_str().map(shown));
    row("error", task["error"].as_str().map(shown));
    row("code", task["code"].as_str().map(shown));
    row("no result", task["result_left_out"].as_str().map(shown));
    for name in ["content", "result"] {
        row(name, task.get(name).filter(|value| !value.is_null()).map(|value| shown(&json!(value).to_string())));
    }
    lines.join("\n")
}
