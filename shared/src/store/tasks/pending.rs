//! The sparse index of what waits, which is over tasks on their own and bundles.

use std::ops::ControlFlow;

use uuid::Uuid;

use super::record::{self, ID, PENDING};
use super::{Tasks, bundles, cancel};
use crate::aws::attributes::{Reader, item, text};
use crate::aws::{Extent, Item, Looked, Section, Segment, StoreError};
use crate::clock::Timestamp;
use crate::grouping::Rank;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::policy::HeadStart;

/// A record as the index of what waits shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What it is.
    pub record: PendingRecord,
    /// Its place in the order of its lane.
    pub rank: Rank,
}

/// A record that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PendingRecord {
    /// A task on its own.
    Task(TaskId),
    /// A bundle.
    Bundle(Uuid),
}

impl PendingRecord {
    /// The task, if it is one on its own.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Task(id) => Some(*id),
            Self::Bundle(_) => None,
        }
    }

    /// The bundle, if it is one.
    #[must_use]
    pub fn bundle(&self) -> Option<Uuid> {
        match self {
            Self::Task(_) => None,
            Self::Bundle(id) => Some(*id),
        }
    }
}

impl Pending {
    /// When it was registered.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.rank.created_at
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("tasks", ID, item);
        let record = match reader.text(ID)?.strip_prefix(bundles::PREFIX) {
            None => PendingRecord::Task(reader.parsed(ID)?),
            Some(id) => PendingRecord::Bundle(id.parse().map_err(|error| reader.corrupt(ID, error))?),
        };
        Ok(Self { record, rank: record::decode_rank(&reader)? })
    }
}

/// The end of a page of what waits: a record of the index.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PendingCursor {
    lane: Lane,
    /// When it was registered, and its id.
    after: (u64, String),
    /// Its head start, in seconds.
    head_start: u32,
}

impl PendingCursor {
    /// After this record.
    #[must_use]
    pub fn after(pending: &Pending, lane: &Lane) -> Self {
        let id = match pending.record {
            PendingRecord::Task(id) => id.to_string(),
            PendingRecord::Bundle(id) => bundles::record_id(id),
        };
        let Rank { created_at, head_start } = pending.rank;
        Self { lane: lane.clone(), after: (created_at.0, id), head_start: head_start.seconds() }
    }

    /// The lane of that record.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    fn start(&self) -> Item {
        let (created_at, id) = &self.after;
        let rank = Rank::new(Timestamp(*created_at), HeadStart::stored(self.head_start).min(HeadStart::MAX));
        let (lane, rank, id) = (text(&self.lane), record::encode_rank(rank), text(id));
        item([(PENDING, Some(lane)), (record::RANK, Some(rank)), (ID, Some(id))])
    }
}

/// A page of what waits.
#[derive(Clone, Debug)]
pub struct PendingPage {
    /// The records, each with its lane.
    pub records: Vec<(Pending, Lane)>,
    /// Whether there may be more.
    pub more: bool,
}

impl Tasks {
    /// A lane of this kind in which tasks wait. Looks through at most `pages` pages of the index, which may lag behind.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn pending_of(&self, kind: &str, pages: usize) -> Result<Looked<Lane>, StoreError> {
        let visit = |item| {
            if cancel::note_in(&item)?.is_some() {
                return Ok(ControlFlow::Continue(()));
            }
            let lane: Lane = Reader::new("tasks", ID, &item).parsed(PENDING)?;
            Ok(if lane.kind == kind { ControlFlow::Break(lane) } else { ControlFlow::Continue(()) })
        };
        self.table.look_through(Some(PENDING), pages, visit).await
    }

    /// A page of the records that wait in a lane, in its order, as the index shows them.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn pending_in(
        &self,
        lane: &Lane,
        after: Option<&PendingCursor>,
        size: usize,
    ) -> Result<PendingPage, StoreError> {
        let (items, next) =
            self.table.page(&Section::all(PENDING, lane), size, after.map(PendingCursor::start)).await?;
        let records = items.iter().map(|item| Ok((Pending::decode(item)?, lane.clone())));
        Ok(PendingPage { records: records.collect::<Result<_, StoreError>>()?, more: next.is_some() })
    }

    /// A page of what waits in all lanes, in no order, as the index shows it.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn pending(&self, after: Option<&PendingCursor>, size: usize) -> Result<PendingPage, StoreError> {
        let mut start = after.map(PendingCursor::start);
        loop {
            let (items, next) = self.table.scan_page(PENDING, size, start).await?;
            let mut records = Vec::with_capacity(items.len());
            for item in &items {
                if cancel::note_in(item)?.is_none() {
                    records.push((Pending::decode(item)?, Reader::new("tasks", ID, item).parsed(PENDING)?));
                }
            }
            // The next page begins after the last of the records. A page of nothing but notes of cancellations has none.
            if !records.is_empty() || next.is_none() {
                return Ok(PendingPage { records, more: next.is_some() });
            }
            start = next;
        }
    }

    /// How much waits, as the sparse index shows it.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn pending_extent(&self) -> Result<Extent, StoreError> {
        self.table.extent(PENDING).await
    }

    /// One segment of the sparse index of what waits, page by page: hands `visit` each record with its lane. Returns the ids of
    /// the open notes of cancellations in it.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn scan_pending(
        &self,
        segment: Segment,
        mut visit: impl FnMut(Pending, Lane),
    ) -> Result<Vec<Uuid>, StoreError> {
        let mut notes = Vec::new();
        let visit = |item| {
            if let Some(note) = cancel::note_in(&item)? {
                notes.push(note);
                return Ok(());
            }
            visit(Pending::decode(&item)?, Reader::new("tasks", ID, &item).parsed(PENDING)?);
            Ok(())
        };
        self.table.scan(Some(PENDING), segment, visit).await?;
        Ok(notes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grouping::any_rank;
    use crate::testing::{any_id, any_lane};

    proptest! {
        #[test]
        fn a_page_goes_on_where_one_ended(id in any_id(), lane in any_lane(), rank in any_rank()) {
            let pending = Pending { record: PendingRecord::Bundle(id), rank };
            let cursor = PendingCursor::after(&pending, &lane);
            let read: PendingCursor = serde_json::from_str(&serde_json::to_string(&cursor).unwrap()).unwrap();
            prop_assert_eq!(&read, &cursor);
            let start = read.start();
            prop_assert_eq!(&start[record::RANK], &record::encode_rank(rank));
            prop_assert_eq!(Pending::decode(&start).unwrap(), pending);
        }
    }

    #[test]
    fn a_cursor_with_a_head_start_of_more_than_there_may_be_is_read() {
        let far =
            PendingCursor { lane: "parcel:0:NY".parse().unwrap(), after: (5, "x".to_owned()), head_start: u32::MAX };
        assert_eq!(far.start()[record::RANK].as_n().unwrap(), "5", "anybody may send one");
    }
}
