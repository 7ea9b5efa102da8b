//! Notices: what users are told, each under an id that never changes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::{TaskId, derived};
use crate::store::batches::Batch;
use crate::store::fanouts::{Fanout, FanoutState};

/// A notice. One may be delivered more than once; `id` tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The same for every delivery of this notice.
    pub id: Uuid,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Event {
    /// Every item of a fan-out is done.
    #[serde(rename = "fanout.completed")]
    FanoutCompleted(FanoutCompleted),
    /// Tasks failed for good.
    #[serde(rename = "tasks.failed")]
    TasksFailed(TasksFailed),
}

/// The end of a fan-out. Its counts are exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanoutCompleted {
    /// The fan-out.
    pub fanout: Uuid,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// How it ended.
    pub state: FanoutState,
    /// Items added.
    pub total: u64,
    /// Items that succeeded.
    pub succeeded: u64,
    /// Items that failed.
    pub failed: u64,
    /// When it was opened, epoch milliseconds.
    pub opened_at: u64,
    /// When it was completed, epoch milliseconds.
    pub completed_at: u64,
}

/// Tasks of one batch that failed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksFailed {
    /// The batch.
    pub batch: Uuid,
    /// The kind of its tasks.
    pub kind: String,
    /// What its tasks share.
    pub target: String,
    /// The tasks.
    pub failures: Vec<Failure>,
}

/// A task that failed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The task.
    pub id: TaskId,
    /// Why.
    pub error: String,
}

impl Notice {
    /// The notice of a fan-out's end.
    #[must_use]
    pub fn completed(fanout: &Fanout) -> Self {
        // Nothing but the mark that it was told changes a completed fan-out, and that leaves this time alone.
        let Timestamp(completed_at) = fanout.updated_at;
        Self {
            id: derived("fanout.completed", &[fanout.id.as_bytes()]),
            event: Event::FanoutCompleted(FanoutCompleted {
                fanout: fanout.id,
                user_key: fanout.user_key.clone(),
                state: fanout.state,
                total: fanout.total,
                succeeded: fanout.total.saturating_sub(fanout.failed),
                failed: fanout.failed,
                opened_at: fanout.created_at.0,
                completed_at,
            }),
        }
    }

    /// The notice of a batch's failures.
    #[must_use]
    pub fn failed(batch: &Batch) -> Self {
        let failure = |slot| {
            let error = batch.error(slot).unwrap_or("").to_owned();
            batch.members.ids().get(slot).map(|id| Failure { id: *id, error })
        };
        Self {
            id: derived("tasks.failed", &[batch.id.as_bytes()]),
            event: Event::TasksFailed(TasksFailed {
                batch: batch.id,
                kind: batch.lane.kind.clone(),
                target: batch.lane.target.clone(),
                failures: batch.failed.iter().filter_map(failure).collect(),
            }),
        }
    }
}
