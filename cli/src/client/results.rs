//! `fanfold results`.

use std::pin::pin;
use std::process::ExitCode;

use clap::Args;
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use uuid::Uuid;

use super::connection::Connection;
use super::fanout_id;
use super::print::print;
use crate::failure::Failure;
use crate::say::say;

/// Lists the results of a fan-out's tasks as NDJSON.
///
/// There is a JSON object per line for each task that succeeded or failed, with its
/// result if the policy keeps results.
///
///   fanfold results ID | jq -c 'select(.outcome == "succeeded") | .result'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResultsArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// List at most this many. By default all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: ResultsArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut results = pin!(stack.api.results(args.fanout).map_err(|error| stack.failed(error)));
    let (mut all, mut listed, mut more) = (Vec::new(), 0, false);
    while let Some(result) = results.next().await {
        let result = json!(result?);
        if args.limit == Some(listed) {
            more = true;
            break;
        }
        listed += 1;
        if stack.json() {
            all.push(result);
        } else if !print(&result.to_string())? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if stack.json() {
        print(&format!("{:#}", json!({"results": all, "more": more})))?;
    } else if more {
        say(format_args!("There are more: --limit {listed} ends the list here."));
    }
    Ok(ExitCode::SUCCESS)
}
