//! Which batches may call: a limited number of calls of a kind's batch API run at once, and none while the kind stands still.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::grouping::waited_in_vain;
use fanfold::limits::{
    ATTEMPT_MARGIN, CONTENTION_TRIES_MAX, OTHER_PROBE_WAIT, PLACE_LOOKS_MAX, PLACE_PAUSE_MAX, PLACE_RECORDS_PER_LOOK,
};
use fanfold::pacing::{Ask, Turns, Verdict};
use fanfold::policy::{Policy, Refusals};
use fanfold::store::batches::Batch;
use fanfold::store::gates::{Gate, Probe, Stopped};
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
        let lease = policy.batch_api.timeout.0 + ATTEMPT_MARGIN;
        let (holder, random) = (self.world.uuid(), self.world.random.next());
        let places_max = policy.calls_at_once(self.places_max);
        let spread = self.gates.spread();
        let per_pause = PLACE_RECORDS_PER_LOOK.min(spread.records(places_max));
        let mut looks = 0;
        for _ in 0..CONTENTION_TRIES_MAX {
            let now = self.world.now();
            let record = spread.looked_into(places_max, random, looks);
            let place = Place { party: Party::Kind(batch.lane.kind.clone()), record, holder, until: now.plus(lease) };
            let ask = ask.map(|ask| ask.clone().at(now, 0));
            let gate = match self.gates.take_in_time(&place, places_max, now, ask.as_ref()).await? {
                Write::Done(gate) => return Ok(passes(place, gate, ask, false)),
                Write::Refused(gate) => gate,
            };
            if let Some(stopped) = &gate.stopped {
                if self.holds_no_more(&gate, policy).await? {
                    self.forget(&gate, stopped, policy).await?;
                    continue;
                }
                return self.knock(batch, &gate, stopped, Wanted { place, places_max, ask }).await;
            }
            // A place is free, so the rate refused.
            if let Some(ask) = ask.filter(|_| gate.held(now) < spread.room(record, places_max) as usize) {
                return Ok(Entry::NotYet(Box::new((gate, ask))));
            }
            looks += 1;
            if !looks.is_multiple_of(per_pause) {
                continue;
            }
            let oldest = pace::oldest(&gate, lease, now);
            let random = self.world.random.next();
            match pace::look(oldest, random) {
                Some(pause) if looks < PLACE_LOOKS_MAX * per_pause => tokio::time::sleep(pause).await,
                _ => return Ok(Entry::Later(pace::wait(oldest, random))),
            }
        }
        Err(StoreError::Contended { what: format!("taking a place of kind `{}`", batch.lane.kind) })
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
        if waited_in_vain(batch, now) {
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
