//! How a task stands, by its record and that of the batch that claimed it.

use super::Task;
use crate::store::batches::{Batch, BatchStatus, MemberState};

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// No batch has claimed it.
    Created,
    /// A batch has claimed it.
    Batched,
    /// The batch API was called with it.
    InProgress,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It is a duplicate: another task has its key.
    Duplicate,
    /// It was dropped, because its fan-out was cancelled, failed or expired.
    Dropped,
    /// It was cancelled before a batch claimed it.
    Cancelled,
}

impl Task {
    /// How it stands. `batch`: the record of the batch that claimed it, if it is there: without it no more is known than that a
    /// batch has claimed the task.
    #[must_use]
    pub fn status(&self, batch: Option<&Batch>) -> TaskStatus {
        if self.batch.is_none() {
            return match () {
                () if self.duplicate_of.is_some() => TaskStatus::Duplicate,
                () if self.cancelled => TaskStatus::Cancelled,
                () => TaskStatus::Created,
            };
        }
        match batch.and_then(|batch| Some((batch.outcome_of(&self.id)?, batch.status))) {
            None | Some((MemberState::Pending, BatchStatus::Grouping | BatchStatus::Formed)) => TaskStatus::Batched,
            Some((MemberState::Pending, BatchStatus::InProgress | BatchStatus::Done)) => TaskStatus::InProgress,
            Some((MemberState::Succeeded, _)) => TaskStatus::Succeeded,
            Some((MemberState::Failed, _)) => TaskStatus::Failed,
            Some((MemberState::Dropped, _)) => TaskStatus::Dropped,
        }
    }
}
