//! What follows from the outcomes of a batch's members: acks, a notice of failures, the end of the batch.

use crate::policy::Policy;
use crate::store::batches::{Batch, BatchStatus};

/// The state of the notice of a batch's failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureNotice {
    /// There is none to deliver: there are no failures, there is no receiver, or it was delivered or given up. Without acks to
    /// apply the batch is closed.
    None,
    /// The notice is to be delivered, and delivery has not begun.
    Due,
    /// Delivery has begun; its own messages continue it.
    Begun,
}

/// What is sent first. A notice that comes after acks is sent once they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The acks of the members that have their outcome.
    Acks,
    /// The notice of the failures.
    Notice,
}

/// What follows from the outcomes of a batch as its record stands. Doing it again does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    /// Every member has its outcome: the batch leaves its lane's flight. If not, there is a next attempt.
    pub done: bool,
    /// The notice of its failures: one per batch, once it is done.
    pub failures: FailureNotice,
    items: bool,
    outcomes: bool,
}

impl Follows {
    /// What follows for this batch. Without a policy there is no notice.
    #[must_use]
    pub fn of(batch: &Batch, policy: Option<&Policy>) -> Self {
        let done = batch.status == BatchStatus::Done;
        let reported = policy.is_some_and(|policy| policy.notify.is_some());
        let failures = if !done || batch.failed.is_zero() || batch.notice.over() || !reported {
            FailureNotice::None
        } else if batch.notice.begun() {
            FailureNotice::Begun
        } else {
            FailureNotice::Due
        };
        let outcomes = [&batch.succeeded, &batch.failed, &batch.dropped].iter().any(|slots| !slots.is_zero());
        Self { done, failures, items: batch.has_items(), outcomes }
    }

    /// Whether the batch, when it leaves its lane's flight, stays known as closing: acks or a notice are on their way.
    /// If not, it is closed at once.
    #[must_use]
    pub fn closing(self) -> bool {
        self.items || self.failures != FailureNotice::None
    }

    /// What is sent first.
    #[must_use]
    pub fn first(self) -> Option<First> {
        if self.items && self.outcomes {
            Some(First::Acks)
        } else {
            (self.failures == FailureNotice::Due).then_some(First::Notice)
        }
    }
}

/// Whether the acks of a batch are applied, and only the notice of its failures is left: its delivery has begun, so whether the
/// policy still has a receiver does not matter.
#[must_use]
pub fn only_notice_left(batch: &Batch) -> bool {
    batch.status == BatchStatus::Done && batch.notice.begun() && !batch.notice.over()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use crate::clock::Timestamp;
    use crate::ids::{ItemId, TaskId};
    use crate::members::Members;
    use crate::store::notices::NoticeProgress;
    use crate::testing::parcels;
    use uuid::Uuid;

    /// A batch that is done: its first member succeeded, its second failed.
    fn done(ids: [TaskId; 2]) -> Batch {
        let batch =
            Batch::intended(Uuid::from_u128(9), "parcel:0:NY".parse().unwrap(), Members::new(ids), Timestamp(0));
        Batch {
            status: BatchStatus::Done,
            attempts: 1,
            ended: 1,
            succeeded: Bits::from_iter([0]),
            failed: Bits::from_iter([1]),
            ..batch
        }
    }

    fn tasks() -> [TaskId; 2] {
        [1, 2].map(|number| TaskId::Single(Uuid::from_u128(number)))
    }

    fn items() -> [TaskId; 2] {
        [0, 1].map(|index| TaskId::Item(ItemId { fanout: Uuid::from_u128(3), group: Uuid::from_u128(4), index }))
    }

    fn notifying() -> Policy {
        parcels(serde_json::json!({"notify": {"queue": "notices"}}))
    }

    fn silent() -> Policy {
        Policy { notify: None, ..notifying() }
    }

    /// What is sent first, how it stands with the failures, whether the batch is closing.
    fn of(batch: &Batch, policy: Option<&Policy>) -> (Option<First>, FailureNotice, bool) {
        let follows = Follows::of(batch, policy);
        (follows.first(), follows.failures, follows.closing())
    }

    #[test]
    fn acks_come_before_the_notice() {
        assert_eq!(of(&done(items()), Some(&notifying())), (Some(First::Acks), FailureNotice::Due, true));
        assert_eq!(of(&done(items()), Some(&silent())), (Some(First::Acks), FailureNotice::None, true));
        assert_eq!(of(&done(tasks()), Some(&notifying())), (Some(First::Notice), FailureNotice::Due, true));
    }

    #[test]
    fn a_batch_without_a_notice_is_closed_at_once() {
        let closed = (None, FailureNotice::None, false);
        assert_eq!(of(&done(tasks()), Some(&silent())), closed);
        assert_eq!(of(&done(tasks()), None), closed);
        let succeeded = Batch { succeeded: Bits::ones(2), failed: Bits::default(), ..done(tasks()) };
        assert_eq!(of(&succeeded, Some(&notifying())), closed);
    }

    #[test]
    fn failures_are_reported_once() {
        let with = |notice| Batch { notice, ..done(tasks()) };
        let begun = with(NoticeProgress { tries: 1, ..NoticeProgress::default() });
        assert_eq!(of(&begun, Some(&notifying())), (None, FailureNotice::Begun, true));
        let reported = with(NoticeProgress { tries: 1, delivered: Some(Timestamp(1)), ..NoticeProgress::default() });
        assert_eq!(of(&reported, Some(&notifying())), (None, FailureNotice::None, false));
        let given_up = with(NoticeProgress { tries: 1, given_up: Some(Timestamp(1)), ..NoticeProgress::default() });
        assert_eq!(of(&given_up, Some(&notifying())), (None, FailureNotice::None, false));
    }

    #[test]
    fn before_the_end_there_are_acks_and_no_notice() {
        let going_on = |ids| Batch { status: BatchStatus::InProgress, ..done(ids) };
        assert_eq!(of(&going_on(items()), Some(&notifying())).0, Some(First::Acks));
        assert_eq!(of(&going_on(tasks()), Some(&notifying())), (None, FailureNotice::None, false));
        assert!(!Follows::of(&going_on(items()), None).done);
        let nothing_yet = Batch { succeeded: Bits::default(), failed: Bits::default(), ..going_on(items()) };
        assert_eq!(of(&nothing_yet, Some(&notifying())).0, None);
    }
}
