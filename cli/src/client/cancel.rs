//! `fanfold cancel`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::State;

use super::connection::Connection;
use super::many::{ChosenFanouts, Deed, each};
use super::view;
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

const CANCEL: Deed = Deed { verb: "cancel", done: "cancelled", states: &[State::Open, State::Sealed] };

/// Cancels fan-outs: no more calls begin for them.
///
///   fanfold cancel ID ID                          these fan-outs
///   fanfold cancel --user-key-prefix 'import '    those that `fanfold list` finds
///
/// Calls in progress run to their end, and their outcomes count; all other items
/// that are not done count as missing. `fanfold wait` waits until nothing is in
/// progress. Cancelling again does no harm.
///
/// With a filter the command says how many open or sealed fan-outs it finds, and
/// asks before it cancels them. In a script, give --yes. The exit status is
///
///   0   they are cancelled
///   1   one has completed, failed or expired, which does not stop the others; or
///       the stack cannot be reached, or the question was not answered with yes
///   2   one does not exist, or the command line cannot be used
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    fanouts: ChosenFanouts,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: CancelArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    if let Some(id) = args.fanouts.one() {
        let fanout = stack.api.cancel(id).await.map_err(|error| stack.failed(error))?;
        stack.print(|| fanout.raw.clone(), || view::text(&fanout))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(ids) = args.fanouts.choose(&stack, CANCEL, |_| true).await? else {
        say("fanfold: nothing is cancelled");
        return Ok(ExitCode::FAILURE);
    };
    let outcomes = each(&stack, &ids, CANCEL, async |id| stack.api.cancel(id).await).await;
    let text = || {
        let all = count(ids.len() as u64, "fan-out", "fan-outs");
        format!("{} of {all} cancelled", outcomes.done.len())
    };
    stack.print(|| outcomes.document("cancelled"), text)?;
    outcomes.end().map(|()| ExitCode::SUCCESS)
}
