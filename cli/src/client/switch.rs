//! `fanfold pause`, `fanfold resume` and `fanfold drain`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::{ClientError, Scope};
use serde_json::{Value, json};

use super::connection::{Connection, Stack};
use super::scope::{Whole, named};
use super::view::moment;
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

/// Resumes a lane, a target, a kind, or everything that is paused, or that drains.
///
/// Give the same options as to `pause`: a target that was paused on its own stays
/// paused when its kind is resumed. `fanfold switches` lists what is paused.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    scope: Whole,
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
    let (scope, stack) = (args.scope.scope(), args.connection.stack()?);
    show(&stack, &scope, stack.api.resume(&scope).await)
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
