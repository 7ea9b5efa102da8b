//! How long a batch waits for a place. No I/O.

use std::time::Duration;

use fanfold::backoff::upper_half;
use fanfold::clock::Timestamp;
use fanfold::limits::{PLACE_LOOK_PAUSE, PLACE_PAUSE_MAX, PLACE_PAUSE_MIN, SHORT_CALL_MAX};
use fanfold::store::places::Holders;

/// How long the oldest call of a full record of places has been running, if all calls have leases of this length.
pub(crate) fn oldest(held: &Holders, lease: Duration, now: Timestamp) -> Duration {
    let first = held.values().filter(|until| **until >= now).min();
    first.map_or(Duration::ZERO, |until| lease.saturating_sub(until.since(now)))
}

/// The pause before another look, if calls are short.
pub(crate) fn look(oldest: Duration, random: u64) -> Option<Duration> {
    (oldest < SHORT_CALL_MAX).then(|| PLACE_LOOK_PAUSE.after(1, random))
}

/// How long a batch that found no place waits: about half as long as the oldest call has been running, since long calls tend to
/// go on for long; from one second, the least that SQS can delay, to half a minute.
pub(crate) fn wait(oldest: Duration, random: u64) -> Duration {
    upper_half((oldest / 2).clamp(PLACE_PAUSE_MIN, PLACE_PAUSE_MAX), random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn held(untils: &[u64]) -> Holders {
        let places = untils.iter().enumerate();
        places.map(|(n, until)| (Uuid::from_u128(n as u128), Timestamp(until * 1_000))).collect()
    }

    #[test]
    fn the_oldest_call_counts_and_dead_places_do_not() {
        let lease = Duration::from_secs(40);
        let oldest = |untils| oldest(&held(untils), lease, Timestamp(100_000));
        assert_eq!(oldest(&[140, 115, 120]), Duration::from_secs(25));
        assert_eq!(oldest(&[99, 140]), Duration::ZERO);
        assert_eq!(oldest(&[]), Duration::ZERO);
        assert_eq!(oldest(&[170]), Duration::ZERO, "a longer lease of another version of the policy");
    }

    #[test]
    fn short_calls_are_waited_for_on_the_spot() {
        assert!(look(Duration::from_millis(300), 7).is_some());
        assert!(look(Duration::from_secs(2), 7).is_none());
    }

    proptest! {
        #[test]
        fn a_wait_grows_with_the_calls_and_is_bounded(oldest in 0_u64..100_000, random: u64) {
            let wait = wait(Duration::from_millis(oldest), random).as_millis();
            prop_assert!((1_000..=30_000).contains(&wait));
            prop_assert!(wait <= u128::from(oldest / 2).max(2_000));
        }
    }
}
