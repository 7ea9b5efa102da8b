//! `fanfold policy delete`.

use std::process::ExitCode;

use clap::Args;
use fanfold_client::ClientError;

use super::super::connection::Connection;
use super::{is_unknown, kind};
use crate::failure::Failure;
use crate::say::say;

/// Exit status: tasks of the kind wait.
const IN_USE: u8 = 3;

/// Deletes the policy of a kind, unless tasks of the kind wait.
///
/// It may miss tasks that were registered in the last seconds. No task is lost:
/// those of a kind without a policy wait, and are handled within minutes after a
/// policy of the kind is stored again. What is paused stays paused until it is
/// resumed. The exit status is
///
///   0   it is deleted
///   1   the stack cannot be reached, or another error: repeat it
///   2   the kind has no policy
///   3   tasks of the kind wait, or are in a batch that has not ended: it is not deleted
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct DeleteArgs {
    /// The kind.
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: String,
    /// Delete it even if tasks of the kind wait; they are handled when the kind has a policy again.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: DeleteArgs) -> Result<ExitCode, Failure> {
    let DeleteArgs { kind, force, connection } = args;
    let stack = connection.stack()?;
    // It exists now. If it is gone later, an earlier try of this request deleted it, and the answer was lost.
    let policy = stack.api.policy(&kind).await.map_err(|error| stack.failed(error))?;
    match stack.api.delete_policy(&kind, force).await {
        Ok(_) => {}
        Err(error) if is_unknown(&error) => {}
        Err(ClientError::Api { problem, .. }) if problem.code == "policy_in_use" => {
            let detail = problem.detail.replace("`?force=true`", "--force");
            say(format_args!("fanfold: {detail} (409 policy_in_use)"));
            return Ok(ExitCode::from(IN_USE));
        }
        Err(error) => return Err(stack.failed(error)),
    }
    stack.print(|| policy.clone(), || format!("{kind}: deleted"))?;
    Ok(ExitCode::SUCCESS)
}
