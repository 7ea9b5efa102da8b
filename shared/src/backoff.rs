//! How long to wait before the next try.

use std::time::Duration;

/// Doubling delays with an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay before the second try.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Backoff {
    /// The delay after try number `tries` (from 1), somewhere in the upper half of `base * 2^(tries - 1)` ("equal
    /// jitter", Brooker, "Exponential Backoff And Jitter", AWS 2015), at most `max`.
    #[must_use]
    pub fn after(&self, tries: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(tries.saturating_sub(1).min(30));
        upper_half(self.base.saturating_mul(doubled).min(self.max), random)
    }

    /// Such pauses, no longer than `limit` in total.
    #[must_use]
    pub fn within(self, limit: Duration) -> Pauses {
        Pauses { backoff: self, tries: 0, left: limit }
    }
}

/// A delay somewhere in the upper half of the longest one.
#[must_use]
pub fn upper_half(longest: Duration, random: u64) -> Duration {
    let half = longest / 2;
    let span = u64::try_from((longest - half).as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    half + Duration::from_millis(random % span)
}

/// Pauses between tries, limited in total, so that a caller gets the error before its own time is up.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    backoff: Backoff,
    tries: u32,
    left: Duration,
}

impl Pauses {
    /// The pause before the next try; none: it would take too long.
    pub fn next(&mut self, random: u64) -> Option<Duration> {
        self.tries = self.tries.saturating_add(1);
        let pause = self.backoff.after(self.tries, random);
        self.left = self.left.checked_sub(pause)?;
        Some(pause)
    }
}

/// SQS delays are whole seconds, at most 900: rounds up.
#[must_use]
pub fn delay_seconds(delay: Duration) -> i32 {
    let seconds = delay.as_millis().div_ceil(1_000);
    let max = crate::limits::DELAY_MAX.as_secs();
    i32::try_from(seconds.min(u128::from(max))).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{STORE_PAUSES, STORE_WAIT_MAX};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stays_between_half_and_full(tries in 1_u32..2_000, random: u64, base in 1_u64..10_000, max in 1_u64..900_000) {
            let backoff = Backoff { base: Duration::from_millis(base), max: Duration::from_millis(max) };
            let full = (base as u128 * (1_u128 << (tries - 1).min(30))).min(u128::from(max));
            let delay = backoff.after(tries, random).as_millis();
            prop_assert!(delay >= full / 2 && delay <= full, "{delay} of {full}");
            prop_assert!(delay_seconds(Duration::from_millis(max)) <= 900);
        }
    }

    proptest! {
        #[test]
        fn pauses_take_no_longer_in_all_than_they_may(randoms in prop::collection::vec(any::<u64>(), 100)) {
            let mut pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
            let taken: Vec<Duration> = randoms.into_iter().map_while(|random| pauses.next(random)).collect();
            prop_assert!(taken.iter().sum::<Duration>() <= STORE_WAIT_MAX, "{taken:?}");
            prop_assert!((6..100).contains(&taken.len()), "{} tries", taken.len());
        }
    }

    #[test]
    fn seconds_round_up() {
        assert_eq!(delay_seconds(Duration::ZERO), 0);
        assert_eq!(delay_seconds(Duration::from_millis(1)), 1);
        assert_eq!(delay_seconds(Duration::from_secs(5_000)), 900);
    }
}
