//! How an attempt ended, and the batch it leaves.

use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::grouping::Parts;
use crate::pacing::Turns;
use crate::results::ResultRecord;

use super::{Batch, BatchStatus};

/// What one attempt leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Slots that succeeded, now or before.
    pub succeeded: Bits,
    /// Slots that failed for good, now or before.
    pub failed: Bits,
    /// Slots without a success for which a call may have worked all the same: it was not answered, or not clearly.
    pub silent: Bits,
    /// Slots whose keys are free by now, as the policy says.
    pub freed: Bits,
    /// Attempts that do not count, perhaps this one among them.
    pub refused: u32,
    /// Since when they do not: none that counted has ended since.
    pub refused_since: Option<Timestamp>,
    /// Why, now and before.
    pub errors: Vec<(String, Bits)>,
    /// Codes of errors, now and before.
    pub codes: Vec<(String, Bits)>,
    /// What slots brought that succeeded in this attempt, as JSON, if that is kept.
    pub results: Vec<(usize, String)>,
    /// The parts in which the others are called; none: together.
    pub parts: Parts,
    /// Whether the members of this call are called in halves next. It is not stored.
    pub split: bool,
    /// Why there is to be a next attempt, if there is one: the error of one of its members.
    pub last_error: Option<String>,
    /// When the next attempt is due; none: every member has its outcome.
    pub retry_at: Option<Timestamp>,
}

impl Settlement {
    /// The batch after this attempt, and the records that hold its results.
    pub(super) fn applied_to(mut self, batch: Batch, now: Timestamp) -> (Batch, Vec<ResultRecord>) {
        let (results, records) = batch.results.with(batch.attempts, std::mem::take(&mut self.results));
        let after = Batch {
            status: BatchStatus::InProgress,
            succeeded: self.succeeded,
            failed: self.failed,
            silent: self.silent,
            freed: self.freed,
            errors: self.errors,
            codes: self.codes,
            results,
            last_error: self.last_error,
            refused: self.refused,
            refused_since: self.refused_since,
            parts: self.parts,
            retry_at: self.retry_at,
            lease_until: None,
            later: None,
            again: Bits::default(),
            again_at: None,
            ended: batch.ended + 1,
            // Their members are marked as silent.
            lost: batch.attempts.saturating_sub(batch.ended + 1),
            updated_at: now,
            ..batch
        };
        (if after.retry_at.is_some() { after } else { after.done() }, records)
    }
}

impl Batch {
    /// The batch after outcomes of some members, if it waits for its next attempt: done if no member is left. Otherwise another
    /// part may be next, which has to wait for longer. An attempt that runs or is open ends it otherwise.
    #[must_use]
    pub fn concluded(self) -> Self {
        let waits = self.status == BatchStatus::InProgress && self.lease_until.is_none() && self.later.is_none();
        let left = self.unsettled();
        match (waits, left.is_empty()) {
            (false, _) => self,
            (true, true) => self.done(),
            (true, false) => {
                let due = self.retry_at.unwrap_or_default().max(self.parts.due(&left));
                Self { retry_at: Some(due).filter(|due| *due > Timestamp::default()), ..self }
            }
        }
    }

    /// No attempt follows.
    fn done(self) -> Self {
        Self {
            status: BatchStatus::Done,
            retry_at: None,
            turns: Turns::default(),
            refused_since: None,
            parts: Parts::default(),
            last_error: None,
            ..self
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::members::Members;
    use uuid::Uuid;

    fn running() -> Batch {
        let lane = "parcel:0:NY".parse().unwrap();
        Batch {
            status: BatchStatus::InProgress,
            attempts: 3,
            ended: 1,
            lease_until: Some(Timestamp(7)),
            last_error: Some("503".to_owned()),
            ..Batch::intended(Uuid::from_u128(9), lane, Members::default(), Timestamp(0))
        }
    }

    fn settlement(retry_at: Option<Timestamp>) -> Settlement {
        Settlement {
            succeeded: Bits::ones(2),
            failed: Bits::from_iter([3]),
            silent: Bits::from_iter([4]),
            freed: Bits::from_iter([3]),
            refused: 1,
            refused_since: None,
            errors: vec![("too heavy".to_owned(), Bits::from_iter([3]))],
            codes: vec![("E3".to_owned(), Bits::from_iter([3]))],
            results: vec![(1, "{}".to_owned())],
            parts: Parts::default(),
            split: false,
            last_error: retry_at.map(|_| "429".to_owned()),
            retry_at,
        }
    }

    #[test]
    fn a_batch_goes_on_until_no_attempt_is_to_follow() {
        let retry_at = Some(Timestamp(50));
        let (batch, records) = settlement(retry_at).applied_to(running(), Timestamp(8));
        assert_eq!((records.len(), batch.results.records_of(1).count(), batch.code(3)), (1, 1, Some("E3")));
        assert_eq!((batch.status, batch.retry_at, batch.lease_until), (BatchStatus::InProgress, retry_at, None));
        assert_eq!((batch.attempts, batch.ended, batch.lost, batch.refused), (3, 2, 1, 1));
        let next = Batch { attempts: 4, ..batch.clone() };
        assert_eq!(next.lost_in_a_row(), 0, "what was lost before an end does not count again");
        assert_eq!((running().lost_in_a_row(), Batch { attempts: 6, ..next }.lost_in_a_row()), (1, 2));
        assert_eq!(batch.last_error.as_deref(), Some("429"));

        let (batch, _) = settlement(None).applied_to(running(), Timestamp(8));
        assert_eq!((batch.status, batch.retry_at, batch.last_error), (BatchStatus::Done, None, None));
        assert_eq!(
            (batch.succeeded, batch.failed, batch.silent),
            (Bits::ones(2), [3].into_iter().collect(), [4].into_iter().collect())
        );
    }
}
