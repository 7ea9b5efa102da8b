//! A partition of a producer, and how it is stored.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::Page;
use crate::aws::attributes::{Reader, count, expiry, item, json, number, text, time};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::limits::{BAD_ROWS_SHOWN_MAX, ERROR_BYTES_MAX, PARTITION_RETENTION};
use crate::messages::ProduceMessage;
use crate::overdue::overdue;
use crate::producing::BadRow;
use crate::retention::Retention;
use crate::store::shards::shard;
use crate::text::shorten;

/// The sparse index of partitions that a sweep looks at, and its partition key.
pub(super) const UNFINISHED: &str = "unfinished";

/// The state of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartitionState {
    /// Fanfold is reading it.
    Running,
    /// Its source has no more rows, and every row is registered.
    Done,
    /// Its source failed, or had too many bad rows. It continues when it is resumed.
    Failed,
}

impl PartitionState {
    const ALL: [Self; 3] = [Self::Running, Self::Done, Self::Failed];

    /// The state as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl std::str::FromStr for PartitionState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| format!("is `{text}`"))
    }
}

/// A partition of a fan-out's producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The fan-out.
    pub fanout: Uuid,
    /// Which, from 0.
    pub number: u32,
    /// How far it has come.
    pub state: PartitionState,
    /// Pages that are registered, which is the number of the next one.
    pub page: u64,
    /// Where the next page begins, as JSON; none: at the beginning, or there is none.
    pub cursor: Option<String>,
    /// Rows of those pages.
    pub rows: u64,
    /// Those of them that are in other shares.
    pub dropped: u64,
    /// Those of them that are no tasks.
    pub bad: u64,
    /// What is wrong with the first of these.
    pub bad_rows: Vec<BadRow>,
    /// Those whose tasks are duplicates: another one has their key.
    pub duplicates: u64,
    /// Failed tries in a row.
    pub tries: u32,
    /// When the source is asked again after a failure.
    pub due: Option<Timestamp>,
    /// Why it failed the last time.
    pub error: Option<String>,
    /// The worker that moved it on the last time.
    pub worker: Option<Uuid>,
    /// When its message was sent again the last time.
    pub woken_at: Option<Timestamp>,
    /// Whether a sweep no longer looks at it: it is done, and its fan-out was sealed if that was due, or it failed, and its
    /// fan-out is not open any more.
    pub closed: bool,
    /// When it last changed.
    pub updated_at: Timestamp,
}

pub(super) fn key(fanout: Uuid, number: u32) -> String {
    format!("{fanout}/{number}")
}

impl Partition {
    /// One at its beginning.
    #[must_use]
    pub fn new(fanout: Uuid, number: u32, now: Timestamp) -> Self {
        Self {
            fanout,
            number,
            state: PartitionState::Running,
            page: 0,
            cursor: None,
            rows: 0,
            dropped: 0,
            bad: 0,
            bad_rows: Vec::new(),
            duplicates: 0,
            tries: 0,
            due: None,
            error: None,
            worker: None,
            woken_at: None,
            closed: false,
            updated_at: now,
        }
    }

    pub(super) fn key(&self) -> String {
        key(self.fanout, self.number)
    }

    /// The key of the page that it is at.
    pub(super) fn page_key(&self) -> String {
        format!("{}/{}", self.key(), self.page)
    }

    /// Fan-out and number by the key of a record.
    pub(super) fn name(key: &str) -> Option<(Uuid, u32)> {
        let (fanout, number) = key.split_once('/')?;
        Some((fanout.parse().ok()?, number.parse().ok()?))
    }

    /// Whether Fanfold has work left for it.
    #[must_use]
    pub fn unfinished(&self) -> bool {
        self.state != PartitionState::Failed && !self.closed
    }

    /// The message by which it continues.
    #[must_use]
    pub fn message(&self) -> ProduceMessage {
        ProduceMessage::to(self.fanout, self.number)
    }

    /// How long to wait before its source is asked again.
    #[must_use]
    pub fn wait(&self, now: Timestamp) -> Duration {
        self.due.map_or(Duration::ZERO, |due| due.since(now))
    }

    /// Whether the message that it waits for is taken for lost: it was due at `horizon` or before.
    #[must_use]
    pub fn lost(&self, horizon: Timestamp, now: Timestamp) -> bool {
        let awaited = self.due.unwrap_or_default().max(self.updated_at);
        self.unfinished() && overdue(awaited, self.woken_at, horizon, now)
    }

    /// The partition moved on behind the page it is at.
    pub(super) fn behind(&self, page: &Page, duplicates: u64, worker: Uuid, now: Timestamp) -> Self {
        let bad_rows = self.bad_rows.iter().chain(&page.bad_rows).take(BAD_ROWS_SHOWN_MAX).cloned().collect();
        Self {
            state: if page.next.is_some() { PartitionState::Running } else { PartitionState::Done },
            page: self.page + 1,
            cursor: page.next.clone(),
            rows: self.rows + page.rows,
            dropped: self.dropped + page.dropped,
            bad: self.bad + page.bad,
            bad_rows,
            duplicates: self.duplicates + duplicates,
            tries: 0,
            due: None,
            error: None,
            worker: Some(worker),
            woken_at: None,
            closed: false,
            updated_at: now,
            ..*self
        }
    }

