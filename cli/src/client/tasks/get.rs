//! `fanfold tasks get`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::KeyWithin;
use serde_json::{Value, json};

use crate::client::connection::Connection;
use crate::client::policy::kind;
use crate::client::print::{paragraphs, state};
use crate::client::view::{moment, shown, word};
use crate::failure::Failure;

/// Shows tasks: status, batch, content, and the error or the result.
///
///   fanfold tasks get ID…                        by their ids
///   fanfold tasks get --kind parcel --key 4711   the one that has a key
///
/// The exit status is 2 if one of them does not exist.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct GetTasksArgs {
    /// The tasks.
    #[arg(value_name = "ID", required_unless_present = "key", conflicts_with = "key")]
    ids: Vec<String>,
    /// The key of the task, as its policy computes it.
    #[arg(long, value_name = "KEY", requires = "kind")]
    key: Option<String>,
    /// The kind of the task that has the key.
    #[arg(long, value_name = "KIND", requires = "key", value_parser = kind)]
    kind: Option<String>,
    /// The fan-out of the task that has the key, if it is an item.
    #[arg(long, value_name = "ID", requires = "key")]
    fanout: Option<String>,
    /// The scope of the key, if the kind's policy has a `scope`.
    #[arg(long, value_name = "SCOPE", requires = "key", conflicts_with = "fanout")]
    scope: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: GetTasksArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut tasks = Vec::new();
    for id in &args.ids {
        tasks.push(stack.api.task(id).await.map_err(|error| stack.failed(error))?);
    }
    if let (Some(kind), Some(key)) = (&args.kind, &args.key) {
        let within = match (args.scope, args.fanout) {
            (Some(scope), _) => KeyWithin::Scope(scope),
            (None, Some(fanout)) => KeyWithin::Fanout(fanout),
            (None, None) => KeyWithin::Single,
        };
        tasks.push(stack.api.task_by_key(kind, key, &within).await.map_err(|error| stack.failed(error))?);
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
