//! Hints: which fields they carry, and why.

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::lane::Lane;
use crate::messages::{About, AckRequest, ElectMessage, GroupMessage, HandleMessage, LaneBatch, NotifyMessage};
use crate::store::batches::{Batch, BatchStatus};
use crate::store::locks::Lock;
use crate::waiting::Waiting;

impl ElectMessage {
    /// Tasks that were just stored, or are known to wait. The workflow has not tried yet: its tasks are not looked up before
    /// the lane's first election, as no batch can have claimed them.
    #[must_use]
    pub fn stored(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self { lane, waiting, workflow, tries: 0 }
    }

    /// Tasks that a leader knew of and left out of its batch. Its try counts as the first: others may have claimed them since,
    /// so they are looked up before the election.
    #[must_use]
    pub fn left(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self { lane, waiting, workflow, tries: 1 }
    }

    /// Wakes a lane for all that wait there. It names no tasks, so there is nothing to look up, and a loser does not try again.
    #[must_use]
    pub fn wake(lane: Lane, workflow: Uuid) -> Self {
        Self { lane, waiting: Waiting::default(), workflow, tries: 0 }
    }

    /// The workflow lost, and tries once more.
    #[must_use]
    pub fn again(&self) -> Self {
        Self { tries: self.tries.saturating_add(1), ..self.clone() }
    }
}

impl GroupMessage {
    /// To the leader that was just elected, with tasks it may not find in the index yet.
    #[must_use]
    pub fn elected(lock: &Lock, batch: Uuid, waiting: Waiting) -> Self {
        Self { lane: lock.lane.clone(), batch, epoch: lock.epoch, waiting, lingers: false }
    }

    /// To a leader in whose name any worker can go on. It names no tasks: by now the index shows them. None if there is no
    /// leader.
    #[must_use]
    pub fn again(lock: &Lock) -> Option<Self> {
        Some(Self::elected(lock, lock.holder?, Waiting::default()))
    }

    /// The leader has yet to find out whether its tasks fill a batch: only if they do not, it lingers.
    #[must_use]
    pub fn lingering(self) -> Self {
        Self { lingers: true, ..self }
    }

    /// It has lingered.
    #[must_use]
    pub fn lingered(&self) -> Self {
        Self { lingers: false, ..self.clone() }
    }

    /// To the leader that takes over from the one this message was for.
    #[must_use]
    pub fn next(&self, batch: Uuid, epoch: u64, waiting: Waiting) -> Self {
        Self { lane: self.lane.clone(), batch, epoch, waiting, lingers: false }
    }
}

impl HandleMessage {
    /// Asks for a batch's first attempt. `more`: its leader left tasks waiting.
    #[must_use]
    pub fn first(batch: Uuid, more: bool) -> Self {
        Self { batch, attempt: 1, more }
    }

    /// The message that a batch waits for as its record stands, and the moment from which on it has an effect. None: its leader
    /// has not dispatched it yet.
    #[must_use]
    pub fn awaited(batch: &Batch) -> Option<(Self, Timestamp)> {
        let attempt = |attempt| Self { batch: batch.id, attempt, more: false };
        match (batch.status, batch.lease_until) {
            (BatchStatus::Grouping, _) => None,
            (BatchStatus::Dispatched, _) => Some((attempt(1), batch.turns.at().max(Some(batch.updated_at))?)),
            // An attempt runs. When its lease ends it is taken for lost, and another worker takes over.
            (BatchStatus::InProgress, Some(lease_until)) => {
                Some((attempt(batch.attempts), batch.turns.at().max(Some(lease_until))?))
            }
            (BatchStatus::InProgress, None) => {
                let due = batch.retry_at.unwrap_or(batch.updated_at);
                Some((attempt(batch.attempts + 1), batch.turns.at().max(Some(due))?))
            }
            // Its acks, notices and the next batch's wake-up are sent again.
            (BatchStatus::Done, _) => Some((attempt(batch.attempts), batch.updated_at)),
        }
    }
}

