//! Places: how many calls of a step one party may hold at once, so that the rest is left to others. A party with few places has
//! one record, beside the locks. One with many has several, so that no record limits how often places are taken.
//!
//! A place is held under a unique id, until it is released or its lease ends. Each change is one conditional write. Places
//! keep a step available; safety does not rest on them.

mod spread;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::aws::attributes::{Reader, expiry, number, text, time};
use crate::aws::{Change, Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES_MAX, DEAD_PLACES_MAX, PLACES_RETENTION};
use crate::pacing::{Ask, Verdict};
use crate::store::pace;

pub use self::spread::{Spread, pick};

/// The prefix of the keys of these records. No lane has it, since a kind has no `/`.
pub(crate) const PREFIX: &str = "places/";

/// The prefix of the key of a kind's first record.
const OF_KIND: &str = "places/kind/";

/// The holder of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Party {
    /// The calls of a kind's batch API. There are as many kinds as policies, and their first records hold more: these are kept.
    Kind(String),
    /// The invocations that call a receiver of notices. Users may name any number of receivers, so their records expire.
    Receiver(String),
}

impl Party {
    /// The key of its first record.
    #[must_use]
    pub fn key(&self) -> String {
        self.key_of(0)
    }

    /// The key of one of its records.
    #[must_use]
    pub(super) fn key_of(&self, record: u32) -> String {
        // The number is not at the end, as names of receivers may end in anything.
        let further = if record == 0 { String::new() } else { format!("{record}/") };
        let sort = match self {
            Self::Kind(_) => KIND,
            Self::Receiver(_) => "receiver",
        };
        format!("{PREFIX}{further}{sort}/{}", self.name())
    }

    /// The kind, or the receiver.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Kind(name) | Self::Receiver(name) => name,
        }
    }

    /// The kind whose first record has this key.
    #[must_use]
    pub fn kind(key: &str) -> Option<&str> {
        key.strip_prefix(OF_KIND)
    }
}

/// A place that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The party that it belongs to.
    pub party: Party,
    /// Which of its records it is in.
    pub record: u32,
    /// The id it is held under.
    pub holder: Uuid,
    /// When its lease ends.
    pub until: Timestamp,
}

impl Place {
    fn key(&self) -> String {
        self.party.key_of(self.record)
    }
}

/// Who holds the places of a record, and until when.
pub type Holders = BTreeMap<Uuid, Timestamp>;

/// The places of all parties.
#[derive(Clone, Debug)]
pub struct Places {
    pub(super) table: Table,
    /// How the places of a party are spread over records.
    pub spread: Spread,
}

impl Places {
    /// The places in `table`, which is that of the locks.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, spread: Spread::default() }
    }

    /// The same with places that are spread over records in another way.
    #[must_use]
    pub fn spread_by(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// Takes a place in its record, if that has one free: the party has `places_max` in all. Places whose lease ended make room, some of them in each write. A holder
    /// that has one already keeps it, until its new lease ends. False: all are taken.
    ///
    /// # Errors
    /// The table cannot be written, the record is corrupt, or too many others take and release at once.
    pub async fn take(&self, place: &Place, places_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.ask(place, places_max, now, None).await?.is_done())
    }

    /// Takes a place in one of the party's records, beginning with a random one. Returns it, unless all are taken.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub async fn take_any(
        &self,
        place: Place,
        places_max: u32,
        now: Timestamp,
        random: u64,
    ) -> Result<Option<Place>, StoreError> {
        for record in self.spread.all(places_max, random) {
            let place = Place { record, ..place.clone() };
            if self.take(&place, places_max, now).await? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Takes a place as [`Self::take`] does, unless the record says that the party stands still. `pace`: the same write also gives the holder a time for its call, and is
    /// refused if the rate has none. Returns the record.
    pub(super) async fn ask(
        &self,
        place: &Place,
        places_max: u32,
        now: Timestamp,
        pace: Option<&Ask>,
    ) -> Result<Write<Item, Item>, StoreError> {
        let (mut over, mut seen) = (Vec::new(), None);
        let room = self.spread.room(place.record, places_max);
        for _ in 0..CONTENTION_TRIES_MAX {
            let mut change = self.taking(place, room, &over);
            if let Some(ask) = pace {
                change = pace::give(change, ask, place.holder, seen.as_ref());
            }
            let item = match change.send_for_new().await? {
                Write::Done(item) => return Ok(Write::Done(item)),
                Write::Refused(None) => {
                    self.make(place, now).await?;
                    continue;
                }
                Write::Refused(Some(item)) => item,
            };
            let holders = holders(&item)?;
            // This very write, whose answer was lost.
            if holders.get(&place.holder) == Some(&place.until) {
                return Ok(Write::Done(item));
            }
            if item.contains_key(STOPPED_AT) || held(&holders, now) >= room as usize {
                return Ok(Write::Refused(item));
            }
            if let Some(ask) = pace {
                let bucket = pace::decode(&Reader::new("locks", ID, &item))?;
                if bucket.verdict(ask) != Verdict::Go {
                    return Ok(Write::Refused(item));
                }
                seen = Some(bucket);
            }
            over = dead(&holders, now).take(DEAD_PLACES_MAX).collect();
            if holders.len() - over.len() >= room as usize {
                self.free(place.key(), &over).await?;
                over.clear();
            }
        }
        Err(StoreError::Contended { what: format!("taking one of the places `{}`", place.key()) })
    }

    /// Takes a place, and removes places whose lease ended.
    fn taking(&self, place: &Place, room: u32, over: &[(Uuid, Timestamp)]) -> Change<'_> {
        let room = room.saturating_add(u32::try_from(over.len()).unwrap_or(u32::MAX));
        let change = self
            .of(place)
            .set(MY_PLACE, time(place.until))
            .set_some(TTL, retention(place, place.until))
            .when_present(PLACES)
            .when("size(places) < :room OR attribute_exists(places.#me)", [(":room", number(room))])
            .when_absent(STOPPED_AT);
        without(change, over)
    }

    /// Releases a place. It may have been released before, or taken away because its lease ended.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn release(&self, place: &Place) -> Result<(), StoreError> {
        self.if_held(place).remove([MY_PLACE]).send().await.map(|_| ())
    }

    /// Frees places of the record with this key, if they are still held as they were.
    pub(super) async fn free(&self, key: String, places: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
        without(self.table.change(ID, key), places).send().await.map(|_| ())
    }

    /// Makes the record that this place is in, if there is none.
    pub(super) async fn make(&self, place: &Place, now: Timestamp) -> Result<(), StoreError> {
        let kind = match &place.party {
            Party::Kind(kind) => Some(text(kind)),
            Party::Receiver(_) => None,
        };
        let change = self
            .table
            .change(ID, place.key())
            .set(PLACES, encode(&Holders::new()))
            .set_some(KIND, kind)
            .set_some(TTL, retention(place, now))
            .when_absent(PLACES);
        change.send().await.map(|_| ())
    }

    /// Begins a change of the record that a place is in: [`MY_PLACE`] is the place.
    pub(super) fn of(&self, place: &Place) -> Change<'_> {
        self.table.change(ID, place.key()).name("#me", place.holder)
    }

    /// The same, on condition that the place is held.
    pub(super) fn if_held(&self, place: &Place) -> Change<'_> {
        self.of(place).when_present(MY_PLACE)
    }
}

