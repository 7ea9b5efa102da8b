//! The sandbox's log: a line of JSON per call.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use fanfold::clock::World;
use fanfold_batch_api::MemberOutcome;
use serde_json::json;

use super::ledger::Taken;
use crate::failure::Failure;

/// A file to which lines are appended.
#[derive(Debug)]
pub(super) struct CallLog(Mutex<File>);

impl CallLog {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::options().append(true).create(true).open(path);
        file.map(|file| Self(Mutex::new(file))).map_err(|error| Failure::io(path.display(), error))
    }

    /// Appends what a call was and what it got.
    pub(super) fn note(&self, key: Option<&str>, attempt: Option<&str>, members: &[String], taken: &Taken) {
        let line = json!({
            "at": World::system().now().rfc3339(),
            "key": key,
            "attempt": attempt,
            "members": members,
            "status": taken.reply.status,
            "because": taken.because,
            "outcomes": taken.outcomes.iter().map(|outcome| name(*outcome)).collect::<Vec<_>>(),
        });
        let Ok(mut file) = self.0.lock() else { return };
        if let Err(error) = writeln!(file, "{line}") {
            tracing::warn!(%error, "a line of the log is missing");
        }
    }
}

fn name(outcome: MemberOutcome) -> &'static str {
    match outcome {
        MemberOutcome::Succeeded => "succeeded",
        MemberOutcome::Failed => "failed",
        MemberOutcome::Retry | MemberOutcome::Unclear | MemberOutcome::Unnamed => "retry",
    }
}
