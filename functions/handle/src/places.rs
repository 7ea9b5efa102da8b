//! Who may call: only so many calls of a kind's batch API run at once, and none while the kind stands still.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::limits::{ATTEMPT_MARGIN, CONTENTION_TRIES_MAX, OTHER_PROBE_WAIT, PLACE_LOOKS_MAX, REFUSED_MAX};
use fanfold::policy::{Policy, Refusals};
use fanfold::store::batches::Batch;
use fanfold::store::gates::{Gate, Probe, Stopped};
use fanfold::store::places::{Party, Place};

use crate::{Handle, pace};

/// Who holds a place, and why.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) place: Place,
    /// The gate as it was.
    pub(crate) gate: Gate,
    /// Whether the call probes the batch API of a kind that stands still.
    pub(crate) probes: bool,
}

/// What a gate says to a batch.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It may call.
    Pass(Box<Pass>),
    /// It may come again after so long.
    Later(Duration),
    /// Its kind stands still: the sweep sends its message again.
    StandsStill,
    /// Its kind has been standing still for longer than it can wait; with what the batch API answers.
    GivesUp(String),
}

impl Handle {
    /// Takes a place for a call for this batch, or the probe of its kind.
    pub(crate) async fn enter(&self, batch: &Batch, policy: &Policy) -> Result<Entry, StoreError> {
        let lease = policy.batch_api.timeout.0 + ATTEMPT_MARGIN;
        let holder = self.world.uuid();
        let mut looks = 1;
        for _ in 0..CONTENTION_TRIES_MAX {
            let now = self.world.now();
            let place = Place { party: Party::Kind(batch.lane.kind.clone()), holder, until: now.plus(lease) };
            let gate = match self.gates.take(&place, self.share, now).await? {
                Write::Done(gate) => return Ok(Entry::Pass(Box::new(Pass { place, gate, probes: false }))),
                Write::Refused(gate) => gate,
            };
            if let Some(stopped) = &gate.stopped {
                if self.holds_no_more(&gate, policy).await? {
                    self.forget(&gate, stopped, policy).await?;
                    continue;
                }
                return self.knock(batch, place, &gate, stopped).await;
            }
            let oldest = pace::oldest(&gate, lease, now);
            let random = self.world.random.next();
            match pace::look(oldest, random) {
                Some(pause) if looks < PLACE_LOOKS_MAX => tokio::time::sleep(pause).await,
                _ => return Ok(Entry::Later(pace::wait(oldest, random))),
            }
            looks += 1;
        }
        Err(StoreError::Contended { what: format!("passing the gate of kind {}", batch.lane.kind) })
    }

    /// Whether a kind stands still by another version of its policy. A remembered one may be some seconds old.
    async fn holds_no_more(&self, gate: &Gate, policy: &Policy) -> Result<bool, StoreError> {
        if gate.version == Some(policy.version()) {
            return Ok(false);
        }
        let now = self.policies.read(&gate.kind).await?;
        Ok(now.is_some_and(|policy| gate.version != Some(policy.version()) || policy.refusals == Refusals::Fail))
    }

    /// A batch at the gate of a kind that stands still: it probes, waits, or gives up.
    async fn knock(&self, batch: &Batch, place: Place, gate: &Gate, stopped: &Stopped) -> Result<Entry, StoreError> {
        let now = self.world.now();
        if now.since(batch.waits_since()) > REFUSED_MAX {
            return Ok(Entry::GivesUp(stopped.answer.clone()));
        }
        match gate.probe(&batch.lane.target, now) {
            Probe::Now if self.gates.take_probe(&place, gate, stopped, self.share).await? => {
                Ok(Entry::Pass(Box::new(Pass { place, gate: gate.clone(), probes: true })))
            }
            Probe::Soon => Ok(Entry::Later(OTHER_PROBE_WAIT)),
            Probe::Now | Probe::No => Ok(Entry::StandsStill),
        }
    }

    /// Gives a place back that no call was made from. If that fails, its lease ends it.
    pub(crate) async fn give_back(&self, Pass { place, probes, .. }: &Pass) {
        let given = if *probes { self.gates.leave_probe(place).await } else { self.gates.give_back(place).await };
        if let Err(error) = given {
            tracing::warn!(%error, party = ?place.party, "a place was not given back; it is free when its lease ends");
        }
    }
}
