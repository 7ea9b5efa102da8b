//! A kind's rate: the write that takes a call's place also takes its time.

use uuid::Uuid;

use super::{Denied, Gate, Gates, Place, key};
use crate::aws::{Change, StoreError, Write};
use crate::clock::Timestamp;
use crate::pacing::{Ask, Bucket, CallTime, Micros};
use crate::store::pace::{self, Paced};
use crate::store::places::ID;

impl Gates {
    /// Takes a place, as [`Gates::take`] does, and a time for its holder's call.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take_in_time(
        &self,
        place: &Place,
        places_max: u32,
        now: Timestamp,
        ask: Option<&Ask>,
    ) -> Result<Write<Gate, Denied>, StoreError> {
        if place.record != 0 {
            return self.take_further(place, places_max, now, ask).await;
        }
        Ok(match self.0.ask(place, places_max, now, ask).await? {
            Write::Done(item) => Write::Done(Gate::decode(&item)?),
            Write::Refused(item) => {
                let (gate, room) = (Gate::decode(&item)?, self.spread().room(place.record, places_max));
                Write::Refused(match gate.held(now) >= room as usize {
                    _ if gate.stopped.is_some() => Denied::StandsStill(Box::new(gate)),
                    true => Denied::Full(gate.places),
                    false => Denied::NotYet(Box::new(gate)),
                })
            }
        })
    }

    /// Promises a time to a batch that waits. `seen`: the bucket as it was last read. Returns when the batch's turn comes.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn promise(&self, kind: &str, ask: &Ask, seen: &Bucket) -> Result<Micros, StoreError> {
        pace::promise(|| self.paced(kind), ask, seen).await
    }

    /// Takes a later time for a call that missed its own, or does not know it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn later_time(
        &self,
        kind: &str,
        given: Option<&CallTime>,
        ask: &Ask,
        by: Uuid,
    ) -> Result<Paced, StoreError> {
        match given {
            Some(given) => pace::again(|| self.paced(kind), given, ask, by).await,
            None => pace::take(|| self.paced(kind), ask, by).await,
        }
    }

    /// Releases a time that will not be used for a call.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn release_time(&self, kind: &str, given: &CallTime) -> Result<(), StoreError> {
        pace::release(self.paced(kind), given).await
    }

    pub(super) fn paced(&self, kind: &str) -> Change<'_> {
        self.table().change(ID, key(kind)).when_present(ID)
    }
}
