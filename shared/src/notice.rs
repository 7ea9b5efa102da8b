//! Notices: what users are sent, each under an id that never changes. As JSON a notice is a CloudEvent (version 1.0, in the
//! structured JSON form).

mod fanout;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::aws::sendable;
use crate::clock::Timestamp;
use crate::ids::{TaskId, derived};
use crate::limits::NOTICE_FAILURES_BYTES_MAX;
use crate::store::batches::Batch;
use crate::store::fanouts::{Fanout, FanoutState, Mode, ReportedEnd};
use crate::store::gates::Gate;
use crate::tracking::Progress;

pub use self::fanout::{FanoutProgress, MissingItems};

/// A notice. One may be delivered more than once, with the same `id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The version of CloudEvents.
    specversion: SpecVersion,
    /// The same for every delivery of this notice.
    pub id: Uuid,
    /// What it is about: a path of the HTTP API, or `/kinds/` and a kind.
    pub source: String,
    /// When it happened (RFC 3339).
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// The media type of a notice as JSON.
pub const NOTICE_MEDIA_TYPE: &str = "application/cloudevents+json";

/// The version of CloudEvents that notices follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SpecVersion {
    #[serde(rename = "1.0")]
    V1,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum Event {
    /// Every item of a fan-out is done, and none of them failed. Sent where `notify_on` names `succeeded`.
    #[serde(rename = "fanout.succeeded")]
    FanoutSucceeded(FanoutEnded),
    /// Every item of a fan-out is done.
    #[serde(rename = "fanout.completed")]
    FanoutCompleted(FanoutEnded),
    /// A fan-out was cancelled, and nothing of it is in progress any more.
    #[serde(rename = "fanout.cancelled")]
    FanoutCancelled(FanoutEnded),
    /// More items of a fan-out failed than it tolerates, and nothing of it is in progress any more.
    #[serde(rename = "fanout.failed")]
    FanoutFailed(FanoutEnded),
    /// Nothing happened to a fan-out for longer than its idle limit.
    #[serde(rename = "fanout.expired")]
    FanoutExpired(FanoutEnded),
    /// A percentage of a fan-out's items is done.
    #[serde(rename = "fanout.progress")]
    FanoutProgress(FanoutProgress),
    /// Tasks failed finally.
    #[serde(rename = "tasks.failed")]
    TasksFailed(TasksFailed),
    /// A kind stands still.
    #[serde(rename = "kind.stopped")]
    KindStopped(KindStopped),
    /// A kind resumes.
    #[serde(rename = "kind.resumed")]
    KindResumed(KindResumed),
}

impl Event {
    /// The end of a fan-out, whichever it is.
    #[must_use]
    pub fn end(&self) -> Option<&FanoutEnded> {
        match self {
            Self::FanoutSucceeded(end)
            | Self::FanoutCompleted(end)
            | Self::FanoutCancelled(end)
            | Self::FanoutFailed(end)
            | Self::FanoutExpired(end) => Some(end),
            Self::FanoutProgress(_) | Self::TasksFailed(_) | Self::KindStopped(_) | Self::KindResumed(_) => None,
        }
    }
}

/// The end of a fan-out. Its counts are exact, unless it is estimated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanoutEnded {
    /// The fan-out.
    pub fanout: Uuid,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// How it ended.
    pub state: FanoutState,
    /// How it was tracked.
    #[serde(default, skip_serializing_if = "Mode::is_exact")]
    pub mode: Mode,
    /// Items added.
    pub total: u64,
    /// Items that succeeded.
    pub succeeded: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that are duplicates.
    #[serde(default)]
    pub duplicates: u64,
    /// Items that were not done when it was cut short. These, duplicates, those that succeeded and those that failed make up the
    /// total.
    #[serde(default)]
    pub missing: u64,
    /// Which these are, in a notice of an end that left some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_items: Option<MissingItems>,
    /// When it was opened, epoch milliseconds.
    pub opened_at: u64,
    /// When it ended, epoch milliseconds.
    pub ended_at: u64,
}

