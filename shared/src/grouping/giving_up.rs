//! When a batch gives up because its batch API refuses every call.

use crate::clock::Timestamp;
use crate::limits::{REFUSED_DAYS_MAX, REFUSED_MAX};
use crate::store::batches::Batch;

/// Whether a batch has waited so long for a batch API that refuses every call that it gives up. `stopped`: since when its kind
/// stands still, if it does. What it waited for before, or while a pause held it, does not count.
#[must_use]
pub fn waited_in_vain(batch: &Batch, stopped: Option<Timestamp>, now: Timestamp) -> bool {
    let refused = batch.refused_since.into_iter().chain(stopped).min();
    refused.is_some_and(|since| now.since(since.max(batch.waits_since())) > REFUSED_MAX)
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
        let first = Timestamp(1).plus(REFUSED_MAX);
        let last = first.plus(REFUSED_MAX);
        let over = last.plus(Duration::from_millis(1));
        assert!(!waited_in_vain(&batch, None, over), "it was never refused");
        assert!(!waited_in_vain(&batch, Some(first), last) && waited_in_vain(&batch, Some(first), over));
        let refused = Batch { refused_since: Some(first), ..batch };
        assert!(!waited_in_vain(&refused, None, last) && waited_in_vain(&refused, Some(last), over));
        assert_eq!(gave_up_waiting("404"), "gave up after 3 days: 404");
        let held = Batch { held_at: Some(last), ..refused };
        assert!(!waited_in_vain(&held, Some(first), last.plus(REFUSED_MAX)), "a pause does not count");
    }
}
