//! The sparse index of what waits, which is over tasks on their own and bundles.

use std::ops::ControlFlow;

use uuid::Uuid;

use super::record::{self, ID, PENDING};
use super::{Tasks, bundles};
use crate::aws::attributes::Reader;
use crate::aws::{Item, Looked, Segment, StoreError};
use crate::clock::Timestamp;
use crate::ids::TaskId;
use crate::lane::Lane;

/// A record as the index of what waits shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What it is.
    pub record: PendingRecord,
    /// When it was registered.
    pub created_at: Timestamp,
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
    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("tasks", ID, item);
        let record = match reader.text(ID)?.strip_prefix(bundles::PREFIX) {
            None => PendingRecord::Task(reader.parsed(ID)?),
            Some(id) => PendingRecord::Bundle(id.parse().map_err(|error| reader.corrupt(ID, error))?),
        };
        Ok(Self { record, created_at: Timestamp(reader.number(record::CREATED_AT)?) })
    }
}

impl Tasks {
    /// A lane of this kind in which tasks wait. Looks through at most `pages` pages of the index, which may lag behind.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn pending_of(&self, kind: &str, pages: usize) -> Result<Looked<Lane>, StoreError> {
        let visit = |item| {
            let lane: Lane = Reader::new("tasks", ID, &item).parsed(PENDING)?;
            Ok(if lane.kind == kind { ControlFlow::Break(lane) } else { ControlFlow::Continue(()) })
        };
        self.table.look_through(Some(PENDING), pages, visit).await
    }

    /// One segment of the sparse index of what waits, page by page: hands `visit` each record with its lane.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn scan_pending(&self, segment: Segment, mut visit: impl FnMut(Pending, Lane)) -> Result<(), StoreError> {
        let visit = |item| {
            visit(Pending::decode(&item)?, Reader::new("tasks", ID, &item).parsed(PENDING)?);
            Ok(())
        };
        self.table.scan(Some(PENDING), segment, visit).await
    }
}
