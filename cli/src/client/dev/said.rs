//! What a session prints: a line per batch on standard output.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fanfold::messages::{Posted, PostedOutcome};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::print::{print, state};
use crate::count::count;
use crate::failure::Failure;
use crate::say::say;

/// What became of a batch here.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) batch: Uuid,
    pub(super) attempt: u32,
    pub(super) members: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    pub(super) retry: usize,
    /// Why a member did not succeed, or why nothing was recorded.
    pub(super) error: Option<String>,
    /// How long it took.
    pub(super) took: Duration,
}

impl Line {
    /// Counts outcomes.
    pub(super) fn add(&mut self, outcomes: &[PostedOutcome]) {
        for outcome in outcomes {
            match outcome.outcome {
                Posted::Succeeded => self.succeeded += 1,
                Posted::Failed => self.failed += 1,
                Posted::Retry => self.retry += 1,
            }
            self.error = self.error.take().or_else(|| outcome.error.clone());
        }
    }

    fn json(&self) -> Value {
        let Self { batch, attempt, members, succeeded, failed, retry, error, took } = self;
        let mut json = json!({
            "batch": batch, "attempt": attempt, "members": members, "succeeded": succeeded, "failed": failed,
            "retry": retry, "ms": took.as_millis() as u64,
        });
        if let Some(error) = error {
            json["error"] = error.as_str().into();
        }
        json
    }

    fn text(&self) -> String {
        let outcomes = [("succeeded", self.succeeded), ("failed", self.failed), ("retry", self.retry)];
        let outcomes = outcomes.into_iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{n} {}", state(word)));
        let outcomes: Vec<String> = outcomes.collect();
        let members = count(self.members as u64, "member", "members");
        let error = self.error.as_deref().map(|error| format!("  {}", super::super::view::shown(error)));
        let said = if outcomes.is_empty() { "no outcome".to_owned() } else { outcomes.join(", ") };
        format!("{}  {members}  {said}  {} ms{}", self.batch, self.took.as_millis(), error.unwrap_or_default())
    }
}

/// Counts of a session.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    handled: u64,
    handed_back: u64,
}

/// Prints what a session does.
#[derive(Debug)]
pub(super) struct Said {
    json: bool,
    counts: Mutex<Counts>,
}

impl Said {
    pub(super) fn new(json: bool) -> Self {
        Self { json, counts: Mutex::default() }
    }

    /// A batch was called.
    pub(super) fn handled(&self, line: &Line) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).handled += 1;
        self.print(&if self.json { line.json().to_string() } else { line.text() });
    }

    /// A batch was handed back without a call.
    pub(super) fn handed_back(&self, batch: Uuid, members: usize) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).handed_back += 1;
        let members_text = count(members as u64, "member", "members");
        self.print(&match self.json {
            true => json!({"batch": batch, "members": members, "handed_back": true}).to_string(),
            false => format!("{batch}  {members_text}  handed back"),
        });
    }

    /// The session has ended.
    pub(super) fn end(&self) -> Result<(), Failure> {
        let Counts { handled, handed_back } = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = |n| count(n, "batch", "batches");
        if self.json {
            return print(&json!({"ended": true, "handled": handled, "handed_back": handed_back}).to_string())
                .map(drop);
        }
        say(format_args!("{} handled, {} handed back", batches(handled), batches(handed_back)));
        Ok(())
    }

    fn print(&self, line: &str) {
        // A reader that is gone ends nothing: the batches are handled all the same.
        if let Err(error) = print(line) {
            tracing::warn!(%error, "standard output");
        }
    }
}
