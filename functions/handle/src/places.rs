//! Which batches may call: a limited number of calls of a kind's batch API run at once, and none while the kind stands still.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::grouping::waited_in_vain;
use fanfold::limits::{ATTEMPT_MARGIN, CONTENTION_TRIES_MAX, OTHER_PROBE_WAIT, PLACE_LOOKS_MAX, PLACE_PAUSE_MAX};
use fanfold::pacing::{Ask, Turns, Verdict};
use fanfold::policy::{Policy, Refusals};
use fanfold::store::batches::Batch;
use fanfold::store::gates::{Denied, Gate, Probe, Stopped};
use fanfold::store::places::{Party, Place};

use crate::times::{Time, Times};
use crate::{Handle, pace};

/// The right to make a call.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) place: Place,
    /// The gate as it was.
    pub(crate) gate: Gate,
    /// Whether the call probes the batch API of a kind that stands still.
    pub(crate) probes: bool,
    /// The times of its call, by the rates of its lane and its kind.
    pub(crate) times: Times,
}

/// Whether a batch may call.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It may call.
    Pass(Box<Pass>),
    /// It may try again after this time.
    Later(Duration),
    /// The kind's rate has no time for its call yet.
    NotYet(Box<(Gate, Ask)>),
    /// It waits for its turns, and may try again after this time.
    Turn(Turns, Duration),
    /// Its kind stands still: the sweep sends its message again.
    StandsStill,
    /// Its kind stands still for longer than the batch can wait; with the batch API's last answer.
    GivesUp(String),
}

/// What a batch asks its kind's gate for.
struct Wanted {
    place: Place,
    places_max: u32,
    /// A time of the kind's rate for the call.
    ask: Option<Ask>,
}

impl Handle {
    /// Takes a place for a call for this batch, or the probe of its kind. `ask`: the same write also takes a time of the kind's
    /// rate. Where DynamoDB throttles, or others are faster again and again, the batch comes later.
    pub(crate) async fn pass_gate(
        &self,
        batch: &Batch,
        policy: &Policy,
        ask: Option<&Ask>,
    ) -> Result<Entry, StoreError> {
        match self.try_gate(batch, policy, ask).await {
            Err(error @ StoreError::Contended { .. }) => {
                tracing::info!(%error, "the batch comes again later");
                Ok(Entry::Later(pace::wait(PLACE_PAUSE_MAX, self.world.random.next())))
            }
            entry => entry,
        }
    }

    async fn try_gate(&self, batch: &Batch, policy: &Policy, ask: Option<&Ask>) -> Result<Entry, StoreError> {
        let (lease, kind) = (policy.batch_api.timeout.0 + ATTEMPT_MARGIN, &batch.lane.kind);
        let (holder, places_max) = (self.world.uuid(), policy.calls_at_once(self.places_max));
        let mut record = self.gates.spread().any(places_max, self.world.random.next());
        let (mut looks, mut searched) = (1, false);
        for _ in 0..CONTENTION_TRIES_MAX {
            let now = self.world.now();
            let place = Place { party: Party::Kind(kind.clone()), record, holder, until: now.plus(lease) };
            let ask = ask.map(|ask| ask.clone().at(now, 0));
            let held = match (self.gates.take_in_time(&place, places_max, now, ask.as_ref()).await?, ask) {
                (Write::Done(gate), ask) => return Ok(passes(place, gate, ask, false)),
                (Write::Refused(Denied::NotYet(gate)), Some(ask)) => return Ok(Entry::NotYet(Box::new((*gate, ask)))),
                (Write::Refused(Denied::NotYet(gate)), None) => gate.places,
                (Write::Refused(Denied::StandsStill(gate)), ask) => {
                    match self.stands_still(batch, policy, &gate, Wanted { place, places_max, ask }).await? {
                        Some(entry) => return Ok(entry),
                        None => continue,
                    }
                }
                (Write::Refused(Denied::Full(held)), _) => held,
            };
            let random = self.world.random.next();
            if !searched && let Some(free) = self.gates.free_record(kind, places_max, now, random).await? {
                (record, searched) = (free, true);
                continue;
            }
            let oldest = pace::oldest(&held, lease, now);
            match pace::look(oldest, random) {
                Some(pause) if looks < PLACE_LOOKS_MAX => tokio::time::sleep(pause).await,
                _ => return Ok(Entry::Later(pace::wait(oldest, random))),
            }
            (looks, searched) = (looks + 1, false);
        }
        Err(StoreError::Contended { what: format!("taking a place of kind `{kind}`") })
    }

