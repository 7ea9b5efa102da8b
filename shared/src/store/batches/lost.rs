//! Attempts that were lost with their workers, and attempts that are taken back.

use super::{Batch, BatchStatus};
use crate::clock::Timestamp;

impl Batch {
    /// While an attempt runs: how many in a row before it were lost with their workers. They were for the same members, and the
    /// results of their calls are unknown.
    #[must_use]
    pub fn lost_in_a_row(&self) -> u32 {
        self.attempts.saturating_sub(1).saturating_sub(self.ended).saturating_sub(self.lost)
    }

    /// The batch, which was `before`: once none is left of the part that is called, the attempts that were lost with it are not
    /// those of the next part.
    #[must_use]
    pub(super) fn without_losses_of_others(self, before: &Self) -> Self {
        let left = before.called().into_iter().any(|slot| self.is_open(slot));
        if left || self.unsettled().is_empty() {
            self
        } else {
            Self { lost: self.attempts.saturating_sub(self.ended), ..self }
        }
    }

    /// The batch before its attempt, which could not call the batch API.
    pub(super) fn taken_back(self, now: Timestamp) -> Self {
        let attempts = self.attempts.saturating_sub(1);
        let status = if attempts == 0 { BatchStatus::Formed } else { BatchStatus::InProgress };
        // The part that is next now, as the members of the one before it were dropped, may have to wait.
        let retry_at = Some(self.parts.due(&self.unsettled())).filter(|due| *due > Timestamp::default());
        // The attempt itself may be among those that do not count for the next part.
        let lost = self.lost.min(attempts.saturating_sub(self.ended));
        Self { status, attempts, lost, lease_until: None, retry_at, updated_at: now, ..self }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::bits::Bits;
    use crate::grouping::{Parts, Shows};
    use crate::ids::TaskId;
    use crate::members::Members;

    /// A batch of two parts of two members, whose second attempt runs, for the first part.
    fn split() -> Batch {
        let members = Members::new((0..4).map(|n| TaskId::Single(Uuid::from_u128(n))));
        Batch {
            status: BatchStatus::InProgress,
            attempts: 2,
            ended: 1,
            lease_until: Some(Timestamp(9)),
            parts: Parts::split(&[0, 1, 2, 3], Shows::Fails),
            ..Batch::intended(Uuid::nil(), "parcel:0:NY".parse().unwrap(), members, Timestamp(1))
        }
    }

    /// The same without the members of its first part.
    fn without_first(batch: Batch) -> Batch {
        let dropped: Bits = batch.called().into_iter().collect();
        Batch { dropped, ..batch.clone() }.without_losses_of_others(&batch)
    }

    #[test]
    fn what_was_lost_with_a_part_is_not_counted_against_the_next() {
        let lost = Batch { attempts: 4, ..split() };
        assert_eq!((lost.lost_in_a_row(), lost.clone().without_losses_of_others(&lost).lost_in_a_row()), (2, 2));
        let next = |batch: Batch| Batch { attempts: batch.attempts + 1, ..batch };
        assert_eq!(next(without_first(lost.clone())).lost_in_a_row(), 0, "the worker that began it is lost, too");
        let again = next(without_first(lost).taken_back(Timestamp(10)));
        assert_eq!((again.lost_in_a_row(), next(again).lost_in_a_row()), (0, 1), "its own losses count");
    }

    #[test]
    fn an_attempt_that_is_taken_back_is_none() {
        let back = without_first(split()).taken_back(Timestamp(10));
        assert_eq!((back.attempts, back.ended, back.lost, back.lease_until), (1, 1, 0, None));
        let first = Batch { attempts: 1, ended: 0, parts: Parts::default(), ..split() }.taken_back(Timestamp(10));
        assert_eq!((first.status, first.attempts), (BatchStatus::Formed, 0));
    }
}
