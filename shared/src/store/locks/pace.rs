//! A lane's rate: each call of its batches takes its time by one write on the lane's lock.

use uuid::Uuid;

use super::Locks;
use crate::aws::{Change, StoreError};
use crate::lane::Lane;
use crate::pacing::{Ask, Bucket, CallTime, Micros};
use crate::store::pace::{self, Paced};
use crate::store::places::ID;

impl Locks {
    /// Takes a time for a call of one of the lane's batches. `by`: an id that no other call has.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take_time(&self, lane: &Lane, ask: &Ask, by: Uuid) -> Result<Paced, StoreError> {
        pace::take(|| self.paced(lane), ask, by).await
    }

    /// Promises a time to a batch that waits. `seen`: the bucket as it was last read. Returns when the batch's turn comes.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn promise(&self, lane: &Lane, ask: &Ask, seen: &Bucket) -> Result<Micros, StoreError> {
        pace::promise(|| self.paced(lane), ask, seen).await
    }

    /// Takes a later time for a call that missed its own.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn later_time(&self, lane: &Lane, given: &CallTime, ask: &Ask, by: Uuid) -> Result<Paced, StoreError> {
        pace::again(|| self.paced(lane), given, ask, by).await
    }

    /// Releases a time that will not be used for a call.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn release_time(&self, lane: &Lane, given: &CallTime) -> Result<(), StoreError> {
        pace::release(self.paced(lane), given).await
    }

    /// Begins a change of a lock that exists, as it does while a batch is in flight.
    fn paced(&self, lane: &Lane) -> Change<'_> {
        self.change(lane).when_present(ID)
    }
}
