//! When a batch may be called again: at least as long after the answer as the batch API asked for, and as its policy's
//! backoff says.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::backoff::Backoff;
use fanfold::clock::Timestamp;
use fanfold::limits::RETRY_AFTER_MAX;
use fanfold::retry_after::RetryAfter;
use tokio::time::Instant;
use uuid::Uuid;

/// What the batch API answered to one attempt that is to be repeated.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    retry_after: Duration,
}

/// What is known of the batches that are called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    answers: BTreeMap<(Uuid, u32), Answered>,
    due: BTreeMap<Uuid, Instant>,
    /// How many attempts of a batch did not count, as the batch API refused every call.
    refused: BTreeMap<Uuid, u32>,
}

impl Pace {
    /// An attempt was answered; what time it is for whose clock is right.
    pub(crate) fn answered(&mut self, batch: Uuid, attempt: u32, retry_after: Option<RetryAfter>, now: Timestamp) {
        let retry_after = retry_after.map(|asked| asked.delay(now)).unwrap_or_default().min(RETRY_AFTER_MAX);
        self.answers.insert((batch, attempt), Answered { at: Instant::now(), retry_after });
    }

    /// An attempt ended that does not count; so many of the batch do not by now.
    pub(crate) fn refused(&mut self, batch: Uuid, refused: u32) {
        self.refused.insert(batch, refused);
    }

    /// How many count of the attempts that ended.
    pub(crate) fn that_count(&self, batch: Uuid, ended: u32) -> u32 {
        ended.saturating_sub(self.refused.get(&batch).copied().unwrap_or_default())
    }

    /// The end of an attempt was written down; it was number `tries`, and there is to be another. What nobody
    /// wrote down nobody can keep to: the answer died with its worker. `backoff`: none for a batch that was split, whose parts
    /// follow each other unless there was no answer.
    pub(crate) fn settled(&mut self, batch: Uuid, attempt: u32, tries: u32, backoff: Option<Backoff>) {
        let Some(answered) = self.answers.get(&(batch, attempt)) else { return };
        // The least of an equal jitter.
        let least = backoff.map(|backoff| backoff.after(tries, 0)).unwrap_or_default();
        self.due.insert(batch, answered.at + least.max(answered.retry_after));
    }

    /// A batch is called; how much too early that is, if it is.
    pub(crate) fn called(&self, batch: Uuid) -> Option<Duration> {
        let early = self.due.get(&batch)?.saturating_duration_since(Instant::now());
        (!early.is_zero()).then_some(early)
    }
}
