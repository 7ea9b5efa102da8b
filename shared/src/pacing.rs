//! Rates: when the next call of a batch API may be made. No I/O.
//!
//! The rule is a token bucket, kept as one number (the generic cell rate algorithm: ITU-T I.371): the moment at which the
//! bucket will be full again. Let the bucket hold `b`, and refill at `r` per second. A call that spends `n` may be made once
//! `n` is in the bucket, which is `(b - n) / r` before that moment. A call that spends more than `b` may be made once the
//! bucket is full. The call moves the moment by `n / r`.
//!
//! A call is not made exactly at its time, but within its grace after it. So the bucket begins to fill again only after the
//! grace: in no span of `t` seconds is more than `b + r * t` called, wherever within their graces the calls are made. That
//! costs a part of a burst after a pause. Without a pause it costs nothing, if the burst has room for the grace.
//!
//! A second number is the moment up to which times are promised to batches that wait: their turns. It keeps their order, and
//! does not decide what may be called. A turn that no batch takes, or takes late, is lost, and the rate is not exceeded.

mod turns;

use std::time::Duration;

use uuid::Uuid;

pub use self::turns::{Turn, TurnError, Turns};
use crate::clock::Timestamp;
use crate::limits::{
    BURST_TIME_DEFAULT, CALL_AHEAD, CALL_GRACE_BURST_SHARE, CALL_GRACE_MAX, CALL_GRACE_MIN, CALL_GRACE_SHARE,
    CALL_LEAD, CALL_LEAD_AGAIN, CALL_LEAD_PER_MEMBER,
};
use crate::policy::{Rate, Unit, Weight};

/// A moment in microseconds since the Unix epoch, or a span in microseconds. Milliseconds are too coarse for fast rates.
pub type Micros = u64;

fn micros(span: Duration) -> Micros {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// The first moment of a clock that is not before this one.
#[must_use]
pub fn timestamp(at: Micros) -> Timestamp {
    Timestamp(at.div_ceil(1_000))
}

/// A moment of a clock.
#[must_use]
pub fn moment(at: Timestamp) -> Micros {
    at.0.saturating_mul(1_000)
}

/// What a call spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spends {
    /// Its members.
    pub tasks: usize,
    /// The weight of its batch.
    pub weight: Weight,
}

/// A rate, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    unit: Unit,
    /// In thousandths of the unit.
    amount: u64,
    per: Micros,
    burst: u64,
}

impl Allowance {
    /// What a rate allows. None: the rate does not count exactly one thing.
    #[must_use]
    pub fn of(rate: &Rate) -> Option<Self> {
        let (unit, Weight(amount)) = rate.amount().filter(|(_, amount)| *amount > Weight::default())?;
        let per = micros(rate.per.time());
        let default = || {
            let comes = u128::from(amount) * BURST_TIME_DEFAULT.as_micros() / u128::from(per);
            let comes = u64::try_from(comes).unwrap_or(u64::MAX);
            if unit == Unit::Weight { comes } else { (comes / Weight::ONE.0).max(1) * Weight::ONE.0 }
        };
        Some(Self { unit, amount, per, burst: rate.burst.map_or_else(default, |burst| burst.0) })
    }

    /// Its name. State that was kept under another name does not apply to it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {} {} {}", self.unit, self.amount, self.per, self.burst)
    }

    /// How long this many thousandths take to come, rounded down.
    fn time(&self, thousandths: u64) -> u128 {
        u128::from(thousandths) * u128::from(self.per) / u128::from(self.amount)
    }

    /// What a call of a batch asks for. `has_turn`: the batch has waited for its turn.
    #[must_use]
    pub fn ask(&self, spends: Spends, has_turn: bool) -> Ask {
        let spent = match self.unit {
            Unit::Tasks => u64::try_from(spends.tasks).unwrap_or(u64::MAX).saturating_mul(Weight::ONE.0),
            Unit::Calls => Weight::ONE.0,
            Unit::Weight => spends.weight.0,
        };
        let known = |time: u128| u64::try_from(time).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let (spend, whole) = (known(self.time(spent) + 1), known(self.time(self.burst)));
        // Exact times need no rounding up.
        let spend =
            if u128::from(spent) * u128::from(self.per) % u128::from(self.amount) == 0 { spend - 1 } else { spend };
        let slack = whole.saturating_sub(spend);
        let grace = (slack / CALL_GRACE_BURST_SHARE)
            .max(spend / CALL_GRACE_SHARE)
            .clamp(micros(CALL_GRACE_MIN), micros(CALL_GRACE_MAX));
        let need = micros(CALL_LEAD + CALL_LEAD_PER_MEMBER * u32::try_from(spends.tasks).unwrap_or(u32::MAX));
        let lead = if grace >= 2 * need { 0 } else { need };
        Ask { name: self.name(), spend, whole, slack, grace, lead, from: 0, has_turn }
    }
}

