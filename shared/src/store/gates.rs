//! Gates: the places that calls of a kind's batch API take. Their number is limited: an API that hangs holds no more than its
//! kind's places. The breaker uses the same record: while a kind stands still, a place is given only to a probe. Where a
//! kind has many places, those that this record has no room for are in further ones.

mod breaker;
mod further;
mod pace;
mod record;

use uuid::Uuid;

use super::notices::Notices;
use super::places::{ID, MY_PLACE, Party, Place, Places, STOPPED_AT, Spread, held, holders};
use crate::aws::attributes::{Reader, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{DEAD_PLACES_MAX, OTHER_KINDS_SHARE};

pub use self::breaker::RefusedCall;
pub use self::further::Denied;
pub use self::record::{Gate, Probe, Stopped};

/// The gates.
#[derive(Clone, Debug)]
pub struct Gates(Places);

impl From<Places> for Gates {
    fn from(places: Places) -> Self {
        Self(places)
    }
}

impl Gates {
    /// The gates in `table`, which is that of the locks.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(Places::new(table))
    }

    /// How the places of a kind are spread over records.
    #[must_use]
    pub fn spread(&self) -> Spread {
        self.0.spread
    }

    /// Reads the gates of several kinds; those never used are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, kinds: &[&str]) -> Result<Vec<Gate>, StoreError> {
        let keys: Vec<String> = kinds.iter().map(|kind| key(kind)).collect();
        self.table().get_many(ID, &keys, &[], true).await?.iter().map(Gate::decode).collect()
    }

    /// Reads the gate of a kind. None: it was never used.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, kind: &str) -> Result<Option<Gate>, StoreError> {
        self.table().get(ID, key(kind), true).await?.as_ref().map(Gate::decode).transpose()
    }

    /// The notices that kinds stand still, or resume.
    #[must_use]
    pub fn notices(&self) -> Notices {
        Notices::new(self.table().clone(), ID, false)
    }

    /// Takes a place, if one of the kind's `places_max` is free in its record and the kind does not stand still: see
    /// [`Places::take`].
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take(
        &self,
        place: &Place,
        places_max: u32,
        now: Timestamp,
    ) -> Result<Write<Gate, Denied>, StoreError> {
        self.take_in_time(place, places_max, now, None).await
    }

    /// Releases a place. It may have been released before, or taken away because its lease ended.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn release(&self, place: &Place) -> Result<(), StoreError> {
        self.0.release(place).await
    }

    /// How many of a kind's `places_max` places are held, whose lease has not ended.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn held(&self, kind: &str, places_max: u32, now: Timestamp) -> Result<usize, StoreError> {
        let records = self.records(kind, places_max, true).await?;
        records.iter().map(|record| Ok(held(&holders(record)?, now))).sum()
    }

    /// Frees every one of a kind's `places_max` places, since the workers that held them are known to be dead. The calls that may
    /// still work at the batch API take their places anew, by [`Gates::keep_place`]. A kind that stands still is probed at once.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn clear(&self, kind: &str, places_max: u32) -> Result<(), StoreError> {
        for record in self.records(kind, places_max, true).await? {
            let places: Vec<(Uuid, Timestamp)> = holders(&record)?.into_iter().collect();
            for places in places.chunks(DEAD_PLACES_MAX) {
                self.0.free(Reader::new("locks", ID, &record).text(ID)?.to_owned(), places).await?;
            }
            if record.contains_key(STOPPED_AT) {
                self.hasten(kind).await?;
            }
        }
        Ok(())
    }

    /// Keeps a place for a call that began before: one of the kind's `places_max`, or one more if all are held.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn keep_place(&self, place: &Place, places_max: u32) -> Result<(), StoreError> {
        // The same records, in the same order, for the same call.
        let random = u64::try_from(place.holder.as_u128() >> 64).unwrap_or_default();
        if self.0.take_any(place.clone(), places_max, self.table().world.now(), random).await?.is_some() {
            return Ok(());
        }
        self.0.of(place).set(MY_PLACE, time(place.until)).send().await.map(|_| ())
    }

    /// The records that a kind's `places_max` places are in, in no order; those never used are left out.
    async fn records(&self, kind: &str, places_max: u32, consistent: bool) -> Result<Vec<Item>, StoreError> {
        let party = Party::Kind(kind.to_owned());
        let keys: Vec<String> = (0..self.spread().records(places_max)).map(|record| party.key_of(record)).collect();
        self.table().get_many(ID, &keys, &[], consistent).await
    }

    fn table(&self) -> &Table {
        &self.0.table
    }
}

/// The calls of one kind that may run at once: all but those kept for other kinds, at least one.
#[must_use]
pub fn places_max(concurrency: u32) -> u32 {
    (concurrency - concurrency.div_ceil(OTHER_KINDS_SHARE)).max(1)
}

fn key(kind: &str) -> String {
    Party::Kind(kind.to_owned()).key()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_leaves_a_quarter_to_others_where_there_is_more_than_one_place() {
        let places: Vec<u32> = [0, 1, 2, 3, 4, 5, 8, 20, 1_000].into_iter().map(places_max).collect();
        assert_eq!(places, [1, 1, 1, 2, 3, 3, 6, 15, 750]);
    }
}
