//! `fanfold doctor`: what is wrong with a stack, and how to fix it.

mod api;
mod aws;

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::connection::Connection;
use super::print::{Tone, paint};
use crate::failure::Failure;

/// Something is wrong.
const WRONG: u8 = 3;

/// Checks a stack, and shows what is wrong and how to fix it.
///
///   fanfold doctor                  the stack that `fanfold up` runs
///   fanfold doctor --stack shop     a deployed stack, with its event sources, alarms and limits
///
/// It changes nothing. With --stack it asks the AWS CLI, too. The exit status is
///
///   0   nothing is wrong; there may be warnings
///   1   the address of the stack cannot be found, or another error
///   2   the command line cannot be used
///   3   something is wrong
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    connection: Connection,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Wrong,
}

/// What was looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    verdict: Verdict,
    /// What is the case.
    says: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn ok(says: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, says: says.into(), fix: None }
    }

    fn warning(says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, says: says.into(), fix: Some(fix.into()) }
    }

    fn wrong(says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Wrong, ..Self::warning(says, fix) }
    }
}

pub(super) async fn run(args: DoctorArgs) -> Result<ExitCode, Failure> {
    let deployed = args.connection.deployed();
    let stack = args.connection.stack()?;
    let mut checks = api::checks(&stack).await;
    if let Some((name, cli)) = &deployed {
        checks.extend(aws::checks(name, cli));
    }
    let wrong = checks.iter().any(|check| check.verdict == Verdict::Wrong);
    stack.print(|| json!({"ok": !wrong, "checks": checks}), || text(&checks))?;
    Ok(if wrong { ExitCode::from(WRONG) } else { ExitCode::SUCCESS })
}

fn text(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let (word, tone) = match check.verdict {
            Verdict::Ok => ("ok", Tone::Good),
            Verdict::Warning => ("warning", Tone::Middling),
            Verdict::Wrong => ("wrong", Tone::Bad),
        };
        let fix = check.fix.as_ref().map(|fix| format!("\n           {fix}")).unwrap_or_default();
        format!("  {}  {}{fix}", paint(&format!("{word:<7}"), tone), check.says)
    };
    checks.iter().map(line).collect::<Vec<_>>().join("\n")
}
