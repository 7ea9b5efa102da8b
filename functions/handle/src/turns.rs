//! The turns that a batch waits for, and how it takes the times of its calls.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::clock::Timestamp;
use fanfold::limits::{CALL_AHEAD, DELAY_MIN, TURN_LOOKS_MAX};
use fanfold::messages::HandleMessage;
use fanfold::pacing::{Ask, Bucket, Micros, Turn, Turns, Verdict, timestamp};
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold::store::pace::Paced;

use crate::places::Entry;
use crate::step::Afterwards;
use crate::times::{Rates, Time, Times, Wait};
use crate::{Handle, HandleError};

/// What became of asking for the times of a call and for a place.
enum Asked {
    /// Whether the batch may call.
    Entry(Entry),
    /// When to ask again.
    AskAgain(Micros),
}

/// What became of asking for the time of a call by its lane's rate.
enum LaneTime {
    /// The time. None: the lane has no lock, so the batch is not in flight, and its attempt will not begin.
    Taken(Option<Time>),
    /// When to ask again.
    AskAgain(Micros),
}

/// Waits, unless the wait is zero: even the shortest sleep lasts a millisecond.
pub(crate) async fn pause(wait: Duration) {
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
}

impl Handle {
    /// Waits for the turns in the batch's record, if they come soon. Otherwise returns for how long the batch's message is to
    /// be delayed.
    pub(crate) async fn until_turn(&self, batch: &Batch, policy: &Policy) -> Option<Duration> {
        let at = batch.turns_under(policy).at()?;
        match Rates::of(batch, policy).wait(at, self.world.now()) {
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
        let mut turns = batch.turns_under(policy);
        for _ in 0..TURN_LOOKS_MAX {
            let at = match self.ask(batch, policy, &rates, &mut turns).await? {
                Asked::Entry(entry) => return Ok(entry),
                Asked::AskAgain(at) => at,
            };
            match rates.wait(timestamp(at), self.world.now()) {
                Wait::Here(wait) => pause(wait).await,
                Wait::Message(wait) => return Ok(Entry::Turn(turns, wait)),
            }
        }
        Ok(Entry::Turn(turns, DELAY_MIN))
    }

    /// Asks for the times of a call and for a place.
    async fn ask(&self, batch: &Batch, policy: &Policy, rates: &Rates, turns: &mut Turns) -> Result<Asked, StoreError> {
        if rates.lane.is_some() && rates.kind.is_some() {
            return self.ask_both(batch, policy, rates, turns).await;
        }
        let lane = match rates.lane(turns) {
            None => None,
            Some(ask) => match self.time_in_lane(batch, ask.at(self.world.now(), 0), turns).await? {
                LaneTime::Taken(time) => time,
                LaneTime::AskAgain(at) => return Ok(Asked::AskAgain(at)),
            },
        };
        match self.pass_gate(batch, policy, rates.kind(turns).as_ref()).await? {
            Entry::Pass(mut pass) => {
                pass.times.lane = lane;
                Ok(Asked::Entry(Entry::Pass(pass)))
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
    ) -> Result<Asked, StoreError> {
        if let Some(ask) = rates.lane(turns).filter(|ask| !ask.has_turn) {
            let ask = ask.at(self.world.now(), 0);
            let at = self.locks.promise(&batch.lane, &ask, &Bucket::default()).await?;
            let soon = at <= ask.from + u64::try_from(CALL_AHEAD.as_micros()).unwrap_or(0);
            turns.lane = Some(Turn { at: timestamp(at), rate: ask.name });
            if !soon {
                return Ok(Asked::AskAgain(at));
            }
        }
        let mut pass = match self.pass_gate(batch, policy, rates.kind(turns).as_ref()).await? {
            Entry::Pass(pass) => pass,
            entry => return self.or_turn(entry, turns).await,
        };
        let at = pass.times.kind.as_ref().and_then(|time| time.given.as_ref()).map_or(0, |given| given.at);
        let Some(ask) = rates.lane(turns) else { return Ok(Asked::Entry(Entry::Pass(pass))) };
        let time = self.time_in_lane(batch, ask.at(self.world.now(), at), turns).await;
        if !matches!(time, Ok(LaneTime::Taken(_))) {
            self.release_place(batch, &pass).await;
        }
        match time? {
            LaneTime::Taken(time) => {
                pass.times.lane = time;
                Ok(Asked::Entry(Entry::Pass(pass)))
            }
            LaneTime::AskAgain(at) => Ok(Asked::AskAgain(at)),
        }
    }

    /// Gives a turn to a batch that the kind's rate refused, unless the batch has waited for one already.
    async fn or_turn(&self, entry: Entry, turns: &mut Turns) -> Result<Asked, StoreError> {
        let Entry::NotYet(refused) = entry else { return Ok(Asked::Entry(entry)) };
        let (gate, ask) = *refused;
        let next = match gate.pace.verdict(&ask) {
            Verdict::Wait(at) => self.next(turns, at, &ask, &gate.pace),
            Verdict::Go | Verdict::Queue => None,
        };
        let at = match next {
            Some(at) => at,
            None => self.gates.promise(&gate.kind, &ask, &gate.pace).await?,
        };
        turns.kind = Some(Turn { at: timestamp(at), rate: ask.name });
        Ok(Asked::AskAgain(at))
    }

    /// When a batch with a turn asks again, if it is refused until then by this bucket. None: it gets a new turn.
    fn next(&self, turns: &Turns, at: Micros, ask: &Ask, bucket: &Bucket) -> Option<Micros> {
        turns.next(at, bucket.turn(ask).0, self.world.now(), self.world.random.next())
    }

    /// Asks for the time of a call by its lane's rate.
    async fn time_in_lane(&self, batch: &Batch, ask: Ask, turns: &mut Turns) -> Result<LaneTime, StoreError> {
        let (next, bucket) = match self.locks.take_time(&batch.lane, &ask, self.world.uuid()).await? {
            Paced::Given(given) => return Ok(LaneTime::Taken(Some(Time { ask, given: Some(*given) }))),
            Paced::Gone => return Ok(LaneTime::Taken(None)),
            Paced::Wait(at, bucket) => (self.next(turns, at, &ask, &bucket), bucket),
            Paced::Queue(bucket) => (None, bucket),
        };
        let at = match next {
            Some(at) => at,
            None => self.locks.promise(&batch.lane, &ask, &bucket).await?,
        };
        turns.lane = Some(Turn { at: timestamp(at), rate: ask.name });
        Ok(LaneTime::AskAgain(at))
    }

    /// Records the turns that a batch waits for, and delays its message until shortly before they come.
    pub(crate) async fn wait_for_turn(
        &self,
        message: HandleMessage,
        batch: &Batch,
        turns: Turns,
        wait: Duration,
    ) -> Result<Afterwards, HandleError> {
        match self.batches.wait_for_turn(batch, turns).await? {
            Write::Done(_) => self.come_later(batch, message, wait).await,
            Write::Refused(Some(batch)) => self.continue_from_record(&batch, message.more).await,
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
            let Some(given) = &time.given else { return Ok(false) };
            let Paced::Given(given) = self.locks.later_time(&batch.lane, given, &ask, by).await? else {
                return Ok(false);
            };
            time.given = Some(*given);
        }
        if let Some(time) = times.kind.as_mut().filter(|time| time.missed(now)) {
            let (ask, by) = (time.ask.clone().again(now), self.world.uuid());
            let kind = &batch.lane.kind;
            let Paced::Given(given) = self.gates.later_time(kind, time.given.as_ref(), &ask, by).await? else {
                return Ok(false);
            };
            time.given = Some(*given);
        }
        Ok(true)
    }

    /// Releases times that were not used for a call. If that fails, they are lost.
    pub(crate) async fn release_times(&self, batch: &Batch, Times { lane, kind }: &Times) {
        if let Some(given) = lane.as_ref().and_then(|time| time.given.as_ref())
            && let Err(error) = self.locks.release_time(&batch.lane, given).await
        {
            tracing::warn!(%error, lane = %batch.lane, "a time of a lane's rate was not released");
        }
        if let Some(given) = kind.as_ref().and_then(|time| time.given.as_ref())
            && let Err(error) = self.gates.release_time(&batch.lane.kind, given).await
        {
            tracing::warn!(%error, kind = batch.lane.kind, "a time of a kind's rate was not released");
        }
    }
}
