//! Places in the further records of a kind that has many. For them its gate is only read, which costs little: refusals are counted
//! in it, and times of the kind's rate are taken from it, by writes of their own.

use super::breaker::counts;
use super::record::{REFUSALS, TARGETS};
use super::{Gate, Gates, Place, RefusedCall, key};
use crate::aws::{StoreError, Write};
use crate::clock::Timestamp;
use crate::pacing::{Ask, Bucket};
use crate::store::pace::{self, Paced};
use crate::store::places::{Holders, ID, MY_PLACE, PLACES, holders};

impl Gates {
    /// See [`Gates::take_in_time`].
    pub(super) async fn take_further(
        &self,
        place: &Place,
        places_max: u32,
        now: Timestamp,
        ask: Option<&Ask>,
    ) -> Result<Write<Gate, Gate>, StoreError> {
        let gate = self.look(place, now).await?;
        if gate.stopped.is_some() {
            return Ok(Write::Refused(gate));
        }
        let item = match self.0.ask(place, places_max, now, None).await? {
            Write::Done(item) => item,
            Write::Refused(item) => return Ok(Write::Refused(Gate { places: holders(&item)?, ..gate })),
        };
        let gate = Gate { places: holders(&item)?, ..gate };
        let Some(ask) = ask else { return Ok(Write::Done(gate)) };
        let timed = self.take_time(place, gate, ask).await;
        if !matches!(timed, Ok(Write::Done(_))) {
            self.release(place).await?;
        }
        timed
    }

    /// Takes a time of the kind's rate for the holder of a place.
    async fn take_time(&self, place: &Place, gate: Gate, ask: &Ask) -> Result<Write<Gate, Gate>, StoreError> {
        if let Paced::Given(given) = pace::take(|| self.paced(&gate.kind), ask, place.holder).await? {
            let pace = Bucket { name: Some(ask.name.clone()), full: Some(given.full), by: Some(given.by), ..gate.pace };
            return Ok(Write::Done(Gate { pace, ..gate }));
        }
        let gate = self.get(&gate.kind).await?.unwrap_or(gate);
        // It is not for want of a place.
        Ok(Write::Refused(Gate { places: Holders::new(), ..gate }))
    }

    /// The gate as it was a moment ago. One that is not there, or stopped, is read once more, as it is: who finds that a kind
    /// stands still drops a message.
    async fn look(&self, place: &Place, now: Timestamp) -> Result<Gate, StoreError> {
        let party = &place.party;
        if let Some(gate) = self.glance(party.name()).await?.filter(|gate| gate.stopped.is_none()) {
            return Ok(gate);
        }
        if let Some(gate) = self.get(party.name()).await? {
            return Ok(gate);
        }
        self.0.make(&Place { record: 0, ..place.clone() }, now).await?;
        Ok(Gate { kind: party.name().to_owned(), ..Gate::default() })
    }

    /// Counts a refusal, and releases its place, in one transaction: whatever is lost of it, it counts once.
    pub(super) async fn count_further(
        &self,
        place: &Place,
        refusal: RefusedCall<'_>,
    ) -> Result<Write<Gate, Option<Gate>>, StoreError> {
        let kind = place.party.name();
        let released = self.0.if_held(place).remove([MY_PLACE]);
        let counted = counts(self.change(kind), refusal).when_present(PLACES);
        let written = self.table().transact(&[released.action()?, counted.action()?]).await?;
        if let Write::Refused(refused) = &written
            && refused.iter().any(|(at, _)| *at == 0)
        {
            return Ok(Write::Refused(None));
        }
        let gate = self.get(kind).await?;
        Ok(match gate {
            Some(gate) if written.is_done() => Write::Done(gate),
            gate => Write::Refused(gate),
        })
    }

    /// See [`Gates::works`].
    pub(super) async fn works_further(&self, place: &Place) -> Result<(), StoreError> {
        let kind = place.party.name();
        let (gate, ()) = futures::try_join!(self.glance(kind), self.release(place))?;
        if gate.is_none_or(|gate| gate.refusals == 0) {
            return Ok(());
        }
        self.change(kind).remove([REFUSALS, TARGETS]).when_present(PLACES).send().await.map(|_| ())
    }

    /// The gate as it was a moment ago.
    async fn glance(&self, kind: &str) -> Result<Option<Gate>, StoreError> {
        self.table().get(ID, key(kind), false).await?.as_ref().map(Gate::decode).transpose()
    }
}
