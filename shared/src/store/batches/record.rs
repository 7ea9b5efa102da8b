//! A batch, and how it is stored.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::aws::attributes::Reader;
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::members::Members;
use crate::store::telling::Telling;

/// How far a batch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// Its leader claims members.
    Grouping,
    /// Members are fixed; the batch API is to be called.
    Dispatched,
    /// The batch API was called at least once.
    InProgress,
    /// Every member has its outcome.
    Done,
}

impl BatchStatus {
    /// The status as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grouping => "grouping",
            Self::Dispatched => "dispatched",
            Self::InProgress => "in_progress",
            Self::Done => "done",
        }
    }
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: Uuid,
    /// Its lane.
    pub lane: Lane,
    /// How far it has come.
    pub status: BatchStatus,
    /// Its members; slots are positions in this list.
    pub members: Members,
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts that ended; the others were lost with their workers, or one runs.
    pub ended: u32,
    /// Attempts that ended and do not count: the batch API lets nobody in.
    pub refused: u32,
    /// Rounds: attempts that settled some members but not all.
    pub rounds: u32,
    /// While an attempt runs: until when nobody else should begin one.
    pub lease_until: Option<Timestamp>,
    /// Between attempts: when the next one is due.
    pub retry_at: Option<Timestamp>,
    /// When `sweep` last sent its message again.
    pub reminded_at: Option<Timestamp>,
    /// Slots that succeeded.
    pub succeeded: Bits,
    /// Slots that failed for good.
    pub failed: Bits,
    /// Slots that did not succeed, and of which a call may have worked all the same. One that failed so has no clear answer.
    pub silent: Bits,
    /// Why slots failed: each different error with its slots.
    pub errors: Vec<(String, Bits)>,
    /// Until it is done: why its latest attempt that ended is to be followed by another.
    pub last_error: Option<String>,
    /// The state of the notice of its failures.
    pub telling: Telling,
    /// When it was formed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Batch {
    /// A batch as its leader writes it down: nothing has become of its members yet. Without members there is nothing to do.
    #[must_use]
    pub fn new(id: Uuid, lane: Lane, members: Members, now: Timestamp) -> Self {
        Self {
            id,
            lane,
            status: if members.is_empty() { BatchStatus::Done } else { BatchStatus::Grouping },
            members,
            attempts: 0,
            ended: 0,
            refused: 0,
            rounds: 0,
            lease_until: None,
            retry_at: None,
            reminded_at: None,
            succeeded: Bits::default(),
            failed: Bits::default(),
            silent: Bits::default(),
            errors: Vec::new(),
            last_error: None,
            telling: Telling::default(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Whether a member is an item of a fan-out: its outcome is acked.
    #[must_use]
    pub fn has_items(&self) -> bool {
        self.members.ids().iter().any(|id| matches!(id, TaskId::Item(_)))
    }

    /// Slots without an outcome.
    #[must_use]
    pub fn unsettled(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|slot| !self.succeeded.get(*slot) && !self.failed.get(*slot)).collect()
    }

    /// Whether attempt number `attempt` could begin now. Only the conditional write decides.
    #[must_use]
    pub fn may_begin(&self, attempt: u32, now: Timestamp) -> bool {
        match (self.status, self.lease_until) {
            (BatchStatus::Dispatched, _) => attempt == 1,
            (BatchStatus::InProgress, None) => attempt == self.attempts.saturating_add(1),
            (BatchStatus::InProgress, Some(lease_until)) => attempt == self.attempts && lease_until < now,
            (BatchStatus::Grouping | BatchStatus::Done, _) => false,
        }
    }

    /// Why a slot failed.
    #[must_use]
    pub fn error(&self, slot: usize) -> Option<&str> {
        self.errors.iter().find(|(_, slots)| slots.get(slot)).map(|(error, _)| error.as_str())
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("batches", "id", item);
        let status = match reader.text("status")? {
            "grouping" => BatchStatus::Grouping,
            "dispatched" => BatchStatus::Dispatched,
            "in_progress" => BatchStatus::InProgress,
            "done" => BatchStatus::Done,
            other => return Err(reader.corrupt("status", format!("is `{other}`"))),
        };
        let errors = match item.get("errors") {
            None => Vec::new(),
            Some(AttributeValue::M(errors)) => errors
                .iter()
                .map(|(error, slots)| match slots {
                    AttributeValue::B(slots) => Ok((error.clone(), Bits::from_bytes(slots.as_ref().to_vec()))),
                    _ => Err(reader.corrupt("errors", "holds something else than slots")),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(reader.corrupt("errors", "is not a map")),
        };
        Ok(Self {
            id: reader.parsed("id")?,
            lane: reader.parsed("lane")?,
            status,
            members: Members::unpack(reader.bytes("members")?).map_err(|error| reader.corrupt("members", error))?,
            attempts: reader.small("attempts")?,
            ended: reader.small("ended")?,
            refused: reader.small("refused")?,
            rounds: reader.small("rounds")?,
            lease_until: reader.time("lease_until")?,
            retry_at: reader.time("retry_at")?,
            reminded_at: reader.time("reminded_at")?,
            succeeded: reader.bits("succeeded")?,
            failed: reader.bits("failed")?,
            silent: reader.bits("silent")?,
            errors,
            last_error: reader.optional_text("last_error")?.map(str::to_owned),
            telling: Telling::decode(&reader)?,
            created_at: Timestamp(reader.number("created_at")?),
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}
