//! The times of a batch's calls, the rates that give them, and how a batch waits for one.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::{DELAY_MIN, TURN_EARLY, TURN_SHORT};
use fanfold::pacing::{Allowance, Ask, CallTime, Spends, Turns, timestamp};
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;

/// The time of a call by one rate.
#[derive(Clone, Debug)]
pub(crate) struct Time {
    pub(crate) ask: Ask,
    /// None: the time was given, but which one is not known, since the answer was lost.
    pub(crate) given: Option<CallTime>,
}

impl Time {
    pub(crate) fn missed(&self, now: Timestamp) -> bool {
        self.given.as_ref().is_none_or(|given| given.missed(now))
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
        let at = self.lane.iter().chain(&self.kind).filter_map(|time| time.given.as_ref()).map(|given| given.at).max();
        at.map_or(Duration::ZERO, |at| timestamp(at).since(now))
    }
}

/// The rates that apply to a call of a batch.
pub(crate) struct Rates {
    pub(crate) lane: Option<Allowance>,
    pub(crate) kind: Option<Allowance>,
    spends: Spends,
}

/// How a batch waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The worker waits.
    Here(Duration),
    /// Its message is delayed.
    Message(Duration),
}

impl Rates {
    pub(crate) fn of(batch: &Batch, policy: &Policy) -> Self {
        let allowance = |rate: &Option<_>| rate.as_ref().and_then(Allowance::of);
        // Which members are called is known only when the attempt has begun: it may be fewer.
        let spends = Spends { tasks: batch.called().len(), weight: batch.weight };
        Self { lane: allowance(&policy.lane_rate), kind: allowance(&policy.kind_rate), spends }
    }

    pub(crate) fn lane(&self, turns: &Turns) -> Option<Ask> {
        self.lane.as_ref().map(|lane| lane.ask(self.spends, turns.lane.is_some()))
    }

    pub(crate) fn kind(&self, turns: &Turns) -> Option<Ask> {
        self.kind.as_ref().map(|kind| kind.ask(self.spends, turns.kind.is_some()))
    }

    /// How a batch waits for a time.
    pub(crate) fn wait(&self, at: Timestamp, now: Timestamp) -> Wait {
        let none = Turns::default();
        let asks = [self.lane(&none), self.kind(&none)];
        let lead = asks.iter().flatten().map(|ask| ask.lead).max().unwrap_or(0);
        let slack = asks.iter().flatten().map(|ask| ask.slack).min().unwrap_or(0);
        wait(at.since(now).saturating_sub(Duration::from_micros(lead)), Duration::from_micros(slack))
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
