//! `fanfold open`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::OpenFanout;
use serde_json::{Map, Value, json};

use super::connection::Connection;
use crate::failure::Failure;

/// Opens a fan-out, and prints its id.
///
///   id=$(fanfold open --items 3 --seal --user-key 'order 4711')
///   fanfold items "$id"                its items, for workers to ack
///   fanfold wait "$id" --timeout 10m   waits until all are acked
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct OpenArgs {
    /// The number of items, up to 709,632; `fanfold add` adds more.
    #[arg(long, value_name = "N", default_value_t = 0)]
    items: u64,
    /// Seal it at once: no more items can be added.
    #[arg(long)]
    seal: bool,
    /// A name of your own, by which `fanfold list` finds it.
    #[arg(long, value_name = "KEY")]
    user_key: Option<String>,
    /// Fail when more items than this have failed: a number, or a percentage such as `5%`.
    #[arg(long, value_name = "N", value_parser = tolerance)]
    tolerated_failures: Option<Value>,
    /// Expire after this time without activity while it is open.
    #[arg(long, value_name = "TIME")]
    idle_open: Option<String>,
    /// Expire after this time without activity once it is sealed.
    #[arg(long, value_name = "TIME")]
    idle_sealed: Option<String>,
    /// Where to report its end: JSON, such as `{"url": "https://example.com/ended"}`.
    #[arg(long, value_name = "JSON", value_parser = object)]
    notify: Option<Value>,
    /// An item of another fan-out. The end of this fan-out acks it.
    #[arg(long, value_name = "ITEM")]
    parent: Option<String>,
    /// A task to register when it has ended: JSON, such as `{"kind": "report", "content": {"order": 4711}}`.
    #[arg(long, value_name = "JSON", value_parser = object)]
    then: Option<Value>,
    /// Repeated with the same key, the command opens no other fan-out, and prints the same.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

fn tolerance(text: &str) -> Result<Value, String> {
    let percentage = |text: &str| text.ends_with('%').then(|| json!(text));
    let count = |text: &str| text.parse::<u64>().ok().map(|count| json!(count));
    count(text)
        .or_else(|| percentage(text))
        .ok_or_else(|| "a whole number or a percentage such as `5%` is expected".to_owned())
}

fn object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err("a JSON object is expected".to_owned()),
        Err(error) => Err(format!("is not JSON: {error}")),
    }
}

pub(super) async fn run(args: OpenArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let limits = [("open", args.idle_open), ("sealed", args.idle_sealed)];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), Value::String(limit?))));
    let limits: Map<String, Value> = limits.collect();
    let fanout = OpenFanout {
        items: args.items,
        seal: args.seal,
        user_key: args.user_key,
        notify: args.notify,
        tolerated_failures: args.tolerated_failures,
        idle_limit: (!limits.is_empty()).then_some(Value::Object(limits)),
        parent: args.parent,
        then: args.then,
        idempotency_key: args.idempotency_key,
        ..OpenFanout::default()
    };
    let opened = stack.api.open(&fanout).await.map_err(|error| stack.failed(error))?;
    stack.print(|| opened.raw.clone(), || opened.id.to_string())?;
    Ok(ExitCode::SUCCESS)
}
