//! Places: how much of a step one party may hold at once, so that the rest is left to others. One record a party, beside the
//! locks.
//!
//! A place is held under an id that nobody else has, until it is given back or its lease ends. Each change is one conditional
//! write. Places keep a step free; what must not happen twice does not rest on them.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use uuid::Uuid;

use crate::aws::attributes::{Reader, number, text, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES, MOST_DEAD, PLACES_RETENTION};

/// What the keys of these records begin with. No lane is called so: there is no `/` in a kind.
pub const PREFIX: &str = "places/";

/// What the key of a kind's record begins with.
const KIND: &str = "places/kind/";

/// Whose places they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Party {
    /// The calls of a kind's batch API. There are as many as policies, and their records hold more: they are kept.
    Kind(String),
    /// The invocations that call a receiver of notices. Anybody may name another one: their records expire.
    Receiver(String),
}

impl Party {
    /// The key of its record.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Kind(name) => format!("{KIND}{name}"),
            Self::Receiver(name) => format!("{PREFIX}receiver/{name}"),
        }
    }

    /// The kind whose record has this key.
    #[must_use]
    pub fn kind(key: &str) -> Option<&str> {
        key.strip_prefix(KIND)
    }
}

/// A place that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub party: Party,
    /// Who holds it.
    pub holder: Uuid,
    /// When its lease ends.
    pub until: Timestamp,
}

/// Who holds a party's places, and until when.
pub type Holders = BTreeMap<Uuid, Timestamp>;

/// The places of all parties.
#[derive(Clone, Debug)]
pub struct Places(pub(super) Table);

impl Places {
    /// The places in `table`, which is that of the locks.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Takes a place, if fewer than `share` are held. Places whose lease ended make room, some of them in each write. Who holds
    /// it already keeps it, until then. False: all are taken.
    ///
    /// # Errors
    /// The table cannot be written, the record is corrupt, or too many others take and give back at once.
    pub async fn take(&self, place: &Place, share: u32, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.ask(place, share, now).await?.is_ok())
    }

    /// The same, unless the party stands still. Answers the record as it stands; in `Err` the one that refused.
    pub(super) async fn ask(
        &self,
        place: &Place,
        share: u32,
        now: Timestamp,
    ) -> Result<Result<Item, Item>, StoreError> {
        let mut over = Vec::new();
        for _ in 0..CONTENTION_TRIES {
            let item = match self.0.send_update(self.taking(place, share, &over)).await? {
                Write::Done(Some(item)) => return Ok(Ok(item)),
                Write::Done(None) | Write::Refused(None) => {
                    self.make(&place.party, now).await?;
                    continue;
                }
                Write::Refused(Some(item)) => item,
            };
            let holders = holders(&item)?;
            // One's own write whose answer was lost.
            if holders.get(&place.holder) == Some(&place.until) {
                return Ok(Ok(item));
            }
            if item.contains_key(STOPPED) || held(&holders, now) >= share as usize {
                return Ok(Err(item));
            }
            over = dead(&holders, now).take(MOST_DEAD).collect();
            if holders.len() - over.len() >= share as usize {
                self.free(&place.party, &over).await?;
                over.clear();
            }
        }
        Err(StoreError::Contended { what: format!("taking one of {}", place.party.key()) })
    }

    /// Takes a place, and those of the dead away.
    fn taking(&self, place: &Place, share: u32, over: &[(Uuid, Timestamp)]) -> UpdateItemFluentBuilder {
        let room = share.saturating_add(u32::try_from(over.len()).unwrap_or(u32::MAX));
        let mut update = self
            .of(place)
            .expression_attribute_values(":until", time(place.until))
            .expression_attribute_values(":room", number(room));
        let mut set = "SET places.#me = :until".to_owned();
        if let Some(ttl) = retention(&place.party, place.until) {
            set.push_str(", #ttl = :ttl");
            update = update.expression_attribute_names("#ttl", "ttl").expression_attribute_values(":ttl", ttl);
        }
        let room = format!(
            "attribute_exists(places) AND (size(places) < :room OR attribute_exists(places.#me)) \
             AND attribute_not_exists({STOPPED})"
        );
        without(over, update, vec![room], &set).return_values(ReturnValue::AllNew)
    }

    /// Gives a place back. It may have been given back before, or taken away because its lease ended.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn give_back(&self, place: &Place) -> Result<(), StoreError> {
        let update =
            self.of(place).update_expression("REMOVE places.#me").condition_expression("attribute_exists(places.#me)");
        self.0.send_update(update).await.map(|_| ())
    }

    /// Frees places, if they are still held as they were.
    pub(super) async fn free(&self, party: &Party, places: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
        let update = self.0.update("lane", party.key());
        self.0.send_update(without(places, update, Vec::new(), "")).await.map(|_| ())
    }

    /// Makes the record of a party that has none.
    pub(super) async fn make(&self, party: &Party, now: Timestamp) -> Result<(), StoreError> {
        let mut set = "SET places = :none".to_owned();
        let mut update =
            self.0.update("lane", party.key()).expression_attribute_values(":none", AttributeValue::M([].into()));
        if let Party::Kind(kind) = party {
            set.push_str(", kind = :kind");
            update = update.expression_attribute_values(":kind", text(kind));
        }
        if let Some(ttl) = retention(party, now) {
            set.push_str(", #ttl = :ttl");
            update = update.expression_attribute_names("#ttl", "ttl").expression_attribute_values(":ttl", ttl);
        }
        let update = update.update_expression(set).condition_expression("attribute_not_exists(places)");
        self.0.send_update(update).await.map(|_| ())
    }

    /// Begins an update of the record that a place is in.
    pub(super) fn of(&self, place: &Place) -> UpdateItemFluentBuilder {
        self.0.update("lane", place.party.key()).expression_attribute_names("#me", place.holder.to_string())
    }
}

/// While a record has this, nobody takes a place in it: its party stands still.
const STOPPED: &str = "stopped_at";

/// When the record of a party expires that was used until then.
fn retention(party: &Party, until: Timestamp) -> Option<AttributeValue> {
    match party {
        Party::Kind(_) => None,
        Party::Receiver(_) => Some(number(until.plus(PLACES_RETENTION).seconds())),
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

/// Who holds the places of a record.
pub(super) fn holders(item: &Item) -> Result<Holders, StoreError> {
    let wrong = || Reader::new("locks", "lane", item).corrupt("places", "is not a map of ids to times");
    let holder = |(holder, until): (&String, &AttributeValue)| {
        let until = until.as_n().ok().and_then(|until| until.parse().ok()).map(Timestamp);
        holder.parse().ok().zip(until).ok_or_else(wrong)
    };
    match item.get("places") {
        None => Ok(Holders::new()),
        Some(AttributeValue::M(places)) => places.iter().map(holder).collect(),
        Some(_) => Err(wrong()),
    }
}

/// An update that also takes places away, if they are still held as they were.
fn without(
    places: &[(Uuid, Timestamp)],
    mut update: UpdateItemFluentBuilder,
    mut conditions: Vec<String>,
    set: &str,
) -> UpdateItemFluentBuilder {
    let mut gone = Vec::with_capacity(places.len());
    for (n, (holder, until)) in places.iter().enumerate() {
        gone.push(format!("places.#d{n}"));
        conditions.push(format!("places.#d{n} = :d{n}"));
        update = update
            .expression_attribute_names(format!("#d{n}"), holder.to_string())
            .expression_attribute_values(format!(":d{n}"), time(*until));
    }
    let remove = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
    update.update_expression(format!("{set}{remove}")).condition_expression(conditions.join(" AND "))
}
