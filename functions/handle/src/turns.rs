//! Rates: the times of a batch's calls, and the turns that the batch waits for.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::clock::Timestamp;
use fanfold::limits::{CALL_AHEAD, DELAY_MIN, TURN_EARLY, TURN_LOOKS_MAX, TURN_SHORT};
use fanfold::messages::HandleMessage;
use fanfold::pacing::{Allowance, Ask, Bucket, Micros, Slot, Spends, Turn, Turns, Verdict, timestamp};
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold::store::pace::Paced;

use crate::places::Entry;
use crate::step::Then;
use crate::{Handle, HandleError};

/// The time of a call by one rate.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) ask: Ask,
    /// None: the time was given, but which one is not known, since the answer was lost.
    pub(crate) slot: Option<Slot>,
}

impl Time {
    fn missed(&self, now: Timestamp) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.missed(now))
    }
}

/// The times of a call; none where there is no rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) lane: Option<Time>,
    pub(crate) kind: Option<Time>,
}

impl Times {
    /// How long it is until the call may be made.
    pub(crate) fn ahead(&self, now: Timestamp) -> Duration {
        let at = self.lane.iter().chain(&self.kind).filter_map(|time| time.slot.as_ref()).map(|slot| slot.at).max();
        at.map_or(Duration::ZERO, |at| timestamp(at).since(now))
    }
}

/// The rates that apply to a call of a batch.
struct Rates {
    lane: Option<Allowance>,
    kind: Option<Allowance>,
    spends: Spends,
}

/// How a batch waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The worker waits.
    Here(Duration),
    /// Its message is delayed.
    Message(Duration),
}

impl Rates {
    fn of(batch: &Batch, policy: &Policy) -> Self {
        let allowance = |rate: &Option<_>| rate.as_ref().and_then(Allowance::of);
        // Which members are called is known only when the attempt has begun: it may be fewer.
        let spends = Spends { tasks: batch.called().len(), weight: batch.weight };
        Self { lane: allowance(&policy.lane_rate), kind: allowance(&policy.kind_rate), spends }
    }

    fn lane(&self, turns: &Turns) -> Option<Ask> {
        self.lane.as_ref().map(|lane| lane.ask(self.spends, turns.lane.is_some()))
    }

    fn kind(&self, turns: &Turns) -> Option<Ask> {
        self.kind.as_ref().map(|kind| kind.ask(self.spends, turns.kind.is_some()))
    }

    /// A batch's turns, without those by rates that no longer apply.
    fn holding(&self, turns: &Turns) -> Turns {
        let holds = |turn: &Option<Turn>, allowance: &Option<Allowance>| {
            let name = allowance.as_ref().map(Allowance::name);
            turn.clone().filter(|turn| name.as_ref() == Some(&turn.rate))
        };
        Turns { lane: holds(&turns.lane, &self.lane), kind: holds(&turns.kind, &self.kind) }
    }

    /// How a batch waits for a time.
    fn wait(&self, at: Timestamp, now: Timestamp) -> Wait {
        let none = Turns::default();
        let asks = [self.lane(&none), self.kind(&none)];
        let lead = asks.iter().flatten().map(|ask| ask.lead).max().unwrap_or(0);
        let slack = asks.iter().flatten().map(|ask| ask.slack).min().unwrap_or(0);
        wait(at.since(now).saturating_sub(Duration::from_micros(lead)), Duration::from_micros(slack))
    }
}

/// Waits, unless the wait is zero: even the shortest sleep lasts a millisecond.
pub(crate) async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

/// SQS delays by whole seconds. If the burst has room for it, the message comes up to a second late. Otherwise it comes early,
/// and the worker waits for the rest.
fn wait(left: Duration, slack: Duration) -> Wait {
    if left <= TURN_SHORT {
        Wait::Here(left)
    } else if slack >= TURN_SHORT {
        Wait::Message(left)
    } else {
        Wait::Message(Duration::from_secs(left.saturating_sub(TURN_EARLY).as_secs()).max(DELAY_MIN))
    }
}

impl Handle {
    /// Waits for the turns in the batch's record, if they come soon. Otherwise returns for how long the batch's message is to
    /// be delayed.
    pub(crate) async fn until_turn(&self, batch: &Batch, policy: &Policy) -> Option<Duration> {
        let rates = Rates::of(batch, policy);
        let at = rates.holding(&batch.turns).at()?;
        match rates.wait(at, self.world.now()) {
            Wait::Message(wait) => Some(wait),
            Wait::Here(wait) => {
                pause(wait).await;
                None
            }
        }
    }

