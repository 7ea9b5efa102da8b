//! How an attempt ended, and the batch it leaves.

use crate::bits::Bits;
use crate::clock::Timestamp;

use super::{Batch, BatchStatus};

/// What one attempt leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Slots that succeeded, now or before.
    pub succeeded: Bits,
    /// Slots that failed for good, now or before.
    pub failed: Bits,
    /// Slots that did not succeed, and of which a call may have worked all the same: it was not answered, or not clearly.
    pub silent: Bits,
    /// Attempts that do not count, this one included if it does not.
    pub refused: u32,
    /// Why, now and before.
    pub errors: Vec<(String, Bits)>,
    /// Rounds, this one counted if it settled some members but not all.
    pub rounds: u32,
    /// Why there is to be a next attempt, if there is: the error of one of its members.
    pub last_error: Option<String>,
    /// When the next attempt is due; none: every member has its outcome.
    pub retry_at: Option<Timestamp>,
}

impl Settlement {
    /// How far the batch has come with it.
    #[must_use]
    pub fn status(&self) -> BatchStatus {
        if self.retry_at.is_some() { BatchStatus::InProgress } else { BatchStatus::Done }
    }

    /// The batch as its record says once this is written: what follows is sent without reading it again.
    #[must_use]
    pub fn applied_to(self, batch: Batch) -> Batch {
        Batch {
            status: self.status(),
            succeeded: self.succeeded,
            failed: self.failed,
            silent: self.silent,
            errors: self.errors,
            last_error: self.last_error,
            refused: self.refused,
            rounds: self.rounds,
            retry_at: self.retry_at,
            lease_until: None,
            ended: batch.ended + 1,
            ..batch
        }
    }
}
