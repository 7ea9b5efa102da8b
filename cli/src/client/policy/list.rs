//! `fanfold policy list`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::super::connection::Connection;
use super::super::print::table;
use super::super::view::shown;
use crate::failure::Failure;

/// Lists policies.
#[derive(Debug, Args)]
pub(super) struct ListPoliciesArgs {
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: ListPoliciesArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let policies = stack.api.policies().await.map_err(|error| stack.failed(error))?;
    stack.print(|| json!({"policies": policies}), || text(&policies))?;
    Ok(ExitCode::SUCCESS)
}

fn text(policies: &[Value]) -> String {
    let row = |policy: &Value| {
        let field = |name: &str| policy[name].as_str().map(shown).unwrap_or_default();
        [field("kind"), field("target"), field("key"), policy["max_batch"].to_string(), called(&policy["batch_api"])]
    };
    let rows: Vec<_> = policies.iter().map(row).collect();
    table(["KIND", "TARGET", "KEY", " MAX BATCH", "BATCH API"], &rows)
}

/// How a batch API is called: its fields without the time limit.
fn called(batch_api: &Value) -> String {
    let ways = batch_api.as_object().into_iter().flatten().filter(|(name, _)| *name != "timeout");
    let way = |(name, value): (&String, &Value)| match value {
        Value::String(url) => shown(url),
        value => format!("{name} {}", shown(&value.to_string())),
    };
    ways.map(way).collect::<Vec<_>>().join(", ")
}
