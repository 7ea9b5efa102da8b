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

    /// Whether a batch may claim it, and so whether it may be cancelled.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.status(None) == TaskStatus::Created && !self.fills
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::TaskId;
    use crate::lane::Lane;

    #[test]
    fn a_task_waits_until_something_has_become_of_it() {
        let waiting = Task {
            id: TaskId::Single(Uuid::from_u128(1)),
            lane: Lane { kind: "parcel".to_owned(), partition: 0, target: "NY".to_owned() },
            batch: None,
            content: Some("{}".to_owned()),
            duplicate_of: None,
            cancelled: false,
            fills: false,
            created_at: Timestamp(1),
        };
        assert!(waiting.waits());
        for other in [
            Task { batch: Some(Uuid::nil()), ..waiting.clone() },
            Task { duplicate_of: Some(waiting.id), ..waiting.clone() },
            Task { cancelled: true, ..waiting.clone() },
            Task { fills: true, ..waiting.clone() },
        ] {
            assert!(!other.waits(), "{other:?}");
        }
    }
}
