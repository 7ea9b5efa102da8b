//! How long records are kept: what a deployment adds to the times in [`limits`](crate::limits).

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limits::{RETENTION, RETENTION_DAYS_MAX};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How much longer than the times in [`limits`](crate::limits) records are kept. It is the same for all of them, so what must be
/// kept for longer than something else still is: a key's record as long as the task that has the key, a request's note as long as
/// its tasks, the results of a batch as long as the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    longer: Duration,
}

impl Retention {
    /// Records of ended work are kept for so many days.
    ///
    /// # Errors
    /// That is shorter than keys are promised to be remembered, or longer than allowed. The error says what is allowed.
    pub fn of_days(days: u32) -> Result<Self, String> {
        let kept = DAY * days;
        match kept.checked_sub(RETENTION) {
            Some(longer) if days <= RETENTION_DAYS_MAX => Ok(Self { longer }),
            _ => Err(format!("{} to {RETENTION_DAYS_MAX} days are allowed", RETENTION.as_secs() / DAY.as_secs())),
        }
    }

    /// When a record expires that is to be kept for `least` from `from` on, at least.
    #[must_use]
    pub fn until(self, from: Timestamp, least: Duration) -> Timestamp {
        from.plus(least).plus(self.longer)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn days_are_added_to_what_is_kept_anyway() {
        let from = Timestamp(1_000);
        assert_eq!(Retention::of_days(14), Ok(Retention::default()));
        assert_eq!(Retention::of_days(30).unwrap().until(from, RETENTION), from.plus(DAY * 30));
        assert_eq!(Retention::of_days(30).unwrap().until(from, RETENTION * 2), from.plus(DAY * 44));
    }

    #[test]
    fn keys_are_never_remembered_for_shorter_than_promised() {
        for days in [0, 13, RETENTION_DAYS_MAX + 1, u32::MAX] {
            assert_eq!(Retention::of_days(days), Err("14 to 365 days are allowed".to_owned()), "{days}");
        }
        assert!(Retention::of_days(RETENTION_DAYS_MAX).is_ok());
    }
}
