//! `fanfold switches`.

use std::process::ExitCode;

use clap::Args;
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::connection::Connection;
use super::print::table;
use super::view;
use crate::failure::Failure;

/// Lists the scopes that are paused, that drain, or that were just resumed.
#[derive(Debug, Args)]
pub(crate) struct SwitchesArgs {
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: SwitchesArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let switches: Vec<Value> = stack.api.switches().try_collect().await.map_err(|error| stack.failed(error))?;
    stack.print(|| json!({"switches": switches}), || text(&switches))?;
    Ok(ExitCode::SUCCESS)
}

fn text(switches: &[Value]) -> String {
    let row = |switch: &Value| {
        let text = |name: &str| switch[name].as_str().map(view::shown).unwrap_or_default();
        let partition = switch["partition"].as_u64().map(|partition| partition.to_string()).unwrap_or_default();
        let kind = if switch["all"] == true { "(everything)".to_owned() } else { text("kind") };
        [text("state"), view::moment(switch["since"].as_u64().unwrap_or_default()), kind, text("target"), partition]
    };
    let rows: Vec<_> = switches.iter().map(row).collect();
    table(["STATE", "SINCE", "KIND", "TARGET", " PARTITION"], &rows)
}
