//! `fanfold pause`, `fanfold resume` and `fanfold drain`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::{ClientError, Scope};
use serde_json::{Value, json};
use uuid::Uuid;

use super::connection::{Connection, Stack};
use super::fanout_id;
use super::producer::progress;
use super::scope::{Part, Whole, named};
use super::view::moment;
use crate::count::count;
use crate::failure::Failure;

/// Pauses a lane, a target, a kind, or everything.
///
///   fanfold pause --kind parcel                    a kind
///   fanfold pause --kind parcel --target NY/005    a target, with all its partitions
///   fanfold pause --all                            everything
///
/// No call of the scope begins later than 7 seconds after this. Calls that had
/// begun run to their end, and count. Tasks are registered as usual, and wait; no
/// message is sent for them. Pausing again changes nothing.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    scope: Whole,
    #[command(flatten)]
    connection: Connection,
}

/// Resumes what is paused or drains, or the failed partitions of a producer.
///
///   fanfold resume --kind parcel    a kind, or with --target a target of it
///   fanfold resume --all            everything
///   fanfold resume --producer ID    the producer of a fan-out
///
/// Give the same options as to `pause`: a target that was paused on its own stays
/// paused when its kind is resumed. `fanfold switches` lists what is paused.
///
/// Partitions of a producer (a reissue has one, too) fail if their source fails
/// for some 20 minutes, or has too many bad rows; `fanfold status` shows why. They
/// continue where they stopped. The exit status is 1 if the fan-out has no
/// producer, or is not open any more.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    part: Part,
    /// Everything, as `pause --all` and `drain --all` mean it.
    #[arg(long, conflicts_with = "kind", required_unless_present_any = ["kind", "producer"])]
    all: bool,
    /// The failed partitions of this fan-out's producer.
    #[arg(long, value_name = "ID", value_parser = fanout_id, conflicts_with_all = ["kind", "all"])]
    producer: Option<Uuid>,
    #[command(flatten)]
    connection: Connection,
}

/// Forms the batches of a lane, a target, a kind, or everything at once, without linger.
///
/// It ends by itself when all that waits now is in a batch, or with `fanfold
/// resume`. If the scope is paused, the pause ends.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    scope: Whole,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn pause(args: PauseArgs) -> Result<ExitCode, Failure> {
    let (scope, stack) = (args.scope.scope(), args.connection.stack()?);
    show(&stack, &scope, stack.api.pause(&scope).await)
}

pub(super) async fn resume(args: ResumeArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if let Some(fanout) = args.producer {
        return producer(&stack, fanout).await;
    }
    let scope = Scope { all: args.all, ..args.part.scope() };
    show(&stack, &scope, stack.api.resume(&scope).await)
}

async fn producer(stack: &Stack, fanout: Uuid) -> Result<ExitCode, Failure> {
    let before = stack.api.get(fanout).await.map_err(|error| stack.failed(error))?;
    let partitions = stack.api.resume_producer(fanout).await.map_err(|error| stack.failed(error))?;
    let before = before.raw["producer"]["partitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let failed = before.iter().filter(|partition| partition["state"] == "failed").count() as u64;
    let text = || {
        let resumed = match failed {
            0 => "no partition had failed".to_owned(),
            _ => format!("{} resumed", count(failed, "partition", "partitions")),
        };
        format!("producer of {fanout}: {resumed}\n  {}", progress(&partitions))
    };
    stack.print(|| json!({ "partitions": partitions }), text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn drain(args: DrainArgs) -> Result<ExitCode, Failure> {
    let (scope, stack) = (args.scope.scope(), args.connection.stack()?);
    show(&stack, &scope, stack.api.drain(&scope).await)
}

fn show(stack: &Stack, scope: &Scope, switched: Result<Value, ClientError>) -> Result<ExitCode, Failure> {
    let switched = switched.map_err(|error| stack.failed(error))?;
    stack.print(|| switched.clone(), || text(scope, &switched))?;
    Ok(ExitCode::SUCCESS)
}

fn text(scope: &Scope, switched: &Value) -> String {
    let name = named(&json!(scope));
    let switch = &switched["switch"];
    let since = moment(switch["since"].as_u64().unwrap_or_default());
    let mut lines = vec![match switch["state"].as_str() {
        Some("paused") => format!("{name}: paused since {since}"),
        Some("draining") => format!("{name}: drains what waited at {since}"),
        Some(_) => format!("{name}: resumed at {since}"),
        None => format!("{name}: resumed"),
    }];
    let others = switched["paused_by"].as_array().into_iter().flatten().map(named).filter(|other| *other != name);
    lines.extend(others.map(|other| format!("  it is paused, as {other} is")));
    lines.join("\n")
}
