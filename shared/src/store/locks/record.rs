//! A lane's lock, and how it is stored.

use uuid::Uuid;

use crate::aws::attributes::Reader;
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::lane::Lane;

/// A lane's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lane.
    pub lane: Lane,
    /// The leader: the batch that is being formed.
    pub holder: Option<Uuid>,
    /// When the leader last gave a sign of life.
    pub acquired_at: Option<Timestamp>,
    /// Counts the leaders of this lane.
    pub epoch: u64,
    /// Batches dispatched and not ended.
    pub in_flight: Vec<Uuid>,
    /// Batches ended whose acks and notices are on their way.
    pub closing: Vec<Uuid>,
    /// An operator stopped the lane.
    pub paused: bool,
    /// A leader found more tasks than it may put in flight; whoever ends a batch leads on.
    pub waiting: bool,
}

impl Lock {
    /// The lock of a lane that nobody has used yet.
    #[must_use]
    pub fn free(lane: Lane) -> Self {
        Self {
            lane,
            holder: None,
            acquired_at: None,
            epoch: 0,
            in_flight: Vec::new(),
            closing: Vec::new(),
            paused: false,
            waiting: false,
        }
    }

    /// Whether `batch` could become the leader now. Only the conditional write decides.
    #[must_use]
    pub fn open_to(&self, batch: Uuid, max_in_flight: u32) -> bool {
        self.holder.is_none_or(|holder| holder == batch) && !self.paused && !self.full(max_in_flight)
    }

    /// Whether as many batches are in flight as may be.
    #[must_use]
    pub fn full(&self, max_in_flight: u32) -> bool {
        self.in_flight.len() >= max_in_flight as usize
    }

    /// Whether a batch is known to be in flight or closing.
    #[must_use]
    pub fn names(&self, batch: Uuid) -> bool {
        self.in_flight.contains(&batch) || self.closing.contains(&batch)
    }

    /// Whether there is nothing left to do for the lane.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.holder.is_none() && self.in_flight.is_empty() && self.closing.is_empty()
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("locks", "lane", item);
        Ok(Self {
            lane: reader.parsed("lane")?,
            holder: reader.optional_parsed("holder")?,
            acquired_at: reader.time("acquired_at")?,
            epoch: reader.number("epoch")?,
            in_flight: reader.ids("in_flight")?,
            closing: reader.ids("closing")?,
            paused: reader.has("paused"),
            waiting: reader.has("waiting"),
        })
    }
}
