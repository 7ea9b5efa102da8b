//! A task, and how it is stored.

mod loads;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, item, number, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::grouping::{Load, Loads, Rank};
use crate::ids::TaskId;
use crate::lane::Lane;

pub(crate) use self::loads::{AT_MOST, FLUSHES};
pub(super) use self::loads::{OF_LOADS, decode_load, decode_loads, encode_loads};

const CONTENT: &str = "content";
/// The [`Rank`] of the task or the bundle, by which the index of what waits is sorted. Without a head start it is when the task was
/// registered, or the bundle begun.
pub(super) const RANK: &str = "rank";
/// The lane.
pub(super) const LANE: &str = "lane";
const STATUS: &str = "status";

/// The attribute that is the records' key.
pub(super) const ID: &str = "id";
/// The record id of the task's key.
pub(super) const KEY: &str = "key";
/// The sparse index of what waits, and its partition key: the lane.
pub(super) const PENDING: &str = "pending";
/// When the record expires.
pub(super) const TTL: &str = "ttl";

/// The attributes of a [`Content`].
pub(super) const OF_CONTENT: [&str; 3] = [ID, CONTENT, RANK];
/// The attributes of a [`Standing`], except its time to live.
pub(super) const OF_STANDING: [&str; 6] = [ID, LANE, STATUS, BUNDLE, BATCH, OF];
/// The same, and the record id of the task's key.
pub(super) const OF_KEY: [&str; 7] = [ID, LANE, STATUS, BUNDLE, BATCH, OF, KEY];
/// The attributes of a [`Rank`], and whether the task still has it.
pub(super) const OF_RANK: [&str; 4] = [ID, STATUS, LANE, RANK];
/// Attributes that must be unchanged for a task to be claimed.
pub(super) const SAME_LANE: [&str; 3] = [ID, STATUS, LANE];
/// Attributes that must be unchanged for a task to be freed from its bundle, or kept with it.
pub(super) const SAME_BUNDLE: [&str; 2] = [ID, BUNDLE];

const BUNDLE: &str = "bundle";
const BATCH: &str = "batch";
const OF: &str = "of";

/// Status of a duplicate: another task has its key.
pub const DUPLICATE: &str = "duplicate";

/// A stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its lane.
    pub lane: Lane,
    /// The batch that claimed it.
    pub batch: Option<Uuid>,
    /// Its content, JSON; none of a duplicate.
    pub content: Option<String>,
    /// The task that it is a duplicate of.
    pub duplicate_of: Option<TaskId>,
    /// It was cancelled before a batch claimed it.
    pub cancelled: bool,
    /// Its bundle still fills: no batch may claim it yet.
    pub fills: bool,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// The content of a task for its batch API, and since when the task has waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// JSON.
    pub json: String,
    /// When the task was registered.
    pub created_at: Timestamp,
}

/// The state of a task until it is a member of a batch. Later states are in the batch's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It waits on its own.
    Created,
    /// It was stored for this bundle, whose record says which batch has claimed it.
    Bundled(Uuid),
    /// It waited on its own, and this batch has claimed it.
    Batched(Uuid),
    /// It is a duplicate of this task.
    Duplicate(TaskId),
    /// It waited on its own, and was cancelled.
    Cancelled,
}

impl State {
    fn status(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Bundled(_) => "bundled",
            Self::Batched(_) => "batched",
            Self::Duplicate(_) => DUPLICATE,
            Self::Cancelled => "cancelled",
        }
    }

    /// The bundle it was stored for.
    pub(super) fn bundle(self) -> Option<Uuid> {
        match self {
            Self::Bundled(bundle) => Some(bundle),
            Self::Created | Self::Batched(_) | Self::Duplicate(_) | Self::Cancelled => None,
        }
    }
}

/// The part of a task's record that changes, with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) id: TaskId,
    pub(super) lane: Lane,
    pub(super) state: State,
    /// When the record expires, in epoch seconds.
    pub(super) ttl: Option<u64>,
}

