//! An answer, and what it says of the members of a call.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::EXCERPT_BYTES_MAX;
use fanfold::text::beginning;
use serde_json::Value;

use crate::{Answer, Call, CallMember, MemberAnswer, MemberOutcome};

/// What an answer says of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The outcome.
    pub outcome: MemberOutcome,
    /// Why, if it did not succeed.
    pub error: Option<String>,
    /// The same as a short code, if the mapping says where that is.
    pub code: Option<String>,
    /// How long it asks to wait, if it is tried again and the mapping says where that is.
    pub retry_after: Option<Duration>,
    /// What it brought, if it succeeded and the mapping says where that is.
    pub result: Option<Value>,
}

impl Reading {
    /// An outcome, and why, if the member did not succeed.
    #[must_use]
    pub fn new(outcome: MemberOutcome, error: Option<String>) -> Self {
        Self { outcome, error, code: None, retry_after: None, result: None }
    }

    /// The same as an answer to a call says it. Null is no result.
    pub(super) fn of(self, id: TaskId) -> MemberAnswer {
        let result = self.result.filter(|result| !result.is_null()).map(|result| result.to_string());
        let Self { outcome, error, code, retry_after, .. } = self;
        MemberAnswer { id, outcome, error, code, retry_after, result }
    }
}

/// What an answer says of the members of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// Of each member of the call, in order. None: nothing.
    pub members: Vec<Option<Reading>>,
    /// What cannot be read.
    pub problem: Option<String>,
}

impl Readings {
    /// The same as the answer to a call.
    #[must_use]
    pub fn into_answer(self, call: &Call) -> Answer {
        let answer = |(member, reading): (&CallMember, Option<Reading>)| reading.map(|reading| reading.of(member.id));
        let members = call.members.iter().zip(self.members).filter_map(answer).collect();
        match self.problem {
            None => Answer::Members(members),
            Some(problem) => Answer::Unclear { members, problem },
        }
    }
}

/// An answer as it was received.
pub(super) struct Said<'a> {
    pub(super) status: u16,
    pub(super) text: &'a str,
    /// Its body, if it is JSON.
    pub(super) body: Option<Value>,
}

impl Said<'_> {
    pub(super) fn success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it says that outcomes differ: then nothing said of a member does not mean that it succeeded.
    pub(super) fn differs(&self) -> bool {
        self.status == 207
    }

    pub(super) fn shown(&self) -> String {
        beginning(self.text.as_bytes(), EXCERPT_BYTES_MAX)
    }
}
