//! A lane's lock, and how it is stored.

use uuid::Uuid;

use crate::aws::attributes::Reader;
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::lane::Lane;
use crate::store::places::ID;

/// The sparse index of lanes that are busy, and its partition key.
pub(super) const ACTIVE: &str = "active";
pub(super) const HOLDER: &str = "holder";
pub(super) const ACQUIRED_AT: &str = "acquired_at";
pub(super) const ELECTED_AT: &str = "elected_at";
pub(super) const EPOCH: &str = "epoch";
pub(super) const IN_FLIGHT: &str = "in_flight";
pub(super) const CLOSING: &str = "closing";
pub(super) const WAITING: &str = "waiting";
/// When the record expires.
pub(super) const TTL: &str = "ttl";

/// A lane's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lane.
    pub lane: Lane,
    /// The leader: the batch that is being formed.
    pub holder: Option<Uuid>,
    /// When the leader got the lane, or when its message was last sent again.
    pub acquired_at: Option<Timestamp>,
    /// When the leader got the lane, if its message was sent again since.
    pub elected_at: Option<Timestamp>,
    /// Counts the leaders of this lane.
    pub epoch: u64,
    /// Batches formed and not ended.
    pub in_flight: Vec<Uuid>,
    /// Batches ended whose acks and notices are on their way.
    pub closing: Vec<Uuid>,
    /// A leader found more tasks than it may put in flight: the end of a batch leads on.
    pub waiting: bool,
    /// The index of busy lanes shows it.
    pub active: bool,
}

impl Lock {
    /// The lock of a lane that was never used.
    #[must_use]
    pub fn free(lane: Lane) -> Self {
        Self {
            lane,
            holder: None,
            acquired_at: None,
            elected_at: None,
            epoch: 0,
            in_flight: Vec::new(),
            closing: Vec::new(),
            waiting: false,
            active: false,
        }
    }

    /// Whether `batch` could become the leader now, or leads already. Only the conditional write decides.
    #[must_use]
    pub fn open_to(&self, batch: Uuid, max_in_flight: u32) -> bool {
        self.holder.is_none_or(|holder| holder == batch) && !self.full(max_in_flight)
    }

    /// Whether a leader could be elected now. Only the conditional write decides.
    #[must_use]
    pub fn open(&self, max_in_flight: u32) -> bool {
        self.holder.is_none() && !self.full(max_in_flight)
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
        let reader = Reader::new("locks", ID, item);
        Ok(Self {
            lane: reader.parsed(ID)?,
            holder: reader.optional_parsed(HOLDER)?,
            acquired_at: reader.time(ACQUIRED_AT)?,
            elected_at: reader.time(ELECTED_AT)?,
            epoch: reader.number(EPOCH)?,
            in_flight: reader.ids(IN_FLIGHT)?,
            closing: reader.ids(CLOSING)?,
            waiting: reader.has(WAITING),
            active: reader.has(ACTIVE),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aws::attributes::{id_set, item, number, text, time};
    use crate::testing::{any_id, any_lane, any_time};

    /// A record as the writes of [`super::super::Locks`] leave it.
    fn encode(lock: &Lock) -> Item {
        let ids = |ids: &Vec<Uuid>| (!ids.is_empty()).then(|| id_set(ids));
        item([
            (ID, Some(text(&lock.lane))),
            (HOLDER, lock.holder.map(text)),
            (ACQUIRED_AT, lock.acquired_at.map(time)),
            (ELECTED_AT, lock.elected_at.map(time)),
            (EPOCH, Some(number(lock.epoch))),
            (IN_FLIGHT, ids(&lock.in_flight)),
            (CLOSING, ids(&lock.closing)),
            (WAITING, lock.waiting.then(|| number(0_u32))),
            (ACTIVE, lock.active.then(|| text(0))),
        ])
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            lane in any_lane(),
            holder in prop::option::of(any_id()),
            [acquired_at, elected_at] in prop::array::uniform2(prop::option::of(any_time())),
            epoch: u64,
            [in_flight, closing] in prop::array::uniform2(prop::collection::vec(any_id(), 0..4)),
            [waiting, active]: [bool; 2],
        ) {
            let lock = Lock { lane, holder, acquired_at, elected_at, epoch, in_flight, closing, waiting, active };
            prop_assert_eq!(Lock::decode(&encode(&lock)).unwrap(), lock);
        }
    }
}
