//! What a batch API answers.

mod failures;
mod read;
mod status;

use fanfold::ids::TaskId;
use serde::Deserialize;

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
}
