//! For how long a leader waits for more tasks.

use std::time::Duration;

use crate::backoff::delay_seconds;
use crate::clock::Timestamp;
use crate::control::Hold;
use crate::limits::{DELAY_MIN, QUIET_LOOKS, QUIET_LOOKS_APART};
use crate::policy::Policy;

/// The time that a policy gives the leaders of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linger {
    most: Duration,
    quiet: Option<Duration>,
    /// With fewer members a batch waits on after its linger.
    least: usize,
    least_wait: Duration,
}

/// What a leader finds in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The members that its batch would have.
    pub members: usize,
    /// Whether its batch goes in any case: it is full, or a task flushes.
    pub at_once: bool,
    /// When the task came that came last, as far as it is known.
    pub newest: Option<Timestamp>,
}

impl Linger {
    /// Leaders that do not wait.
    pub const NONE: Self = Self { most: Duration::ZERO, quiet: None, least: 0, least_wait: Duration::ZERO };

    /// What this policy gives.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        Self {
            most: policy.linger.0,
            quiet: policy.quiet.map(|quiet| quiet.0),
            // One member is there in any case.
            least: policy.min_batch.filter(|least| *least > 1).map_or(0, |least| least as usize),
            least_wait: policy
                .min_batch_wait
                .filter(|_| policy.min_batch > Some(1))
                .map_or(Duration::ZERO, |wait| wait.0),
        }
    }

    /// What leaders of a lane of this policy may do now: in a lane that drains they do not linger.
    #[must_use]
    pub fn under(policy: &Policy, hold: Hold) -> Self {
        if hold.draining { Self::NONE } else { Self::of(policy) }
    }

    /// The longest that a leader may wait.
    #[must_use]
    pub fn longest(self) -> Duration {
        self.most.saturating_add(self.least_wait)
    }

    /// How a leader waits for this time: by a message with this delay, whole seconds, and then in its worker, for less than a
    /// second. Where a policy has whole seconds only, no worker waits: the delay is rounded up.
    #[must_use]
    pub fn delay(self, wait: Duration) -> (Duration, Duration) {
        let times = [self.most, self.quiet.unwrap_or_default(), self.least_wait];
        if times.iter().all(|time| time.subsec_nanos() == 0) {
            return (Duration::from_secs(u64::try_from(delay_seconds(wait)).unwrap_or_default()), Duration::ZERO);
        }
        let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        (Duration::from_secs(millis / 1_000), Duration::from_millis(millis % 1_000))
    }

    /// Whether leaders wait for less than the second for which elections are gathered. Then a request makes them itself, as where
    /// they do not wait. Not if they wait for enough members: elections report to them what came.
    #[must_use]
    pub fn is_hasty(self) -> bool {
        !self.counts() && self.longest() < DELAY_MIN
    }

    /// How long a leader has lingered that was elected then and waits only for enough members: from then on it looks whenever tasks
    /// come. By two clocks. None, if it does not do so.
    #[must_use]
    pub fn over(self, elected: Timestamp, now: Timestamp) -> Option<Duration> {
        (self.least > 0 && elected.plus(self.most) <= now).then_some(self.most)
    }

    /// How long a leader waits before it looks, if its batch was not full when it was elected.
    #[must_use]
    pub fn first(self) -> Duration {
        self.quiet.map_or(self.most, |quiet| quiet.min(self.most))
    }

    /// Whether it matters how many members a batch would have.
    #[must_use]
    pub fn counts(self) -> bool {
        self.least > 0
    }

    /// Whether a batch of so many members need not wait for more.
    #[must_use]
    pub fn is_enough(self, members: usize) -> bool {
        members >= self.least
    }

    /// Whether it matters when the last task came.
    #[must_use]
    pub fn hears_quiet(self) -> bool {
        self.quiet.is_some()
    }

    /// How long a leader with too few members waits before it looks again: enough may have come, and the lane may be quiet. It
    /// looks some 30 to 40 times in 15 minutes, however short `quiet` is.
    fn looks_less_often(self, lingered: Duration) -> Duration {
        self.first().max(self.between_looks(lingered)).max(lingered / 4)
    }

    /// How long a leader waits at least before it looks again whether its lane is quiet, where a worker waits for a `quiet` below a
    /// second. Each look is a message, whose time adds to the waits; so it looks at most some 220 times in 15 minutes, however short
    /// `quiet` is.
    fn between_looks(self, lingered: Duration) -> Duration {
        let apart = || QUIET_LOOKS_APART.max(lingered / QUIET_LOOKS);
        self.quiet.filter(|quiet| *quiet < DELAY_MIN).map_or(Duration::ZERO, |_| apart())
    }

    /// How much longer a leader waits that has waited for `lingered` and looks at its lane now. Zero: it forms its batch. The
    /// sum of all waits is bounded whatever the clocks say.
    #[must_use]
    pub fn on(self, lingered: Duration, seen: Seen, now: Timestamp) -> Duration {
        if seen.at_once {
            return Duration::ZERO;
        }
        let left = self.most.saturating_sub(lingered);
        if !self.is_enough(seen.members) {
            // A leader that finds no task gives the lock up, so the next task can elect one.
            let on = if seen.members == 0 { Duration::ZERO } else { self.longest().saturating_sub(lingered) };
            return if left.is_zero() { on } else { self.looks_less_often(lingered).min(left) };
        }
        let since = seen.newest.map_or(Duration::MAX, |newest| now.since(newest));
        let on = self.quiet.map_or(left, |quiet| quiet.saturating_sub(since));
        if on.is_zero() { on } else { on.max(self.between_looks(lingered)).min(left) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
