//! What a batch API answers.

pub(crate) mod extras;
mod failures;
mod mismatch;
mod read;
mod status;
mod strict;

use std::time::Duration;

use fanfold::ids::TaskId;
use serde::Deserialize;

use crate::Call;

pub use self::mismatch::Mismatch;

/// What the batch API answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Every member succeeded.
    AllSucceeded,
    /// One outcome per member.
    Members(Vec<MemberAnswer>),
    /// Outcomes, and entries that name no task.
    Unclear {
        /// The readable ones.
        members: Vec<MemberAnswer>,
        /// What is wrong with the others.
        problem: String,
    },
    /// The outcomes come later.
    Later(Accepted),
}

/// A call was accepted, and its answer comes later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Outcomes that are known already: of members that were not in the request.
    pub members: Vec<MemberAnswer>,
    /// Where the other answer can be asked for.
    pub poll: Option<String>,
    /// How long to wait before that.
    pub after: Option<Duration>,
    /// What is wrong with the address that was named.
    pub problem: Option<String>,
}

impl Answer {
    /// The same, with the delay that the answer as a whole asks for: of members to be tried again that ask for none themselves, and
    /// of those that the answer does not name.
    #[must_use]
    pub fn asking_for(mut self, delay: Option<Duration>, call: &Call) -> Self {
        if let (Self::Members(members) | Self::Unclear { members, .. }, Some(_)) = (&mut self, delay) {
            let mismatch = Mismatch::of(call.members.iter().map(|member| member.id), members);
            members.extend(mismatch.missing.iter().map(|id| MemberAnswer::new(*id, MemberOutcome::Unnamed)));
            // A member may be named twice, once as failed: then it is tried again.
            for member in members.iter_mut().filter(|member| member.outcome != MemberOutcome::Succeeded) {
                member.retry_after = member.retry_after.or(delay);
            }
        }
        self
    }
}

/// The outcome of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAnswer {
    /// The task.
    pub id: TaskId,
    /// Its outcome.
    pub outcome: MemberOutcome,
    /// Why, if it did not succeed.
    pub error: Option<String>,
    /// The same as a short name or number, for programs.
    pub code: Option<String>,
    /// How long it asks to wait, if it is to be tried again.
    pub retry_after: Option<Duration>,
    /// What it brought, if it succeeded: JSON on one line.
    pub result: Option<String>,
}

impl MemberAnswer {
    /// An outcome of a member, without more.
    #[must_use]
    pub fn new(id: TaskId, outcome: MemberOutcome) -> Self {
        Self { id, outcome, error: None, code: None, retry_after: None, result: None }
    }
}

/// The outcome of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberOutcome {
    /// It is done.
    Succeeded,
    /// It failed for good.
    Failed,
    /// It may succeed another time.
    Retry,
    /// The answer has something else: the member is tried again, and may have worked.
    #[serde(skip)]
    Unclear,
    /// The answer does not name it, but asks for a delay: there is no outcome.
    #[serde(skip)]
    Unnamed,
}
