//! A lane's rate: calls of its batches are given their times in its lock, by one write each.

use uuid::Uuid;

use super::Locks;
use crate::aws::{Change, StoreError};
use crate::lane::Lane;
use crate::pacing::{Ask, Bucket, Micros, Slot};
use crate::store::pace::{self, Paced};
use crate::store::places::ID;

impl Locks {
    /// A time for a call of one of the lane's batches. `by`: an id that nobody else has.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take_time(&self, lane: &Lane, ask: &Ask, by: Uuid) -> Result<Paced, StoreError> {
        pace::take(|| self.paced(lane), ask, by).await
    }

    /// Promises a time to a batch that waits, by the bucket as it was seen. Returns when its turn comes.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn promise(&self, lane: &Lane, ask: &Ask, seen: &Bucket) -> Result<Micros, StoreError> {
        pace::promise(|| self.paced(lane), ask, seen).await
    }

    /// A later time for a call that missed its own.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn later_time(&self, lane: &Lane, slot: &Slot, ask: &Ask, by: Uuid) -> Result<Paced, StoreError> {
        pace::again(|| self.paced(lane), slot, ask, by).await
    }

    /// Gives a time back that no call will be made at.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn give_time_back(&self, lane: &Lane, slot: &Slot) -> Result<(), StoreError> {
        pace::give_back(self.paced(lane), slot).await
    }

    /// Begins a change of a lock that is there: that of a batch in flight is.
    fn paced(&self, lane: &Lane) -> Change<'_> {
        self.change(lane).when_present(ID)
    }
}