impl Standing {
    pub(super) fn encode(&self) -> Item {
        let Self { id, lane, state, ttl } = self;
        let (bundle, batch, of) = match state {
            State::Created | State::Cancelled => (None, None, None),
            State::Bundled(bundle) => (Some(bundle), None, None),
            State::Batched(batch) => (None, Some(batch), None),
            State::Duplicate(of) => (None, None, Some(of)),
        };
        item([
            (ID, Some(text(id))),
            (LANE, Some(text(lane))),
            (STATUS, Some(text(state.status()))),
            (PENDING, (*state == State::Created).then(|| text(lane))),
            (BUNDLE, bundle.map(|bundle| binary(bundle.as_bytes()))),
            (BATCH, batch.map(text)),
            (OF, of.map(text)),
            (TTL, ttl.map(number)),
        ])
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = reader(item);
        let state = match reader.text(STATUS)? {
            "created" => State::Created,
            "bundled" => {
                State::Bundled(Uuid::from_slice(reader.bytes(BUNDLE)?).map_err(|error| reader.corrupt(BUNDLE, error))?)
            }
            "batched" => State::Batched(reader.parsed(BATCH)?),
            DUPLICATE => State::Duplicate(reader.parsed(OF)?),
            "cancelled" => State::Cancelled,
            other => return Err(reader.corrupt(STATUS, format!("is `{other}`"))),
        };
        Ok(Self { id: reader.parsed(ID)?, lane: reader.parsed(LANE)?, state, ttl: reader.optional_number(TTL)? })
    }
}

/// A task's whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskRecord {
    pub(super) standing: Standing,
    /// None of a duplicate.
    pub(super) content: Option<String>,
    /// The record id of its key.
    pub(super) key: Option<String>,
    /// What it takes of a batch.
    pub(super) load: Load,
    /// When it was registered, and with which head start.
    pub(super) rank: Rank,
}

impl TaskRecord {
    pub(super) fn encode(&self) -> Item {
        let rest = item([
            (CONTENT, self.content.as_ref().map(text)),
            (KEY, self.key.as_ref().map(text)),
            (RANK, Some(encode_rank(self.rank))),
        ]);
        let loads = encode_loads(&Loads::from_iter([self.load]));
        self.standing.encode().into_iter().chain(rest).chain(loads).collect()
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = reader(item);
        Ok(Self {
            standing: Standing::decode(item)?,
            content: reader.optional_text(CONTENT)?.map(str::to_owned),
            key: reader.optional_text(KEY)?.map(str::to_owned),
            load: decode_loads(&reader)?.get(0),
            rank: decode_rank(&reader)?,
        })
    }
}

impl Content {
    /// The content of a task, with its id; none of a duplicate.
    pub(super) fn decode(item: &Item) -> Result<Option<(TaskId, Self)>, StoreError> {
        let reader = reader(item);
        let Some(json) = reader.optional_text(CONTENT)? else { return Ok(None) };
        let content = Self { json: json.to_owned(), created_at: decode_rank(&reader)?.created_at };
        Ok(Some((reader.parsed(ID)?, content)))
    }
}

/// A place in the order of a lane.
pub(super) fn encode_rank(rank: Rank) -> AttributeValue {
    AttributeValue::N(rank.to_string())
}

/// Reads a place in the order of a lane.
pub(super) fn decode_rank(reader: &Reader<'_>) -> Result<Rank, StoreError> {
    Ok(reader.parsed_number(RANK)?.unwrap_or_default())
}

/// The place of a task in the order of its lane, with its id; none, if it does not wait on its own in this lane.
pub(super) fn decode_ranked(item: &Item, lane: &Lane) -> Result<(TaskId, Option<Rank>), StoreError> {
    let reader = reader(item);
    let waits = reader.text(STATUS)? == State::Created.status() && reader.parsed::<Lane>(LANE)? == *lane;
    Ok((reader.parsed(ID)?, waits.then_some(decode_rank(&reader)?)))
}

fn reader(item: &Item) -> Reader<'_> {
    Reader::new("tasks", ID, item)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grouping::{any_loads, any_rank};
    use crate::testing::{any_id, any_lane, any_task};

    fn any_state() -> impl Strategy<Value = State> {
        prop_oneof![
            Just(State::Created),
            any_id().prop_map(State::Bundled),
            any_id().prop_map(State::Batched),
            any_task().prop_map(State::Duplicate),
            Just(State::Cancelled),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (id, lane, state, loads) in (any_task(), any_lane(), any_state(), any_loads()),
            ttl: Option<u64>,
            [content, key] in prop::array::uniform2(prop::option::of(".{0,9}")),
            rank in any_rank(),
        ) {
            let record = TaskRecord { standing: Standing { id, lane, state, ttl }, content, key, load: loads.get(0), rank };
            let item = record.encode();
            prop_assert_eq!(&TaskRecord::decode(&item).unwrap(), &record);
            let waits = matches!(state, State::Created | State::Bundled(_));
            let load = Load { flushes: record.load.flushes && waits, ..record.load };
            prop_assert_eq!(decode_load(&item).unwrap(), (id, load));
            let lane = record.standing.lane.clone();
            prop_assert_eq!(decode_ranked(&item, &lane).unwrap(), (id, (state == State::Created).then_some(rank)));
            let content = record.content.map(|json| (id, Content { json, created_at: rank.created_at }));
            prop_assert_eq!(Content::decode(&item).unwrap(), content);
        }
    }
}
