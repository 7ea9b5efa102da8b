//! Kinds that stand still: what calls say of a batch API, and the probes.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::ReturnValue;
use uuid::Uuid;

use super::record::{Gate, Stopped};
use super::{Gates, key};
use crate::aws::attributes::{id_set, number, text, time};
use crate::aws::{Item, StoreError, Write};
use crate::clock::Timestamp;
use crate::ids::derived;
use crate::limits::REFUSED_TARGETS;
use crate::store::places::{Place, dead};
use crate::store::telling::ANEW;

/// A call that says that the caller is wrong or must wait.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// What its batch's tasks share.
    pub target: &'a str,
    /// The version of the policy it was made by.
    pub version: Uuid,
    /// What the batch API said.
    pub answer: &'a str,
}

impl Gates {
    /// A call was refused: it is counted, once, and its place is given back. Answers the gate as it stands then; none if the
    /// place was lost before, or the kind stands still by another version of the policy, older or newer: this says nothing of it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn refuse(&self, place: &Place, refusal: Refusal<'_>) -> Result<Option<Gate>, StoreError> {
        let before = match self.count(place, refusal).await? {
            Write::Done(item) => return item.as_ref().map(Gate::decode).transpose(),
            Write::Refused(item) => item.as_ref().map(Gate::decode).transpose()?,
        };
        let Some(before) = before.filter(|gate| gate.places.contains_key(&place.holder)) else { return Ok(None) };
        if before.stopped.is_some() {
            return self.give_back(place).await.map(|()| None);
        }
        self.forget_refusals(&before).await?;
        match self.count(place, refusal).await? {
            Write::Done(item) => item.as_ref().map(Gate::decode).transpose(),
            Write::Refused(_) => Ok(None),
        }
    }

    /// Counts a refusal for a version of the policy that what was counted before is known of, if there is any.
    async fn count(&self, place: &Place, refusal: Refusal<'_>) -> Result<Write<Option<Item>>, StoreError> {
        let update = self
            .0
            .of(place)
            .update_expression("SET version = :version REMOVE places.#me ADD refusals :one, targets :target")
            .condition_expression(
                "attribute_exists(places.#me) AND (attribute_not_exists(version) OR version = :version)",
            )
            .expression_attribute_values(":version", text(refusal.version))
            .expression_attribute_values(":one", number(1_u32))
            .expression_attribute_values(":target", id_set([&derived::target(refusal.target)]))
            .return_values(ReturnValue::AllNew);
        self.table().send_update(update).await
    }

    /// What was counted of another version of the policy is void.
    async fn forget_refusals(&self, gate: &Gate) -> Result<(), StoreError> {
        let Some(version) = gate.version else { return Ok(()) };
        let update = self
            .table()
            .update("lane", key(&gate.kind))
            .update_expression("REMOVE version, refusals, targets")
            .condition_expression("version = :version AND attribute_not_exists(stopped_at)")
            .expression_attribute_values(":version", text(version));
        self.table().send_update(update).await.map(|_| ())
    }

    /// The kind stands still from `now` on; of several who find that, one wins. `tell_at`: when somebody is to be told.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn stop(
        &self,
        gate: &Gate,
        answer: &str,
        probe_at: Timestamp,
        tell_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(version) = gate.version else { return Ok(false) };
        let set = "stopped_at = :now, stop_answer = :answer, answer = :answer, probe_at = :probe";
        let update = changed(self.table().update("lane", key(&gate.kind)), set, "probes, probing", tell_at)
            .condition_expression("attribute_not_exists(stopped_at) AND version = :version AND refusals >= :refusals")
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":answer", text(answer))
            .expression_attribute_values(":probe", time(probe_at))
            .expression_attribute_values(":version", text(version))
            .expression_attribute_values(":refusals", number(gate.refusals));
        Ok(matches!(self.table().send_update(update).await?, Write::Done(_)))
    }

    /// A call worked: whatever was counted was not in a row. Its place is given back.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn works(&self, place: &Place) -> Result<(), StoreError> {
        let update = self
            .0
            .of(place)
            .update_expression("REMOVE places.#me, refusals, targets")
            .condition_expression("attribute_exists(places.#me)");
        self.table().send_update(update).await.map(|_| ())
    }

    /// Takes the probe, with a place, of a kind that stands still: of several who try, one wins.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_probe(
        &self,
        place: &Place,
        gate: &Gate,
        stopped: &Stopped,
        share: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let dead = u32::try_from(dead(&gate.places, now).count()).unwrap_or(u32::MAX);
        let before = match stopped.probing {
            None => "attribute_not_exists(probing)",
            Some(_) => "probing = :before",
        };
        let mut update = self
            .0
            .of(place)
            .update_expression("SET probing = :until, places.#me = :until")
            .condition_expression(format!(
                "stopped_at = :since AND probe_at = :probe AND {before} \
                 AND attribute_exists(places) AND size(places) < :room"
            ))
            .expression_attribute_values(":until", time(place.until))
            .expression_attribute_values(":since", time(stopped.since))
            .expression_attribute_values(":probe", time(stopped.probe_at))
            .expression_attribute_values(":room", number(share.saturating_add(dead)));
        if let Some(before) = stopped.probing {
            update = update.expression_attribute_values(":before", time(before));
        }
        match self.table().send_update(update).await? {
            Write::Done(_) => Ok(true),
            // Perhaps one's own write whose answer was lost.
            Write::Refused(Some(item)) => Ok(Gate::decode(&item)?.places.get(&place.holder) == Some(&place.until)),
            Write::Refused(None) => Ok(false),
        }
    }

    /// A probe did not work. The next one is due at `probe_at`; its place is given back.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn still_stopped(
        &self,
        place: &Place,
        gate: &Gate,
        refusal: Refusal<'_>,
        probe_at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut add = "probes :one".to_owned();
        let mut update = self.0.of(place);
        if gate.targets.len() < REFUSED_TARGETS {
            add.push_str(", targets :target");
            update = update.expression_attribute_values(":target", id_set([&derived::target(refusal.target)]));
        }
        let update = update
            .update_expression(format!("SET probe_at = :probe, answer = :answer REMOVE places.#me, probing ADD {add}"))
            .condition_expression("attribute_exists(places.#me) AND attribute_exists(stopped_at)")
            .expression_attribute_values(":probe", time(probe_at))
            .expression_attribute_values(":answer", text(refusal.answer))
            .expression_attribute_values(":one", number(1_u32));
        self.table().send_update(update).await.map(|_| ())
    }

    /// A probe worked: the kind goes on, and its place is given back. Answers whether it was this probe that did it. `tell_at`:
    /// when somebody is to be told.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn resume(&self, place: &Place, tell_at: Option<Timestamp>, now: Timestamp) -> Result<bool, StoreError> {
        let update = changed(self.0.of(place), GOES_ON, &format!("places.#me, {STANDING}"), tell_at)
            .condition_expression("attribute_exists(places.#me) AND attribute_exists(stopped_at)")
            .expression_attribute_values(":now", time(now));
        Ok(matches!(self.table().send_update(update).await?, Write::Done(_)))
    }

    /// The probe was not made after all: somebody else may.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn leave_probe(&self, place: &Place) -> Result<(), StoreError> {
        let update = self
            .0
            .of(place)
            .update_expression("REMOVE places.#me, probing")
            .condition_expression("attribute_exists(places.#me)");
        self.table().send_update(update).await.map(|_| ())
    }

    /// The kind goes on, since what is known of its batch API holds for another version of its policy. Of several who find that,
    /// one wins. `tell_at`: when somebody is to be told.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn forget(
        &self,
        gate: &Gate,
        stopped: &Stopped,
        tell_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = self.table().update("lane", key(&gate.kind));
        let update = changed(update, GOES_ON, &format!("version, {STANDING}"), tell_at)
            .condition_expression("stopped_at = :since")
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":since", time(stopped.since));
        Ok(matches!(self.table().send_update(update).await?, Write::Done(_)))
    }

    /// A probe is due at once: whoever made one is dead.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(super) async fn hasten(&self, kind: &str, now: Timestamp) -> Result<(), StoreError> {
        let update = self
            .table()
            .update("lane", key(kind))
            .update_expression("SET probe_at = :now REMOVE probing")
            .condition_expression("attribute_exists(stopped_at)")
            .expression_attribute_values(":now", time(now));
        self.table().send_update(update).await.map(|_| ())
    }
}

/// What a kind that goes on remembers of how it stood still.
const GOES_ON: &str = "resumed_at = :now, stood_since = stopped_at";

/// What goes with that.
const STANDING: &str = "refusals, targets, stopped_at, stop_answer, answer, probe_at, probes, probing";

/// The update by which a kind stops or goes on: what was to be told of the change before is void, and this one is to be told
/// from the same write on, so that nobody's death can lose it.
fn changed(
    update: UpdateItemFluentBuilder,
    set: &str,
    remove: &str,
    tell_at: Option<Timestamp>,
) -> UpdateItemFluentBuilder {
    let set = format!("SET {set}, changes = if_not_exists(changes, :none) + :another");
    let remove = format!("REMOVE {remove}, {ANEW}");
    let update = update
        .expression_attribute_values(":none", number(0_u32))
        .expression_attribute_values(":another", number(1_u32));
    match tell_at {
        Some(at) => update
            .update_expression(format!("{set}, tell_at = :tell_at, tell_due = :tell_at {remove}"))
            .expression_attribute_values(":tell_at", time(at)),
        None => update.update_expression(format!("{set} {remove}, tell_at, tell_due")),
    }
}