/// What a call of a batch asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The rate's name.
    pub name: String,
    /// How long it takes the rate to refill what the call spends.
    pub spend: Micros,
    /// How long it takes the rate to refill a whole burst.
    pub whole: Micros,
    /// How long before the bucket is full the call may be made.
    pub slack: Micros,
    /// How late after its time the call may be made.
    pub grace: Micros,
    /// How long before its call the batch asks.
    pub lead: Micros,
    /// The earliest time that is of use to the call.
    pub from: Micros,
    /// Whether the batch has waited for its turn.
    pub has_turn: bool,
}

impl Ask {
    /// The same, for a call that is made neither before `other` nor sooner than its lead from now.
    #[must_use]
    pub fn at(self, now: Timestamp, other: Micros) -> Self {
        let from = moment(now).saturating_add(self.lead).max(other);
        Self { from, ..self }
    }

    /// The same, for a batch that missed its time.
    #[must_use]
    pub fn again(self, now: Timestamp) -> Self {
        let from = moment(now).saturating_add(micros(CALL_LEAD_AGAIN));
        Self { from, has_turn: true, ..self }
    }

    /// What the call adds to the moment at which the bucket is full, unless it is full by [`Self::floor`].
    #[must_use]
    pub fn cost(&self) -> Micros {
        self.spend + (self.grace - self.grace.min(self.slack))
    }

    /// A bucket that is full by this moment counts as full.
    #[must_use]
    pub fn floor(&self) -> Micros {
        self.from + self.grace.min(self.slack)
    }

    /// A bucket that is full after this moment has no time for the call that is near enough.
    #[must_use]
    pub fn ceiling(&self) -> Micros {
        self.from + micros(CALL_AHEAD) + self.slack
    }

    /// When the bucket is full again after this call, if it would be at `full` without it.
    #[must_use]
    pub fn after(&self, full: Option<Micros>) -> Micros {
        match full {
            Some(full) if full > self.floor() => full.saturating_add(self.cost()),
            _ => self.from + self.grace + self.spend,
        }
    }

    /// The time of this call, if the bucket is full at `full` after it.
    #[must_use]
    pub fn time(&self, full: Micros) -> Micros {
        self.from.max(full.saturating_sub(self.cost()).saturating_sub(self.slack))
    }
}

/// The state of a rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The name of the rate. None: no call was made, and no batch waits.
    pub name: Option<String>,
    /// When it is full again.
    pub full: Option<Micros>,
    /// Up to when times are promised to batches that wait.
    pub promised: Option<Micros>,
    /// The id that got the latest time.
    pub by: Option<Uuid>,
}

/// The answer of a bucket to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is a time for it.
    Go,
    /// Its batch has waited for its turn, and its time is later.
    Wait(Micros),
    /// Other batches wait, or the bucket is empty: its batch is to get a turn.
    Queue,
}

impl Bucket {
    /// The same by the rate of this call. After a change of the rate, what was spent stays spent, but never more than a whole
    /// burst of the new rate; promises are void.
    #[must_use]
    pub fn by_rate_of(&self, ask: &Ask) -> Self {
        if self.name.as_ref().is_none_or(|name| *name == ask.name) {
            return self.clone();
        }
        let full = self.full.map(|full| full.min(ask.from.saturating_add(ask.whole)));
        Self { full, promised: None, ..self.clone() }
    }

    /// Its answer to a call.
    #[must_use]
    pub fn verdict(&self, ask: &Ask) -> Verdict {
        let bucket = self.by_rate_of(ask);
        let others_wait = bucket.promised.is_some_and(|promised| promised > ask.from);
        let near = bucket.full.is_none_or(|full| full <= ask.ceiling());
        match (ask.has_turn, near) {
            (true, true) => Verdict::Go,
            (true, false) => Verdict::Wait(ask.time(ask.after(bucket.full))),
            (false, true) if !others_wait => Verdict::Go,
            (false, _) => Verdict::Queue,
        }
    }

    /// The time that `by` got by a write that left the bucket like this. None: another call got one since.
    #[must_use]
    pub fn given(&self, ask: &Ask, by: Uuid) -> Option<CallTime> {
        let full = self.full.filter(|_| self.by == Some(by))?;
        Some(CallTime::given(ask.clone(), by, full))
    }

    /// The turn that a call gets, and up to when times are promised with it.
    #[must_use]
    pub fn turn(&self, ask: &Ask) -> (Micros, Micros) {
        let bucket = self.by_rate_of(ask);
        let promised = ask.after(bucket.promised.max(bucket.full));
        (ask.time(promised), promised)
    }
}

/// A time at which a call may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// The call may be made from this moment on.
    pub at: Micros,
    /// The call may be made until this moment.
    pub until: Micros,
    /// When the bucket is full again after it.
    pub full: Micros,
    /// The id that got it.
    pub by: Uuid,
    /// What the call asked for.
    pub ask: Ask,
}

impl CallTime {
    /// The time that a call got, if the bucket is full at `full` after it.
    #[must_use]
    pub fn given(ask: Ask, by: Uuid, full: Micros) -> Self {
        let at = ask.time(full);
        Self { at, until: at + ask.grace, full, by, ask }
    }

    /// Whether it is too late for the call. Clocks show whole milliseconds.
    #[must_use]
    pub fn missed(&self, now: Timestamp) -> bool {
        moment(Timestamp(now.0.saturating_add(1))) > self.until
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
