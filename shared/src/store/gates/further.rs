//! Places in the further records of a kind that has many. For them its gate is only read, which costs little: refusals are counted
//! in it, and times of the kind's rate are taken from it, by writes of their own.

use std::collections::HashMap;

use super::breaker::counts;
use super::record::{REFUSALS, TARGETS, VERSION};
use super::{Gate, Gates, Party, Place, RefusedCall, key};
use crate::aws::attributes::{Reader, text};
use crate::aws::{StoreError, Write};
use crate::clock::Timestamp;
use crate::pacing::{Ask, Bucket, Verdict};
use crate::store::pace::{self, Paced};
use crate::store::places::{Holders, ID, MY_PLACE, PLACES, STOPPED_AT, held, holders, pick};

/// Why a call gets no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The kind stands still.
    StandsStill(Box<Gate>),
    /// The kind's rate has no time for the call yet.
    NotYet(Box<Gate>),
    /// All places of the record are held.
    Full(Holders),
}

impl Gates {
    /// See [`Gates::take_in_time`].
    pub(super) async fn take_further(
        &self,
        place: &Place,
        places_max: u32,
        now: Timestamp,
        ask: Option<&Ask>,
    ) -> Result<Write<Gate, Denied>, StoreError> {
        let gate = self.look(place, now).await?;
        if gate.stopped.is_some() {
            return Ok(Write::Refused(Denied::StandsStill(Box::new(gate))));
        }
        // Places are not taken in vain, since they are few. Nor does a batch get a turn where all are held: it would miss it.
        if ask.is_some_and(|ask| gate.pace.verdict(ask) != Verdict::Go) {
            let free = self.free_record(&gate.kind, places_max, now, 0).await?;
            return Ok(Write::Refused(match free {
                Some(_) => Denied::NotYet(Box::new(gate)),
                None => Denied::Full(gate.places),
            }));
        }
        if let Write::Refused(item) = self.0.ask(place, places_max, now, None).await? {
            return Ok(Write::Refused(Denied::Full(holders(&item)?)));
        }
        let Some(ask) = ask else { return Ok(Write::Done(gate)) };
        let paced = pace::take(|| self.paced(&gate.kind), ask, place.holder).await;
        if let Ok(Paced::Given(given)) = paced {
            let pace = Bucket { name: Some(ask.name.clone()), full: Some(given.full), by: Some(given.by), ..gate.pace };
            return Ok(Write::Done(Gate { pace, ..gate }));
        }
        self.release(place).await?;
        paced?;
        let gate = self.get(&gate.kind).await?.unwrap_or(gate);
        Ok(Write::Refused(Denied::NotYet(Box::new(gate))))
    }

    /// A record in which a place of the kind seemed free a moment ago. None: all places seemed held, or all are in one record.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn free_record(
        &self,
        kind: &str,
        places_max: u32,
        now: Timestamp,
        random: u64,
    ) -> Result<Option<u32>, StoreError> {
        let (spread, party) = (self.spread(), Party::Kind(kind.to_owned()));
        let records = spread.records(places_max);
        if records == 1 {
            return Ok(None);
        }
        let mut taken = HashMap::new();
        for record in self.records(kind, places_max, false).await? {
            let held = u32::try_from(held(&holders(&record)?, now)).unwrap_or(u32::MAX);
            taken.insert(Reader::new("locks", ID, &record).text(ID)?.to_owned(), held);
        }
        let free = |record| {
            let taken = taken.get(&party.key_of(record)).copied().unwrap_or(0);
            spread.room(record, places_max).saturating_sub(taken)
        };
        Ok(pick(&(0..records).map(free).collect::<Vec<u32>>(), random))
    }

    /// The gate as it was a moment ago. One that is not there, or stopped, is read once more, as it is: who finds that a kind
    /// stands still drops a message.
    async fn look(&self, place: &Place, now: Timestamp) -> Result<Gate, StoreError> {
        let kind = place.party.name();
        if let Some(gate) = self.glance(kind).await?.filter(|gate| gate.stopped.is_none()) {
            return Ok(gate);
        }
        if let Some(gate) = self.get(kind).await? {
            return Ok(gate);
        }
        self.0.make(&Place { record: 0, ..place.clone() }, now).await?;
        Ok(Gate { kind: kind.to_owned(), ..Gate::default() })
    }

    /// See [`Gates::refuse`]. The place is released first, so that the refusal counts once at most. One that is not counted, as
    /// its worker died in between, does no harm.
    pub(super) async fn refuse_further(
        &self,
        place: &Place,
        refusal: RefusedCall<'_>,
    ) -> Result<Option<Gate>, StoreError> {
        if !self.0.if_held(place).remove([MY_PLACE]).send().await?.is_done() {
            return Ok(None);
        }
        let kind = place.party.name();
        let count = || counts(self.change(kind), refusal).when_present(PLACES).send_once_for_new();
        let before = match count().await?.decode(Gate::decode)? {
            Write::Done(gate) => return Ok(Some(gate)),
            Write::Refused(before) => before,
        };
        let Some(before) = before.filter(|gate| gate.stopped.is_none()) else { return Ok(None) };
        self.forget_refusals(&before).await?;
        Ok(count().await?.decode(Gate::decode)?.done())
    }

    /// See [`Gates::works`]. The row of refusals ends if it is the one that was seen.
    pub(super) async fn works_further(&self, place: &Place) -> Result<(), StoreError> {
        let kind = place.party.name();
        self.release(place).await?;
        let Some(gate) = self.glance(kind).await?.filter(|gate| gate.refusals > 0) else { return Ok(()) };
        let change = self.change(kind).remove([REFUSALS, TARGETS]).when_absent(STOPPED_AT);
        change.when_same(VERSION, gate.version.map(text)).send().await.map(|_| ())
    }

    /// The gate as it was a moment ago.
    async fn glance(&self, kind: &str) -> Result<Option<Gate>, StoreError> {
        self.table().get(ID, key(kind), false).await?.as_ref().map(Gate::decode).transpose()
    }
}