    /// The partition after its source failed; `due`: when it is asked again, or never.
    pub(super) fn with_error(&self, error: &str, due: Option<Timestamp>, now: Timestamp) -> Self {
        let state = if due.is_some() { PartitionState::Running } else { PartitionState::Failed };
        let error = Some(shorten(error, ERROR_BYTES_MAX).into_owned());
        Self { state, error, due, tries: self.tries + 1, woken_at: None, updated_at: now, ..self.clone() }
    }

    /// The partition, resumed after it failed.
    pub(super) fn resumed(&self, now: Timestamp) -> Self {
        let state = PartitionState::Running;
        Self { state, tries: 0, due: None, error: None, woken_at: None, closed: false, updated_at: now, ..self.clone() }
    }

    /// Fan-out and number are only in the key.
    pub(super) fn encode(&self, kept: Retention) -> Item {
        item([
            ("id", Some(text(self.key()))),
            ("state", Some(text(self.state.as_str()))),
            ("page", Some(number(self.page))),
            ("cursor", self.cursor.as_ref().map(text)),
            ("rows", count(self.rows)),
            ("dropped", count(self.dropped)),
            ("bad", count(self.bad)),
            ("bad_rows", (!self.bad_rows.is_empty()).then(|| json(&self.bad_rows))),
            ("duplicates", count(self.duplicates)),
            ("tries", Some(number(self.tries))),
            ("due", self.due.map(time)),
            ("error", self.error.as_ref().map(text)),
            ("worker", self.worker.map(crate::aws::attributes::id)),
            ("woken_at", self.woken_at.map(time)),
            (UNFINISHED, (!self.closed).then(|| shard(self.key()))),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", Some(expiry(kept.until(self.updated_at, PARTITION_RETENTION)))),
        ])
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("producers", "id", item);
        let name = Self::name(reader.text("id")?).ok_or_else(|| reader.corrupt("id", "names no partition"))?;
        let state = reader.parsed("state")?;
        Ok(Self {
            fanout: name.0,
            number: name.1,
            state,
            page: reader.number("page")?,
            cursor: reader.optional_text("cursor")?.map(str::to_owned),
            rows: reader.number("rows")?,
            dropped: reader.number("dropped")?,
            bad: reader.number("bad")?,
            bad_rows: reader.optional_json("bad_rows")?.unwrap_or_default(),
            duplicates: reader.number("duplicates")?,
            tries: reader.small("tries")?,
            due: reader.time("due")?,
            error: reader.optional_text("error")?.map(str::to_owned),
            worker: if reader.has("worker") { Some(reader.id("worker")?) } else { None },
            woken_at: reader.time("woken_at")?,
            closed: !reader.has(UNFINISHED),
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::HINT_LOST_AFTER;
    use crate::testing::{any_id, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(
            fanout in any_id(),
            number: u32,
            state in prop::sample::select(PartitionState::ALL.to_vec()),
            [page, rows, dropped, bad, duplicates] in prop::array::uniform5(any::<u64>()),
            tries: u32,
            cursor in prop::option::of(".{0,9}"),
            error in prop::option::of(".{0,9}"),
            due in prop::option::of(any_time()),
            worker in prop::option::of(any_id()),
            closed: bool,
            updated_at in any_time(),
        ) {
            let bad_rows = worker.map(|_| BadRow { row: rows, problem: "is wrong".to_owned() }).into_iter().collect();
            let partition = Partition {
                fanout, number, state, page, cursor, rows, dropped, bad, bad_rows, duplicates, tries, due, error, worker,
                woken_at: due, closed, updated_at,
            };
            let item = partition.encode(Retention::default());
            prop_assert_eq!(item.contains_key(UNFINISHED), !closed);
            prop_assert_eq!(Partition::decode(&item).unwrap(), partition);
        }
    }

    #[test]
    fn a_message_is_taken_for_lost_after_a_while_and_not_every_minute() {
        let begun = Partition::new(Uuid::from_u128(7), 0, Timestamp(10_000_000));
        let at = |seconds: u64| begun.updated_at.plus(Duration::from_secs(seconds));
        let lost =
            |partition: &Partition, seconds: u64| partition.lost(at(seconds).minus(HINT_LOST_AFTER), at(seconds));
        assert!(!lost(&begun, 119) && lost(&begun, 120));
        let woken = Partition { woken_at: Some(at(120)), ..begun.clone() };
        assert!(!lost(&woken, 239) && lost(&woken, 240));
        let long_ago = Partition { woken_at: Some(at(7_200)), ..begun.clone() };
        assert!(!lost(&long_ago, 7_200 + 899) && lost(&long_ago, 7_200 + 900));
        let waiting = Partition { due: Some(at(600)), ..begun.clone() };
        assert!(!lost(&waiting, 719) && lost(&waiting, 720));
        assert!(!lost(&Partition { state: PartitionState::Failed, ..begun.clone() }, 9_999));
    }
}