    /// What a batch does whose kind stands still. None: the kind stands still no more.
    async fn stands_still(
        &self,
        batch: &Batch,
        policy: &Policy,
        gate: &Gate,
        wanted: Wanted,
    ) -> Result<Option<Entry>, StoreError> {
        let Some(stopped) = &gate.stopped else { return Ok(None) };
        if self.holds_no_more(gate, policy).await? {
            return self.forget(gate, stopped, policy).await.map(|()| None);
        }
        self.knock(batch, gate, stopped, wanted).await.map(Some)
    }

    /// Whether a kind was stopped under another version of its policy. A cached policy may be some seconds old.
    async fn holds_no_more(&self, gate: &Gate, policy: &Policy) -> Result<bool, StoreError> {
        if gate.version == Some(policy.version()) {
            return Ok(false);
        }
        let now = self.policies.read(&gate.kind).await?;
        Ok(now.is_some_and(|policy| gate.version != Some(policy.version()) || policy.refusals == Refusals::Fail))
    }

    /// A batch at the gate of a kind that stands still: it probes, waits, or gives up.
    async fn knock(&self, batch: &Batch, gate: &Gate, stopped: &Stopped, wanted: Wanted) -> Result<Entry, StoreError> {
        let Wanted { place, places_max, ask } = wanted;
        // The probe is taken in the gate itself.
        let place = Place { record: 0, ..place };
        let now = self.world.now();
        if waited_in_vain(batch, Some(stopped.since), now) {
            return Ok(Entry::GivesUp(stopped.answer.clone()));
        }
        match gate.probe(&batch.lane.target, now) {
            Probe::Now => match ask {
                Some(ask) if gate.pace.verdict(&ask) != Verdict::Go => Ok(Entry::NotYet(Box::new((gate.clone(), ask)))),
                ask => {
                    let taken = self.gates.take_probe(&place, gate, stopped, places_max, ask.as_ref()).await?;
                    let probes = |after: Gate| passes(place, Gate { pace: after.pace, ..gate.clone() }, ask, true);
                    Ok(taken.map_or(Entry::StandsStill, probes))
                }
            },
            Probe::Soon => Ok(Entry::Later(OTHER_PROBE_WAIT)),
            Probe::No => Ok(Entry::StandsStill),
        }
    }

    /// Releases a place that was not used for a call, and the call's times. If that fails, the place's lease ends it, and
    /// the times are lost.
    pub(crate) async fn release_place(&self, batch: &Batch, pass: &Pass) {
        let Pass { place, probes, times, .. } = pass;
        let released = if *probes { self.gates.leave_probe(place).await } else { self.gates.release(place).await };
        if let Err(error) = released {
            tracing::warn!(%error, party = ?place.party, "a place was not released; it is free when its lease ends");
        }
        self.release_times(batch, times).await;
    }
}

/// The right to make a call, with its time if it asked for one.
fn passes(place: Place, gate: Gate, ask: Option<Ask>, probes: bool) -> Entry {
    let kind = ask.map(|ask| Time { given: gate.pace.given(&ask, place.holder), ask });
    Entry::Pass(Box::new(Pass { place, gate, probes, times: Times { lane: None, kind } }))
}