impl FanoutEnded {
    /// The end of a fan-out, as its header has it.
    #[must_use]
    pub fn of(fanout: &Fanout) -> Self {
        let Progress { done, failed, duplicates, missing, .. } = Progress::of_header(fanout);
        Self {
            fanout: fanout.id,
            user_key: fanout.user_key.clone(),
            state: fanout.state,
            mode: fanout.mode,
            total: fanout.total,
            succeeded: done.saturating_sub(failed + duplicates),
            failed,
            duplicates,
            missing,
            missing_items: None,
            opened_at: fanout.created_at.0,
            ended_at: fanout.ended_at.unwrap_or_default().0,
        }
    }
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
    /// The same as a short name or number, if the batch API returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
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

/// A kind that stood still resumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindResumed {
    /// The kind.
    pub kind: String,
    /// Since when it had stood still, epoch milliseconds.
    pub stopped_at: u64,
    /// When it resumed, epoch milliseconds.
    pub since: u64,
}

impl Notice {
    fn new(id: Uuid, source: String, at: Timestamp, event: Event) -> Self {
        Self { specversion: SpecVersion::V1, id, source, time: at.rfc3339(), event }
    }

    /// The notice of a fan-out's end.
    #[must_use]
    pub fn ended(fanout: &Fanout) -> Self {
        let end = FanoutEnded { missing_items: MissingItems::of(fanout), ..FanoutEnded::of(fanout) };
        let at = fanout.ended_at.unwrap_or_default();
        let event = match fanout.reported_as() {
            Some(ReportedEnd::Succeeded) => Event::FanoutSucceeded(end),
            Some(ReportedEnd::Completed) | None => Event::FanoutCompleted(end),
            Some(ReportedEnd::Cancelled) => Event::FanoutCancelled(end),
            Some(ReportedEnd::Failed) => Event::FanoutFailed(end),
            Some(ReportedEnd::Expired) => Event::FanoutExpired(end),
        };
        Self::new(derived::end_notice(fanout.id), format!("/fanouts/{}", fanout.id), at, event)
    }

    /// The notice of a kind's state since its latest change.
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
        Self::new(derived::kind_notice(&gate.kind, change, at), format!("/kinds/{}", gate.kind), at, event)
    }

    /// The notices of a batch's failures: one, or as many as it takes for each to fit a message. Each part has an id of its
    /// own, and the same failures at each delivery.
    #[must_use]
    pub fn failed(batch: &Batch) -> Vec<Self> {
        let mut parts: Vec<Vec<Failure>> = Vec::new();
        let mut bytes = 0;
        for slot in batch.failed.iter() {
            let Some(id) = batch.members.ids().get(slot).copied() else { continue };
            let (error, code) = (batch.error(slot).unwrap_or("").to_owned(), batch.code(slot).map(str::to_owned));
            let failure = Failure { id, error, code };
            // As a queue takes it.
            let size = serde_json::to_string(&failure).map_or(0, |text| sendable(text).len() + 1);
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
        let notice = |(part, failures): (usize, Vec<Failure>)| {
            let event = Event::TasksFailed(TasksFailed {
                batch: batch.id,
                kind: batch.lane.kind.clone(),
                target: batch.lane.target.clone(),
                failures,
            });
            // A batch that is done does not change any more.
            Self::new(derived::failed_notice(batch.id, part), format!("/batches/{}", batch.id), batch.updated_at, event)
        };
        parts.into_iter().enumerate().map(notice).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use crate::limits::{ERROR_BYTES_MAX, MESSAGE_BYTES_MAX};
    use crate::members::Members;
    use crate::testing::lane;

    /// A queue takes the last of these characters only as an escape, which is twice as long.
    #[test]
    fn each_part_fits_a_message_whatever_characters_errors_have() {
        for character in ["x", "\"", "\u{1}", "\u{ffff}"] {
            let error = character.repeat(ERROR_BYTES_MAX / character.len());
            let members = Members::new((1..=1_000).map(|n| TaskId::Single(Uuid::from_u128(n))));
            let (failed, errors) = (Bits::ones(members.len()), vec![(error, Bits::ones(members.len()))]);
            let batch = Batch { failed, errors, ..Batch::intended(Uuid::nil(), lane(), members, Timestamp(1)) };
            let parts = Notice::failed(&batch);
            let bytes = parts.iter().map(|part| sendable(serde_json::to_string(part).unwrap()).len());
            assert!(parts.len() > 1 && bytes.max() <= Some(MESSAGE_BYTES_MAX), "{character:?}");
            let reported = |part: &Notice| match &part.event {
                Event::TasksFailed(failed) => failed.failures.len(),
                _ => 0,
            };
            assert_eq!(parts.iter().map(reported).sum::<usize>(), 1_000);
        }
    }
}