impl LaneBatch {
    /// Names a batch.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self { batch: batch.id, lane: batch.lane.clone() }
    }
}

impl AckRequest {
    /// The outcomes of a batch's members, as they are in its record when they are applied.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self { batch: Some(LaneBatch::of(batch)), ..Self::default() }
    }
}

impl NotifyMessage {
    /// Asks for the first try of the notice of a batch's failures.
    #[must_use]
    pub fn failures(batch: &Batch) -> Self {
        Self::first(About::Batch(LaneBatch::of(batch)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ids::TaskId;

    const WORKFLOW: Uuid = Uuid::from_u128(7);

    fn lane() -> Lane {
        "parcel:0:NY".parse().unwrap()
    }

    fn tasks() -> Waiting {
        Waiting::alone([TaskId::Single(Uuid::from_u128(1))])
    }

    #[test]
    fn only_tasks_that_nobody_can_have_claimed_have_not_been_tried() {
        let stored = ElectMessage::stored(lane(), tasks(), WORKFLOW);
        assert_eq!((stored.tries, stored.again().tries, stored.again().again().tries), (0, 1, 2));
        assert_eq!(ElectMessage { tries: 0, ..stored.again() }, stored);
        assert_eq!(ElectMessage::left(lane(), tasks(), WORKFLOW), stored.again());
        assert_eq!(ElectMessage { tries: u32::MAX, ..stored }.again().tries, u32::MAX);
    }

    #[test]
    fn who_wakes_a_lane_names_no_tasks() {
        let wake = ElectMessage::wake(lane(), WORKFLOW);
        assert!(wake.waiting.is_empty());
        assert_eq!((wake.lane, wake.workflow, wake.tries), (lane(), WORKFLOW, 0));
    }

    #[test]
    fn a_batch_waits_for_the_message_of_its_next_step() {
        let formed = Batch::intended(Uuid::from_u128(9), lane(), tasks().tasks, Timestamp(5));
        let awaited = |batch: &Batch| HandleMessage::awaited(batch).map(|(message, from)| (message.attempt, from.0));
        assert_eq!(awaited(&formed), None, "it is its leader's");
        let batch = Batch { status: BatchStatus::Dispatched, ..formed };
        assert_eq!(awaited(&batch), Some((1, 5)));
        let batch = Batch { status: BatchStatus::InProgress, attempts: 3, lease_until: Some(Timestamp(40)), ..batch };
        assert_eq!(awaited(&batch), Some((3, 40)), "its worker may be lost");
        let batch = Batch { lease_until: None, retry_at: Some(Timestamp(30)), ..batch };
        assert_eq!(awaited(&batch), Some((4, 30)));
        assert_eq!(awaited(&Batch { retry_at: None, ..batch.clone() }), Some((4, 5)));
        let batch = Batch { status: BatchStatus::Done, retry_at: None, ..batch };
        assert_eq!(awaited(&batch), Some((3, 5)), "what it left behind may be lost");
    }

    #[test]
    fn the_hint_of_a_leader_has_the_epoch_of_its_election() {
        let batch = Uuid::from_u128(2);
        let lock = Lock { holder: Some(batch), epoch: 5, ..Lock::free(lane()) };
        let elected = GroupMessage::elected(&lock, batch, tasks());
        assert_eq!((elected.epoch, &elected.waiting), (5, &tasks()));
        let again = GroupMessage { waiting: Waiting::default(), ..elected.clone() };
        assert_eq!(GroupMessage::again(&lock), Some(again));
        assert_eq!(GroupMessage::again(&Lock::free(lane())), None);
        let next = elected.next(Uuid::from_u128(3), 6, Waiting::default());
        assert_eq!((next.lane, next.batch, next.epoch), (lane(), Uuid::from_u128(3), 6));
    }
}
