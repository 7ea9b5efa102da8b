//! Gates: one record per kind, beside the locks. Calls of a kind's batch API take a place in it, and there are only so many:
//! an API that hangs holds its kind's share of what all kinds have, and no more.
//!
//! A place is held by one attempt of one worker, under an id that nobody else has, until it is given back or its lease
//! ends. Each change is one conditional write.

mod breaker;
mod record;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use uuid::Uuid;

use super::attributes::{number, text, time};
use super::{StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES, KIND_SHARE, MOST_DEAD};

pub use self::breaker::Refusal;
pub use self::record::{Gate, Probe, Stopped};

/// What keys of gates begin with. No lane does: a kind has no `/`.
pub const PREFIX: &str = "places/kind/";

/// A place that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind.
    pub kind: String,
    /// Who holds it.
    pub holder: Uuid,
    /// When its lease ends.
    pub until: Timestamp,
}

/// The gates.
#[derive(Clone, Debug)]
pub struct Gates(Table);

impl Gates {
    /// The gates in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Reads the gates of several kinds; those never used are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, kinds: &[&str]) -> Result<Vec<Gate>, StoreError> {
        let keys: Vec<String> = kinds.iter().map(|kind| key(kind)).collect();
        self.0.get_many("lane", &keys, &[], true).await?.iter().map(Gate::decode).collect()
    }

    /// Takes a place, if fewer than `share` are held and the kind does not stand still. Places whose lease ended make room,
    /// some of them in each write. Repeating it for a place that is held changes nothing and succeeds. `Ok` and `Err` hold the
    /// gate as it stands; `Err` the one that refused.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take(&self, place: &Place, share: u32, now: Timestamp) -> Result<Result<Gate, Gate>, StoreError> {
        let mut dead = Vec::new();
        for _ in 0..CONTENTION_TRIES {
            let gate = match self.0.send_update(self.taking(place, share, &dead)).await? {
                Write::Done(Some(item)) => return Ok(Ok(Gate::decode(&item)?)),
                Write::Done(None) | Write::Refused(None) => {
                    self.make(&place.kind).await?;
                    continue;
                }
                Write::Refused(Some(item)) => Gate::decode(&item)?,
            };
            if gate.places.get(&place.holder) == Some(&place.until) {
                return Ok(Ok(gate));
            }
            if gate.stopped.is_some() || gate.held(now) >= share as usize {
                return Ok(Err(gate));
            }
            dead = gate.dead(now).take(MOST_DEAD).collect();
            if gate.places.len() - dead.len() >= share as usize {
                self.0.send_update(without(&dead, self.0.update("lane", key(&place.kind)), Vec::new(), "")).await?;
                dead.clear();
            }
        }
        Err(StoreError::Contended { what: format!("taking a place of kind {}", place.kind) })
    }

    /// Takes a place, and those of the dead away.
    fn taking(&self, place: &Place, share: u32, dead: &[(Uuid, Timestamp)]) -> UpdateItemFluentBuilder {
        let room = share.saturating_add(u32::try_from(dead.len()).unwrap_or(u32::MAX));
        let update = self
            .0
            .update("lane", key(&place.kind))
            .expression_attribute_names("#me", place.holder.to_string())
            .expression_attribute_values(":until", time(place.until))
            .expression_attribute_values(":room", number(room));
        let room = "attribute_exists(places) AND (size(places) < :room OR attribute_exists(places.#me)) \
                    AND attribute_not_exists(stopped_at)";
        without(dead, update, vec![room.to_owned()], "SET places.#me = :until").return_values(ReturnValue::AllNew)
    }

    /// Gives a place back. It may have been given back before, or taken away because its lease ended.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn give_back(&self, place: &Place) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", key(&place.kind))
            .update_expression("REMOVE places.#me")
            .condition_expression("attribute_exists(places.#me)")
            .expression_attribute_names("#me", place.holder.to_string());
        self.0.send_update(update).await.map(|_| ())
    }

    /// Every place of a kind is free again: whoever held one is known to be dead. The calls that may still work at the batch
    /// API take theirs anew, by [`Gates::hold`]. A kind that stands still is probed at once.
    ///
    /// # Errors
    /// The table cannot be read or written, or the record is corrupt.
    pub async fn clear(&self, kind: &str, now: Timestamp) -> Result<(), StoreError> {
        for gate in self.get_many(&[kind]).await? {
            let places: Vec<(Uuid, Timestamp)> = gate.places.into_iter().collect();
            for places in places.chunks(MOST_DEAD) {
                self.0.send_update(without(places, self.0.update("lane", key(kind)), Vec::new(), "")).await?;
            }
            if gate.stopped.is_some() {
                self.hasten(kind, now).await?;
            }
        }
        Ok(())
    }

    /// Holds a place for a call that began before, whatever the share.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn hold(&self, place: &Place) -> Result<(), StoreError> {
        self.make(&place.kind).await?;
        let update = self
            .0
            .update("lane", key(&place.kind))
            .update_expression("SET places.#me = :until")
            .expression_attribute_names("#me", place.holder.to_string())
            .expression_attribute_values(":until", time(place.until));
        self.0.send_update(update).await.map(|_| ())
    }

    /// Makes the record of a kind that never had one.
    async fn make(&self, kind: &str) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", key(kind))
            .update_expression("SET places = :none, kind = :kind")
            .condition_expression("attribute_not_exists(places)")
            .expression_attribute_values(":none", AttributeValue::M([].into()))
            .expression_attribute_values(":kind", text(kind));
        self.0.send_update(update).await.map(|_| ())
    }
}

/// How many of all calls of batch APIs at once one kind may have.
#[must_use]
pub fn share(concurrency: u32) -> u32 {
    (concurrency / KIND_SHARE).max(1)
}

/// An update that also takes away places whose leases ended, if they are still there as they were seen.
fn without(
    dead: &[(Uuid, Timestamp)],
    mut update: UpdateItemFluentBuilder,
    mut conditions: Vec<String>,
    set: &str,
) -> UpdateItemFluentBuilder {
    let mut gone = Vec::with_capacity(dead.len());
    for (n, (holder, until)) in dead.iter().enumerate() {
        gone.push(format!("places.#d{n}"));
        conditions.push(format!("places.#d{n} = :d{n}"));
        update = update
            .expression_attribute_names(format!("#d{n}"), holder.to_string())
            .expression_attribute_values(format!(":d{n}"), time(*until));
    }
    let remove = if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
    update.update_expression(format!("{set}{remove}")).condition_expression(conditions.join(" AND "))
}

fn key(kind: &str) -> String {
    format!("{PREFIX}{kind}")
}
