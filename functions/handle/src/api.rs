//! The batch API as Fanfold calls it.

use fanfold::ids::TaskId;
use fanfold::limits::ERROR_BYTES;
use fanfold::policy::BatchApi;
use fanfold::text::shorten;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

pub use crate::cause::Cause;
pub use fanfold::retry_after::RetryAfter;

/// A call that is being made.
pub type Calling<'a> = BoxFuture<'a, Result<Answer, CallError>>;

/// Calls batch APIs of some sort.
pub trait Caller: Send + Sync {
    /// Makes one call. `key` is its `Idempotency-Key`: calls with the same key have the same members.
    ///
    /// # Errors
    /// There is no answer, or it says that the whole batch was not done.
    fn call<'a>(&'a self, batch_api: &'a BatchApi, key: &'a str, call: &'a Call) -> Calling<'a>;
}

/// What the batch API gets.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// The batch.
    pub batch_id: Uuid,
    /// The kind of its tasks.
    pub kind: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What its tasks share.
    pub target: String,
    /// The members without an outcome.
    pub members: Vec<CallMember>,
}

/// A member of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct CallMember {
    /// The task.
    pub id: TaskId,
    /// Its content, as it was registered.
    pub content: Box<RawValue>,
}

/// What the batch API answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing particular: every member succeeded.
    AllSucceeded,
    /// One outcome per member.
    Members(Vec<MemberAnswer>),
    /// Outcomes, beside entries that name no task.
    Unclear {
        /// What could be read.
        members: Vec<MemberAnswer>,
        /// What could not.
        problem: String,
    },
}

/// The outcome of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberAnswer {
    /// The task.
    pub id: TaskId,
    /// What became of it.
    pub outcome: MemberOutcome,
    /// Why, if it did not succeed.
    pub error: Option<String>,
}

/// What became of a member.
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

/// A call that did nothing, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Whether to try again.
    pub retriable: bool,
    /// Where it ended.
    pub cause: Cause,
    /// When the batch API wants to be called again.
    pub retry_after: Option<RetryAfter>,
    /// What went wrong, in short: the error of every member.
    pub message: String,
}

impl CallError {
    /// A call that ended there. Whether another try may help follows from the cause.
    #[must_use]
    pub fn new(cause: Cause, message: impl AsRef<str>) -> Self {
        let message = shorten(message.as_ref(), ERROR_BYTES).into_owned();
        Self { retriable: cause.retriable(), cause, retry_after: None, message }
    }

    /// The batch API answered that it failed this time: a status 500.
    #[must_use]
    pub fn again(message: impl AsRef<str>) -> Self {
        Self::new(Cause::Status(500), message)
    }

    /// The batch API answered that it does not take this batch: a status 400.
    #[must_use]
    pub fn for_good(message: impl AsRef<str>) -> Self {
        Self::new(Cause::Status(400), message)
    }
}
