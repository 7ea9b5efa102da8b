//! `fanfold policy diff`.

use std::process::ExitCode;

use clap::Args;

use super::super::connection::Connection;
use super::change::{Difference, Sort, documents};
use super::{Files, stored};
use crate::failure::Failure;
use crate::policies;

/// Exit status: some policies differ.
const DIFFERENT: u8 = 3;

/// Shows what `fanfold policy apply` would change, field by field.
///
/// Policies that only the stack has are not shown: `apply` deletes none. The exit status is
///
///   0   nothing would change
///   1   the stack cannot be reached, or another error
///   2   a policy cannot be used
///   3   something would change
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: DiffArgs) -> Result<ExitCode, Failure> {
    let stack = args.connection.stack()?;
    let mut differences = Vec::new();
    for wanted in policies::read(&args.files.files, true)? {
        let stored = stored(&stack, wanted.kind()).await?;
        differences.push(Difference::between(stored.as_ref(), wanted.policy())?);
    }
    let text = || differences.iter().map(Difference::text).collect::<Vec<_>>().join("\n");
    stack.print(|| documents(&differences), text)?;
    let same = differences.iter().all(|difference| difference.change == Sort::Same);
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}
