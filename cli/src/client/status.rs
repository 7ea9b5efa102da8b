//! `fanfold status`.

use std::process::ExitCode;

use clap::Args;
use uuid::Uuid;

use super::connection::Connection;
use super::left::{left, of_few};
use super::print::print;
use super::watch::watch;
use super::{fanout_id, view};
use crate::failure::Failure;

/// Shows a fan-out's state and counts, how far its producer is, and what is left.
///
/// When at most 20 items are left, it names the first ten, with what each waits
/// for: a pause, a kind that stands still, a policy, a batch and its last error.
/// (Of more than 100,000 items: with --exact.) Of partitions of a producer that
/// failed it shows the errors.
///
/// With --watch it shows on standard error how they change, until the fan-out has
/// ended. The exit status is 0, whatever the fan-out's state is; 2 if there is no
/// such fan-out; 1 if the stack cannot be reached.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct StatusArgs {
    /// The fan-out.
    #[arg(value_name = "ID", value_parser = fanout_id)]
    fanout: Uuid,
    /// Also count in groups that have not ended: exact in most cases, but reads each of them.
    #[arg(long)]
    exact: bool,
    /// Follow it until it has ended.
    #[arg(long, short)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: StatusArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let api = &stack.api;
    let answer = match (args.watch, args.exact) {
        (true, exact) => watch(&stack, args.fanout, exact, !stack.json()).await,
        (false, true) => api.get_exact(args.fanout).await,
        (false, false) => api.get(args.fanout).await,
    };
    let fanout = answer.map_err(|error| stack.failed(error))?;
    if stack.json() {
        return stack.print(|| fanout.raw.clone(), String::new).map(|()| ExitCode::SUCCESS);
    }
    // The counts are there, whatever becomes of this.
    let unknown = |error| Some(format!("  What is left cannot be read: {}", stack.refusal(error)));
    let (fanout, left) = match of_few(&stack, &fanout).await {
        Ok(Some(exact)) => {
            let left = left(&stack, &exact).await.unwrap_or_else(unknown);
            (exact, left)
        }
        Ok(None) => (fanout, None),
        Err(error) => (fanout, unknown(error)),
    };
    print(&[Some(view::text(&fanout)), left].into_iter().flatten().collect::<Vec<_>>().join("\n\n"))?;
    Ok(ExitCode::SUCCESS)
}
