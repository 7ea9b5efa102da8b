//! Kinds that stand still: refusals are counted, kinds stop, are probed, and resume.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::record::{
    ANSWER, Gate, NOTICE_AT, PROBE_AT, PROBES, PROBING, REFUSALS, RESUMED_AT, STOOD_SINCE, Stopped, TARGETS, VERSION,
};
use super::{Gates, key};
use crate::aws::attributes::{id_set, number, text, time};
use crate::aws::{Change, StoreError, Write};
use crate::clock::Timestamp;
use crate::ids::derived;
use crate::limits::REFUSED_TARGETS_MIN;
use crate::pacing::Ask;
use crate::store::notices::ANEW;
use crate::store::pace;
use crate::store::places::{ID, MY_PLACE, PLACES, Place, STOPPED_AT, dead};

/// A call whose answer says that the caller is wrong or must wait.
#[derive(Clone, Copy, Debug)]
pub struct RefusedCall<'a> {
    /// What its batch's tasks share.
    pub target: &'a str,
    /// The version of the policy it was made by.
    pub version: Uuid,
    /// What the batch API said.
    pub answer: &'a str,
}

impl Gates {
    /// Counts a refused call, once, and releases its place. Returns the gate after that; none if the
    /// place was lost before, or the kind stands still under another version of the policy, of which this call says nothing.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn refuse(&self, place: &Place, refusal: RefusedCall<'_>) -> Result<Option<Gate>, StoreError> {
        if place.record != 0 {
            return self.refuse_further(place, refusal).await;
        }
        let before = match self.count(place, refusal).await? {
            Write::Done(gate) => return Ok(Some(gate)),
            Write::Refused(before) => before,
        };
        let Some(before) = before.filter(|gate| gate.places.contains_key(&place.holder)) else { return Ok(None) };
        if before.stopped.is_none() {
            self.forget_refusals(&before).await?;
            if let Write::Done(gate) = self.count(place, refusal).await? {
                return Ok(Some(gate));
            }
        }
        self.release(place).await.map(|()| None)
    }

    /// Counts a refusal, on condition that refusals counted before were answered to the same version of the policy.
    async fn count(&self, place: &Place, refusal: RefusedCall<'_>) -> Result<Write<Gate, Option<Gate>>, StoreError> {
        counts(self.0.if_held(place).remove([MY_PLACE]), refusal).send_for_new().await?.decode(Gate::decode)
    }

    /// Whether so many calls in a row were refused that the kind, which has `places_max` places, is to stand still.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn refused_enough(&self, gate: &Gate, places_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        if !gate.refused_enough(0) {
            return Ok(false);
        }
        let at_work = match self.spread().records(places_max) {
            1 => gate.held(now),
            _ => self.held(&gate.kind, places_max, now).await?,
        };
        Ok(gate.refused_enough(at_work))
    }

    /// Forgets the refusals that were counted for another version of the policy.
    pub(super) async fn forget_refusals(&self, gate: &Gate) -> Result<(), StoreError> {
        let Some(version) = gate.version else { return Ok(()) };
        let change = self
            .change(&gate.kind)
            .remove([VERSION, REFUSALS, TARGETS])
            .when_is(VERSION, text(version))
            .when_absent(STOPPED_AT);
        change.send().await.map(|_| ())
    }

    /// The kind stands still from now on; of several workers that find this, one wins. `notice_at`: when its notice is due.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn stop(
        &self,
        gate: &Gate,
        answer: &str,
        probe_at: Timestamp,
        notice_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let Some(version) = gate.version else { return Ok(false) };
        let (since, because) = (self.table().world.now(), answer.to_owned());
        let answer = because.clone();
        let stopped = Stopped { since, because, answer, probe_at, probes: 0, probing: None };
        let change = self
            .change(&gate.kind)
            .put(Stopped::encode(Some(&stopped)))
            .when_absent(STOPPED_AT)
            .when_is(VERSION, text(version))
            .when("refusals >= :refusals", [(":refusals", number(gate.refusals))]);
        Ok(noticed(change, notice_at).send().await?.is_done())
    }

    /// A call worked: the refusals counted so far are forgotten, since they are no longer in a row, unless they have stopped the kind.
    /// Its place is released.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn works(&self, place: &Place) -> Result<(), StoreError> {
        if place.record != 0 {
            return self.works_further(place).await;
        }
        let change = self.0.if_held(place).remove([MY_PLACE, REFUSALS, TARGETS]).when_absent(STOPPED_AT);
        self.released(place, change).await.map(drop)
    }

    /// Takes the probe of a kind that stands still, with a place in its gate: of several workers that try, one wins. `pace`: the same
    /// write also takes a time of the kind's rate. Returns the gate, or nothing if another worker took the probe.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_probe(
        &self,
        place: &Place,
        gate: &Gate,
        stopped: &Stopped,
        places_max: u32,
        pace: Option<&Ask>,
    ) -> Result<Option<Gate>, StoreError> {
        let room = self.spread().room(place.record, places_max);
        let dead = u32::try_from(dead(&gate.places, self.table().world.now()).count()).unwrap_or(u32::MAX);
        let change = self.0.of(place);
        let change = match pace {
            Some(ask) => pace::give(change, ask, place.holder, Some(&gate.pace)),
            None => change,
        };
        let taken = change
            .set(PROBING, time(place.until))
            .set(MY_PLACE, time(place.until))
            .when_is(STOPPED_AT, time(stopped.since))
            .when_is(PROBE_AT, time(stopped.probe_at))
            .when_same(PROBING, stopped.probing.map(time))
            .when_present(PLACES)
            .when("size(places) < :room", [(":room", number(room.saturating_add(dead)))])
            .send_for_new()
            .await?
            .decode(Gate::decode)?;
        // Perhaps this very write, whose answer was lost.
        Ok(taken.or_mine(|gate| gate.places.get(&place.holder) == Some(&place.until)).done())
    }

    /// A probe did not work. The next one is due at `probe_at`, unless the kind resumed meanwhile or another probe is made by now;
    /// its place is released. `gate`: as it was when the probe was taken.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn still_stopped(
        &self,
        place: &Place,
        gate: &Gate,
        refusal: RefusedCall<'_>,
        probe_at: Timestamp,
    ) -> Result<(), StoreError> {
        let target = (gate.targets.len() < REFUSED_TARGETS_MIN).then(|| id_set([&derived::target(refusal.target)]));
        let change = self
            .0
            .if_held(place)
            .set(PROBE_AT, time(probe_at))
            .set(ANSWER, text(refusal.answer))
            .add(PROBES, number(1_u32))
            .add_some(TARGETS, target)
            .remove([MY_PLACE, PROBING])
            .when_same(STOPPED_AT, since(gate))
            .when_is(PROBING, time(place.until));
        self.released(place, change).await.map(drop)
    }

    /// A probe worked: the kind resumes, unless it did before, and its place is released. Returns whether this probe did it. `gate`: as
    /// it was when the probe was taken; `notice_at`: when its notice is due.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn resume(&self, place: &Place, gate: &Gate, notice_at: Option<Timestamp>) -> Result<bool, StoreError> {
        let change = self.resumes(self.0.if_held(place)).remove([MY_PLACE]);
        let change = change.when_present(STOPPED_AT).when_same(STOPPED_AT, since(gate));
        self.released(place, noticed(change, notice_at)).await
    }

    /// The probe was not made after all: another worker may make one. Its place is released.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn leave_probe(&self, place: &Place) -> Result<(), StoreError> {
        let change = self.0.if_held(place).remove([MY_PLACE, PROBING]).when_is(PROBING, time(place.until));
        self.released(place, change).await.map(drop)
    }

    /// Makes a change that releases a place, too. If it does not apply any more, the place is released all the same. Returns whether
    /// it applied.
    async fn released(&self, place: &Place, change: Change<'_>) -> Result<bool, StoreError> {
        let applied = change.send().await?.is_done();
        if !applied {
            self.release(place).await?;
        }
        Ok(applied)
    }

    /// The kind resumes, since it was stopped under another version of its policy. Of several workers that find this,
    /// one wins. `notice_at`: when its notice is due.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn forget(
        &self,
        gate: &Gate,
        stopped: &Stopped,
        notice_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let change = self.resumes(self.change(&gate.kind)).remove([VERSION]);
        let change = change.when_is(STOPPED_AT, time(stopped.since));
        Ok(noticed(change, notice_at).send().await?.is_done())
    }

    /// A probe is due at once: the worker that made one is dead.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(super) async fn hasten(&self, kind: &str) -> Result<(), StoreError> {
        let change = self.change(kind).set(PROBE_AT, time(self.table().world.now())).remove([PROBING]);
        change.when_present(STOPPED_AT).send().await.map(|_| ())
    }

    pub(super) fn change(&self, kind: &str) -> Change<'_> {
        self.table().change(ID, key(kind))
    }

    /// Completes the write by which a kind resumes: the record keeps since when it stood still.
    fn resumes<'a>(&self, change: Change<'a>) -> Change<'a> {
        change
            .set(RESUMED_AT, time(self.table().world.now()))
            .copy(STOOD_SINCE, STOPPED_AT)
            .put(Stopped::encode(None))
            .remove([REFUSALS, TARGETS])
    }
}

/// Since when the kind stands still.
fn since(gate: &Gate) -> Option<AttributeValue> {
    gate.stopped.as_ref().map(|stopped| time(stopped.since))
}

/// A change that also counts a refusal.
pub(super) fn counts<'a>(change: Change<'a>, refusal: RefusedCall<'_>) -> Change<'a> {
    let version = text(refusal.version);
    change
        .set(VERSION, version.clone())
        .add(REFUSALS, number(1_u32))
        .add(TARGETS, id_set([&derived::target(refusal.target)]))
        .when("attribute_not_exists(version) OR version = :by", [(":by", version)])
}

/// The write by which a kind stops or resumes: the notice of the change before is void, and this one's notice is due
/// from the same write on, so that no worker's death can lose it.
fn noticed(change: Change<'_>, notice_at: Option<Timestamp>) -> Change<'_> {
    let change = change.add("changes", number(1_u32)).remove(ANEW);
    match notice_at {
        Some(at) => change.set(NOTICE_AT, time(at)).set("notice_due", time(at)),
        None => change.remove([NOTICE_AT, "notice_due"]),
    }
}