    /// Takes a place for a call of this batch, and a time by each of its rates.
    pub(crate) async fn enter(&self, batch: &Batch, policy: &Policy) -> Result<Entry, StoreError> {
        let rates = Rates::of(batch, policy);
        let mut turns = rates.holding(&batch.turns);
        let spread = turns.spread(self.world.now(), self.world.random.next());
        for _ in 0..TURN_LOOKS_MAX {
            let at = match self.ask(batch, policy, &rates, &mut turns).await? {
                Ok(entry) => return Ok(entry),
                Err(at) => at,
            };
            match rates.wait(timestamp(at).plus(spread), self.world.now()) {
                Wait::Here(wait) => pause(wait).await,
                Wait::Message(wait) => return Ok(Entry::Turn(turns.later(spread), wait)),
            }
        }
        Ok(Entry::Turn(turns, DELAY_MIN))
    }

    /// Asks for the times of a call and for a place. `Err`: when to ask again.
    async fn ask(
        &self,
        batch: &Batch,
        policy: &Policy,
        rates: &Rates,
        turns: &mut Turns,
    ) -> Result<Result<Entry, Micros>, StoreError> {
        if rates.lane.is_some() && rates.kind.is_some() {
            return self.ask_both(batch, policy, rates, turns).await;
        }
        let lane = match rates.lane(turns) {
            None => None,
            Some(ask) => match self.time_in_lane(batch, ask.at(self.world.now(), 0), turns).await? {
                Ok(time) => time,
                Err(at) => return Ok(Err(at)),
            },
        };
        match self.pass_gate(batch, policy, rates.kind(turns).as_ref()).await? {
            Entry::Pass(mut pass) => {
                pass.times.lane = lane;
                Ok(Ok(Entry::Pass(pass)))
            }
            entry => {
                self.release_times(batch, &Times { lane, kind: None }).await;
                self.or_turn(entry, turns).await
            }
        }
    }

    /// The same if both the lane and its kind have rates. If a batch took the lane's time and then waited for the kind, other
    /// batches of the lane would lose that time. So the batch first waits for both turns, one after the other, then takes both
    /// times.
    async fn ask_both(
        &self,
        batch: &Batch,
        policy: &Policy,
        rates: &Rates,
        turns: &mut Turns,
    ) -> Result<Result<Entry, Micros>, StoreError> {
        if let Some(ask) = rates.lane(turns).filter(|ask| !ask.has_turn) {
            let ask = ask.at(self.world.now(), 0);
            let at = self.locks.promise(&batch.lane, &ask, &Bucket::default()).await?;
            let soon = at <= ask.from + u64::try_from(CALL_AHEAD.as_micros()).unwrap_or(0);
            turns.lane = Some(Turn { at: timestamp(at), rate: ask.name });
            if !soon {
                return Ok(Err(at));
            }
        }
        let mut pass = match self.pass_gate(batch, policy, rates.kind(turns).as_ref()).await? {
            Entry::Pass(pass) => pass,
            entry => return self.or_turn(entry, turns).await,
        };
        let at = pass.times.kind.as_ref().and_then(|time| time.slot.as_ref()).map_or(0, |slot| slot.at);
        let Some(ask) = rates.lane(turns) else { return Ok(Ok(Entry::Pass(pass))) };
        match self.time_in_lane(batch, ask.at(self.world.now(), at), turns).await {
            Ok(Ok(time)) => {
                pass.times.lane = time;
                Ok(Ok(Entry::Pass(pass)))
            }
            not_yet => {
                self.release_place(batch, &pass).await;
                not_yet.map(|not_yet| Err(not_yet.err().unwrap_or_default()))
            }
        }
    }

    /// Gives a turn to a batch that the kind's rate refused, unless the batch has waited for one already. `Err`: when to ask
    /// again.
    async fn or_turn(&self, entry: Entry, turns: &mut Turns) -> Result<Result<Entry, Micros>, StoreError> {
        let Entry::NotYet(refused) = entry else { return Ok(Ok(entry)) };
        let (gate, ask) = *refused;
        let at = match gate.pace.verdict(&ask) {
            Verdict::Wait(at) => at,
            Verdict::Go | Verdict::Queue => self.gates.promise(&gate.kind, &ask, &gate.pace).await?,
        };
        turns.kind = Some(Turn { at: timestamp(at), rate: ask.name });
        Ok(Err(at))
    }

