//! `fanfold policy apply`.

use std::process::ExitCode;

use clap::Args;

use super::super::connection::{Connection, Stack};
use super::change::{Difference, Sort, document, documents};
use super::{Files, stored};
use crate::failure::Failure;
use crate::policies::{self, FilePolicy};

/// Stores policies, each in place of its kind's earlier one, and says what changed.
///
/// All are checked before the first is stored. They are stored one after the other:
/// if one is refused, those before it are stored. Workers may use a kind's earlier
/// policy for some seconds more. The exit status is
///
///   0   all are stored
///   1   the stack cannot be reached, or another error: repeat it
///   2   a policy cannot be used
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ApplyArgs {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: ApplyArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let wanted = policies::read(&args.files.files, true)?;
    let mut applied = Vec::new();
    let mut broke = None;
    for policy in &wanted {
        match apply(&stack, policy).await {
            Ok(difference) => applied.push(difference),
            Err(failure) => {
                broke = Some(failure);
                break;
            }
        }
    }
    let line = |difference: &Difference| match difference.change {
        Sort::New => format!("{}: stored", difference.kind),
        Sort::Changed => format!("{}\n  stored", difference.text()),
        Sort::Same => format!("{}: the same, nothing to store", difference.kind),
    };
    if broke.is_none() || !applied.is_empty() || stack.json() {
        stack.print(|| documents(&applied), || applied.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    broke.map_or(Ok(ExitCode::SUCCESS), Err)
}

async fn apply(stack: &Stack, wanted: &FilePolicy) -> Result<Difference, Failure> {
    let kind = wanted.kind();
    let difference = Difference::between(stored(stack, kind).await?.as_ref(), wanted.policy())?;
    if difference.change != Sort::Same {
        let answer = stack.api.put_policy(kind, &document(wanted.policy())?).await;
        let _ = answer.map_err(|error| stack.refusal(error).of(&wanted.place))?;
    }
    Ok(difference)
}
