//! Calls of batch APIs.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::BatchApi;
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Answer, CallError, Cause};

/// A call that is being made.
pub type Calling<'a> = BoxFuture<'a, Result<Answer, CallError>>;

/// Calls batch APIs.
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

/// The parts of a call that each way of calling needs.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What the batch API gets.
    pub call: &'a Call,
    /// The `Idempotency-Key`.
    pub key: &'a str,
    /// How long the call may take.
    pub timeout: Duration,
}

impl Request<'_> {
    /// What the batch API gets, as JSON.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn body(&self) -> Result<Vec<u8>, CallError> {
        serde_json::to_vec(self.call).map_err(|error| CallError::new(Cause::NotMade, error.to_string()))
    }
}
