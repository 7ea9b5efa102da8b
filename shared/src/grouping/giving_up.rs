//! When a batch gives up because its batch API refuses every call.

use crate::clock::Timestamp;
use crate::limits::{REFUSED_DAYS_MAX, REFUSED_MAX};
use crate::store::batches::Batch;

/// Whether a batch has waited so long for a batch API that refuses every call that it gives up.
#[must_use]
pub fn waited_in_vain(batch: &Batch, now: Timestamp) -> bool {
    now.since(batch.waits_since()) > REFUSED_MAX
}

/// The error of its members then, before what the batch API answered.
#[must_use]
pub fn gave_up_waiting(answer: &str) -> String {
    format!("gave up after {REFUSED_DAYS_MAX} days: {answer}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::members::Members;

    #[test]
    fn a_batch_gives_up_after_days() {
        let batch = Batch::intended(Uuid::nil(), "parcel:0:NY".parse().unwrap(), Members::default(), Timestamp(1));
        let last = Timestamp(1).plus(REFUSED_MAX);
        assert!(!waited_in_vain(&batch, last) && waited_in_vain(&batch, last.plus(Duration::from_millis(1))));
        assert_eq!(gave_up_waiting("404"), "gave up after 3 days: 404");
        let held = Batch { held_at: Some(last), ..batch };
        assert!(!waited_in_vain(&held, last.plus(REFUSED_MAX)), "a pause does not count");
    }
}
