//! `fanfold wait`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fanfold_client::{ClientError, Fanout, State};
use uuid::Uuid;

use super::connection::Connection;
use super::moment::span;
use super::{fanout_id, view};
use crate::failure::Failure;
use crate::say::say;

/// How often a request is sent: the stack may restart meanwhile, which takes seconds.
const ATTEMPTS: u32 = 8;

/// It completed with failures, or was cut short: the same as for a run.
const NOT_ALL: u8 = 3;

/// The time was up.
const TIME_IS_UP: u8 = 4;

/// Waits until a fan-out has ended, and shows how it ended.
///
/// A fan-out that was cancelled or failed has ended when nothing of it is in
/// progress any more. The exit status is
///
///   0   it completed, and no item failed
///   1   the stack cannot be reached, or another error
///   2   there is no such fan-out, or the command line cannot be used
///   3   it completed with failed items, or it failed, was cancelled or expired
///   4   it had not ended when the time was up
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WaitArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// Wait at most this long, such as `90s`, `10m` or `2h`; by default without limit.
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: WaitArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.patient(ATTEMPTS)?;
    let (fanout, status) = match stack.api.wait(args.fanout, args.timeout.unwrap_or(Duration::MAX)).await {
        Ok(fanout) => {
            let status = status(&fanout);
            (fanout, status)
        }
        Err(ClientError::NotEnded(fanout)) => {
            say("fanfold: the time is up, and the fan-out has not ended");
            (*fanout, TIME_IS_UP)
        }
        Err(error) => return Err(stack.failed(error)),
    };
    stack.print(|| fanout.raw.clone(), || view::text(&fanout))?;
    Ok(ExitCode::from(status))
}

/// The exit status for a fan-out that has ended.
fn status(fanout: &Fanout) -> u8 {
    if fanout.state == State::Completed && fanout.failed == 0 { 0 } else { NOT_ALL }
}