/// The attribute that is the records' key, and the locks'.
pub(super) const ID: &str = "lane";
/// The kind whose record it is.
pub(super) const KIND: &str = "kind";
/// Who holds a place, and until when.
pub(super) const PLACES: &str = "places";
/// When the record expires.
const TTL: &str = "ttl";

/// The place that a change is about.
pub(super) const MY_PLACE: &str = "places.#me";

/// While a kind's first record has this, no place in it can be taken: the kind stands still.
pub(super) const STOPPED_AT: &str = "stopped_at";

/// When the record of a place expires that was last used until then. The first one of a kind holds more than places.
fn retention(place: &Place, until: Timestamp) -> Option<AttributeValue> {
    match (&place.party, place.record) {
        (Party::Kind(_), 0) => None,
        _ => Some(expiry(until.plus(PLACES_RETENTION))),
    }
}

/// Places held whose lease has not ended.
pub(super) fn held(holders: &Holders, now: Timestamp) -> usize {
    holders.values().filter(|until| **until >= now).count()
}

/// Places whose lease has ended.
pub(super) fn dead(holders: &Holders, now: Timestamp) -> impl Iterator<Item = (Uuid, Timestamp)> + '_ {
    holders.iter().filter(move |(_, until)| **until < now).map(|(holder, until)| (*holder, *until))
}

/// The places of a record.
pub(super) fn encode(holders: &Holders) -> AttributeValue {
    AttributeValue::M(holders.iter().map(|(holder, until)| (holder.to_string(), time(*until))).collect())
}

/// Who holds the places of a record.
pub(super) fn holders(item: &Item) -> Result<Holders, StoreError> {
    let wrong = || Reader::new("locks", ID, item).corrupt(PLACES, "is not a map of ids to times");
    let holder = |(holder, until): (&String, &AttributeValue)| {
        let until = until.as_n().ok().and_then(|until| until.parse().ok()).map(Timestamp);
        holder.parse().ok().zip(until).ok_or_else(wrong)
    };
    match item.get(PLACES) {
        None => Ok(Holders::new()),
        Some(AttributeValue::M(places)) => places.iter().map(holder).collect(),
        Some(_) => Err(wrong()),
    }
}

/// A change that also removes places, if they are still held as they were.
fn without<'a>(change: Change<'a>, places: &[(Uuid, Timestamp)]) -> Change<'a> {
    places.iter().enumerate().fold(change, |change, (n, (holder, until))| {
        let path = format!("places.#d{n}");
        change.name(format!("#d{n}"), holder).remove([path.as_str()]).when_is(&path, time(*until))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_id, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(places in prop::collection::btree_map(any_id(), any_time(), 0..9)) {
            let item = Item::from([(PLACES.to_owned(), encode(&places))]);
            prop_assert_eq!(holders(&item).unwrap(), places);
        }
    }
}
