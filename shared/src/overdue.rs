//! When a message is taken for lost. Records say which message they wait for, and since when.

use crate::clock::Timestamp;
use crate::limits::WAKE_PAUSE_MAX;

/// Whether a message that has been due since `awaited` is to be sent again: it was due at `horizon` or before, and it was not sent
/// again just now. One that comes late all the same is sent once more after twice its age, then after pauses of a fixed length.
#[must_use]
pub fn overdue(awaited: Timestamp, woken_at: Option<Timestamp>, horizon: Timestamp, now: Timestamp) -> bool {
    let patient = woken_at
        .filter(|woken_at| *woken_at >= awaited)
        .is_some_and(|woken_at| now.since(woken_at) < woken_at.since(awaited).min(WAKE_PAUSE_MAX));
    awaited <= horizon && !patient
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const AWAITED: Timestamp = Timestamp(1_000_000);

    fn after(seconds: u64) -> Timestamp {
        AWAITED.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn a_message_is_overdue_from_the_horizon_on() {
        assert!(!overdue(after(1), None, AWAITED, after(200)));
        assert!(overdue(AWAITED, None, AWAITED, after(200)));
    }

    #[test]
    fn each_pause_is_as_long_as_the_wait_before_it_up_to_a_limit() {
        let again = |woken: u64, now: u64| overdue(AWAITED, Some(after(woken)), AWAITED, after(now));
        assert!(!again(120, 239) && again(120, 240));
        let most = WAKE_PAUSE_MAX.as_secs();
        assert!(!again(9_000, 9_000 + most - 1) && again(9_000, 9_000 + most));
    }

    #[test]
    fn a_wake_of_an_earlier_message_does_not_count() {
        assert!(overdue(after(100), Some(after(99)), after(100), after(100)));
    }
}
