//! Notices: what users are sent, each under an id that never changes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::{TaskId, derived};
use crate::limits::NOTICE_FAILURES_BYTES_MAX;
use crate::store::batches::Batch;
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::gates::Gate;

/// A notice. One may be delivered more than once, with the same `id`.
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
    /// Tasks failed finally.
    #[serde(rename = "tasks.failed")]
    TasksFailed(TasksFailed),
    /// A kind stands still.
    #[serde(rename = "kind.stopped")]
    KindStopped(KindStopped),
    /// A kind goes on.
    #[serde(rename = "kind.resumed")]
    KindResumed(KindResumed),
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
    /// Items that were dropped as duplicates. These, those that succeeded and those that failed make up the total.
    #[serde(default)]
    pub duplicates: u64,
    /// When it was opened, epoch milliseconds.
    pub opened_at: u64,
    /// When it was completed, epoch milliseconds.
    pub completed_at: u64,
}

/// Tasks of one batch that failed finally.
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

/// A task that failed finally.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The task.
    pub id: TaskId,
    /// Why.
    pub error: String,
}

/// A kind stands still: its batch API refuses every call. Its tasks wait, and use up no attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindStopped {
    /// The kind.
    pub kind: String,
    /// Since when, epoch milliseconds.
    pub since: u64,
    /// What the batch API answered that stopped it.
    pub answer: String,
}

/// A kind that stood still goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindResumed {
    /// The kind.
    pub kind: String,
    /// Since when it had stood still, epoch milliseconds.
    pub stopped_at: u64,
    /// Since when it goes on, epoch milliseconds.
    pub since: u64,
}

impl Notice {
    /// The notice of a fan-out's end.
    #[must_use]
    pub fn completed(fanout: &Fanout) -> Self {
        // Nothing but the mark that it was reported changes a completed fan-out, and that leaves this time alone.
        let Timestamp(completed_at) = fanout.updated_at;
        Self {
            id: derived::completed_notice(fanout.id),
            event: Event::FanoutCompleted(FanoutCompleted {
                fanout: fanout.id,
                user_key: fanout.user_key.clone(),
                state: fanout.state,
                total: fanout.total,
                succeeded: fanout.total.saturating_sub(fanout.failed + fanout.duplicates),
                failed: fanout.failed,
                duplicates: fanout.duplicates,
                opened_at: fanout.created_at.0,
                completed_at,
            }),
        }
    }

    /// The notice of how a kind stands since its latest change.
    #[must_use]
    pub fn of_kind(gate: &Gate) -> Self {
        let kind = gate.kind.clone();
        let event = match &gate.stopped {
            Some(stopped) => {
                Event::KindStopped(KindStopped { kind, since: stopped.since.0, answer: stopped.because.clone() })
            }
            None => {
                let [Timestamp(stopped_at), Timestamp(since)] =
                    [gate.stood_since, gate.resumed_at].map(Option::unwrap_or_default);
                Event::KindResumed(KindResumed { kind, stopped_at, since })
            }
        };
        let at = gate.stopped.as_ref().map_or(gate.resumed_at, |stopped| Some(stopped.since)).unwrap_or_default();
        let change = gate.notice.change.unwrap_or_default();
        Self { id: derived::kind_notice(&gate.kind, change, at), event }
    }

    /// The notices of a batch's failures: one, or as many as it takes for each to fit a message. Each part has an id of its
    /// own, and the same failures at each delivery.
    #[must_use]
    pub fn failed(batch: &Batch) -> Vec<Self> {
        let mut parts: Vec<Vec<Failure>> = Vec::new();
        let mut bytes = 0;
        for slot in batch.failed.iter() {
            let Some(id) = batch.members.ids().get(slot).copied() else { continue };
            let failure = Failure { id, error: batch.error(slot).unwrap_or("").to_owned() };
            let size = serde_json::to_string(&failure).map_or(0, |text| text.len() + 1);
            match parts.last_mut() {
                Some(part) if bytes + size <= NOTICE_FAILURES_BYTES_MAX => {
                    bytes += size;
                    part.push(failure);
                }
                _ => {
                    bytes = size;
                    parts.push(vec![failure]);
                }
            }
        }
        let notice = |(part, failures): (usize, Vec<Failure>)| Self {
            id: derived::failed_notice(batch.id, part),
            event: Event::TasksFailed(TasksFailed {
                batch: batch.id,
                kind: batch.lane.kind.clone(),
                target: batch.lane.target.clone(),
                failures,
            }),
        };
        parts.into_iter().enumerate().map(notice).collect()
    }
}
