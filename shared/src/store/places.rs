//! Places: how much of a step one party, such as an endpoint or a kind, may hold at once. One record a party, beside the locks.
//! A place is known by its holder and ends with its lease if nobody gives it back. It keeps the rest of the step free; what
//! must not happen twice does not rest on it.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::attributes::{number, time};
use super::{Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES, PLACES_CLEARED, PLACES_RETENTION};

/// What the keys of these records begin with. No lane is called so: there is no `/` in a kind.
pub const PREFIX: &str = "places/";

/// Whether a place was to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the holder's until it is given back or its lease is over.
    Yes,
    /// All are taken.
    Full {
        /// The first of their leases is over then; most are given back long before.
        until: Timestamp,
    },
}

/// The places of all parties.
#[derive(Clone, Debug)]
pub struct Places(Table);

impl Places {
    /// The places in `table`, which is that of the locks.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Takes one of the `max` places of `key` for `lease`. Who holds one already keeps it, for a lease from now on.
    ///
    /// # Errors
    /// The table cannot be written, the record is corrupt, or too many others take and give back at once.
    pub async fn take(
        &self,
        key: &str,
        holder: Uuid,
        max: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Taken, StoreError> {
        let (me, until) = (holder.simple().to_string(), now.plus(lease));
        // Whose lease was over by the record as it was last seen: they leave in the write that takes a place.
        let mut over: Vec<String> = Vec::new();
        let mut known = true;
        for _ in 0..CONTENTION_TRIES {
            let write = if known {
                self.take_among(key, &me, max, until, now, &over).await?
            } else {
                self.take_first(key, &me, until, now).await?
            };
            let item = match write {
                Write::Done(()) => return Ok(Taken::Yes),
                Write::Refused(item) => item,
            };
            let Some(held) = item.as_ref().map(held).transpose()?.flatten() else {
                known = false;
                continue;
            };
            known = true;
            let runs = |(_, until): &&(String, Timestamp)| *until > now;
            let running: Vec<&(String, Timestamp)> = held.iter().filter(runs).collect();
            if running.len() >= max as usize && !held.iter().any(|(holder, _)| *holder == me) {
                return Ok(Taken::Full { until: running.iter().map(|(_, until)| *until).min().unwrap_or(now) });
            }
            over = held.iter().filter(|held| !runs(held)).map(|(holder, _)| holder.clone()).collect();
        }
        Err(StoreError::Contended { what: format!("taking a place of {key}") })
    }

    /// Takes a place in a record that is there.
    async fn take_among(
        &self,
        key: &str,
        me: &str,
        max: u32,
        until: Timestamp,
        now: Timestamp,
        over: &[String],
    ) -> Result<Write, StoreError> {
        let (mut remove, mut ended) = (String::new(), String::new());
        let mut update = self.0.update("lane", key.to_owned());
        for (at, holder) in over.iter().filter(|holder| *holder != me).take(PLACES_CLEARED).enumerate() {
            remove.push_str(if at == 0 { " REMOVE " } else { ", " });
            remove.push_str(&format!("places.#over{at}"));
            ended.push_str(&format!(" AND places.#over{at} <= :now"));
            update = update.expression_attribute_names(format!("#over{at}"), holder);
        }
        if !ended.is_empty() {
            update = update.expression_attribute_values(":now", time(now));
        }
        // Those left over for the next write are no less over.
        let room = u64::from(max) + over.len() as u64;
        let update = update
            .update_expression(format!("SET places.#me = :until, #ttl = :ttl{remove}"))
            .condition_expression(format!(
                "attribute_exists(places) AND (attribute_exists(places.#me) OR size(places) < :room){ended}"
            ))
            .expression_attribute_names("#me", me)
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":until", time(until))
            .expression_attribute_values(":ttl", number(until.plus(PLACES_RETENTION).seconds()))
            .expression_attribute_values(":room", number(room));
        self.done(update).await
    }

    /// Takes the first place of a party that has no record.
    async fn take_first(&self, key: &str, me: &str, until: Timestamp, now: Timestamp) -> Result<Write, StoreError> {
        let places = AttributeValue::M([(me.to_owned(), time(until))].into());
        let update = self
            .0
            .update("lane", key.to_owned())
            .update_expression("SET places = :places, #ttl = :ttl")
            .condition_expression("attribute_not_exists(places)")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":places", places)
            .expression_attribute_values(":ttl", number(now.plus(PLACES_RETENTION).seconds()));
        self.done(update).await
    }

    /// Gives a place back. It may be somebody else's by now, or nobody's: nothing changes then.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn give_back(&self, key: &str, holder: Uuid) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", key.to_owned())
            .update_expression("REMOVE places.#me")
            .condition_expression("attribute_exists(places.#me)")
            .expression_attribute_names("#me", holder.simple().to_string());
        self.0.send_update(update).await.map(|_| ())
    }

    async fn done(
        &self,
        update: aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder,
    ) -> Result<Write, StoreError> {
        Ok(match self.0.send_update(update).await? {
            Write::Done(_) => Write::Done(()),
            Write::Refused(item) => Write::Refused(item),
        })
    }
}

/// The holders of a record with the ends of their leases, if it has any places.
fn held(item: &Item) -> Result<Option<Vec<(String, Timestamp)>>, StoreError> {
    let corrupt = |problem: &str| StoreError::Corrupt {
        table: "locks",
        id: item.get("lane").and_then(|key| key.as_s().ok()).cloned().unwrap_or_default(),
        attribute: "places",
        problem: problem.to_owned(),
    };
    let places = match item.get("places") {
        None => return Ok(None),
        Some(AttributeValue::M(places)) => places,
        Some(_) => return Err(corrupt("is not a map")),
    };
    let end = |(holder, until): (&String, &AttributeValue)| match until.as_n().ok().and_then(|until| until.parse().ok())
    {
        Some(until) => Ok((holder.clone(), Timestamp(until))),
        None => Err(corrupt("holds something else than times")),
    };
    places.iter().map(end).collect::<Result<_, _>>().map(Some)
}