    /// Asks for the time of a call by its lane's rate. `Err`: when to ask again.
    async fn time_in_lane(
        &self,
        batch: &Batch,
        ask: Ask,
        turns: &mut Turns,
    ) -> Result<Result<Option<Time>, Micros>, StoreError> {
        let at = match self.locks.take_time(&batch.lane, &ask, self.world.uuid()).await? {
            Paced::Slot(slot) => return Ok(Ok(Some(Time { ask, slot: Some(*slot) }))),
            // Without a lock the batch is not in flight: its attempt will not begin.
            Paced::Gone => return Ok(Ok(None)),
            Paced::Wait(at) => at,
            Paced::Queue(bucket) => self.locks.promise(&batch.lane, &ask, &bucket).await?,
        };
        turns.lane = Some(Turn { at: timestamp(at), rate: ask.name });
        Ok(Err(at))
    }

    /// Records the turns that a batch waits for, and delays its message until shortly before they come.
    pub(crate) async fn wait_for_turn(
        &self,
        message: HandleMessage,
        batch: &Batch,
        turns: Turns,
        wait: Duration,
    ) -> Result<Then, HandleError> {
        match self.batches.wait_for_turn(batch, turns).await? {
            Write::Done(_) => self.come_later(batch, message, wait).await,
            Write::Refused(Some(batch)) => self.go_on(&batch, message.more).await,
            Write::Refused(None) => Err(HandleError::UnknownBatch(message.batch)),
        }
    }

    /// Waits for the times of a call. If the call missed one, it gets a later one, if there is one soon. Returns whether it may
    /// be made now.
    pub(crate) async fn in_time(&self, batch: &Batch, times: &mut Times) -> bool {
        for _ in 0..TURN_LOOKS_MAX {
            pause(times.ahead(self.world.now())).await;
            let now = self.world.now();
            let missed = |time: &Option<Time>| time.as_ref().is_some_and(|time| time.missed(now));
            if !missed(&times.lane) && !missed(&times.kind) {
                return true;
            }
            let Ok(true) = self.later_times(batch, times, now).await else { return false };
        }
        false
    }

    /// Replaces the times that were missed by later ones. False: there are none soon.
    async fn later_times(&self, batch: &Batch, times: &mut Times, now: Timestamp) -> Result<bool, StoreError> {
        if let Some(time) = times.lane.as_mut().filter(|time| time.missed(now)) {
            let (ask, by) = (time.ask.clone().again(now), self.world.uuid());
            let Some(slot) = &time.slot else { return Ok(false) };
            let Paced::Slot(slot) = self.locks.later_time(&batch.lane, slot, &ask, by).await? else { return Ok(false) };
            time.slot = Some(*slot);
        }
        if let Some(time) = times.kind.as_mut().filter(|time| time.missed(now)) {
            let (ask, by) = (time.ask.clone().again(now), self.world.uuid());
            let kind = &batch.lane.kind;
            let Paced::Slot(slot) = self.gates.later_time(kind, time.slot.as_ref(), &ask, by).await? else {
                return Ok(false);
            };
            time.slot = Some(*slot);
        }
        Ok(true)
    }

    /// Releases times that were not used for a call. If that fails, they are lost.
    pub(crate) async fn release_times(&self, batch: &Batch, Times { lane, kind }: &Times) {
        if let Some(slot) = lane.as_ref().and_then(|time| time.slot.as_ref())
            && let Err(error) = self.locks.release_time(&batch.lane, slot).await
        {
            tracing::warn!(%error, lane = %batch.lane, "a time of a lane's rate was not released");
        }
        if let Some(slot) = kind.as_ref().and_then(|time| time.slot.as_ref())
            && let Err(error) = self.gates.release_time(&batch.lane.kind, slot).await
        {
            tracing::warn!(%error, kind = batch.lane.kind, "a time of a kind's rate was not released");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_must_be_in_time_comes_early() {
        let (strict, loose) = (Duration::from_millis(100), Duration::from_secs(2));
        let left = Duration::from_millis;
        assert_eq!(wait(left(900), strict), Wait::Here(left(900)));
        assert_eq!(wait(left(900), loose), Wait::Here(left(900)));
        assert_eq!(wait(left(5_400), strict), Wait::Message(left(5_000)));
        assert_eq!(wait(left(5_100), strict), Wait::Message(left(4_000)), "a delay is never shorter");
        assert_eq!(wait(left(5_100), loose), Wait::Message(left(5_100)));
        assert_eq!(wait(left(1_250), strict), Wait::Message(left(1_000)));
    }
}
