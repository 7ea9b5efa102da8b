//! `fanfold policy validate`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::super::print::print;
use super::Files;
use crate::failure::Failure;
use crate::policies::{self, FilePolicy};

/// Checks policies as the API does, without a stack. Names every fault with file, line, column and field.
///
/// The exit status is 0 if all can be used, and 2 otherwise.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    #[command(flatten)]
    files: Files,
    /// Check for a deployed stack, which runs no commands.
    #[arg(long)]
    deployed: bool,
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: ValidateArgs) -> Result<ExitCode, Failure> {
    let checked = policies::read(&args.files.files, !args.deployed);
    if args.json {
        let document = match &checked {
            Ok(policies) => {
                let policy = |it: &FilePolicy| json!({"kind": it.kind(), "place": it.place});
                json!({"valid": true, "policies": policies.iter().map(policy).collect::<Vec<Value>>(), "faults": []})
            }
            Err(Failure::Unusable(faults)) => json!({"valid": false, "policies": [], "faults": faults.lines()}),
            Err(_) => Value::Null,
        };
        print(&format!("{document:#}"))?;
    }
    let policies = checked?;
    if !args.json {
        let line = |it: &FilePolicy| format!("{}: the policy of kind `{}` can be used", it.place, it.kind());
        print(&policies.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
