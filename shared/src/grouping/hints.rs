//! Hints: which fields they carry, and why.

use std::time::Duration;

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::grouping::{BatchSize, Linger};
use crate::lane::Lane;
use crate::limits::DELAY_MIN;
use crate::messages::{About, AckRequest, ElectMessage, GroupMessage, HandleMessage, LaneBatch, NotifyMessage};
use crate::store::batches::{Batch, BatchStatus};
use crate::store::locks::Lock;
use crate::waiting::Waiting;

impl ElectMessage {
    /// Whether it is new, or was so a moment ago: its tasks have just come.
    pub(crate) fn is_recent(&self) -> bool {
        self.tries < 2
    }

    /// Tasks that were just stored, or are known to wait. The workflow has not tried yet: its tasks are not looked up before
    /// the lane's first election, as no batch can have claimed them.
    #[must_use]
    pub fn stored(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self { lane, waiting, workflow, tries: 0, flushes: false }
    }

    /// Tasks that a leader knew of and left out of its batch. Its try counts as the first: others may have claimed them since,
    /// so they are looked up before the election.
    #[must_use]
    pub fn left(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self { tries: 1, ..Self::stored(lane, waiting, workflow) }
    }

    /// Wakes a lane for all that wait there. It names no tasks, so there is nothing to look up, and a loser does not try again.
    #[must_use]
    pub fn wake(lane: Lane, workflow: Uuid) -> Self {
        Self::stored(lane, Waiting::default(), workflow)
    }

    /// The same, where one of the tasks may end the linger of the lane.
    #[must_use]
    pub fn flushing(self, flushes: bool) -> Self {
        Self { flushes, ..self }
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
        Self::to(lock.lane.clone(), batch, lock.epoch, waiting)
    }

    /// To a leader in whose name any worker can go on. It names no tasks: by now the index shows them. None if there is no
    /// leader.
    #[must_use]
    pub fn again(lock: &Lock) -> Option<Self> {
        Some(Self::elected(lock, lock.holder?, Waiting::default()))
    }

    /// To a leader that may linger, and has done so for this time, beside its own message, with tasks it may not find in the index
    /// yet: it forms its batch now if one of those that wait flushes, or if they are enough. None if there is no leader.
    #[must_use]
    pub fn hurried(lock: &Lock, waiting: Waiting, lingered: Duration) -> Option<Self> {
        Some(Self { hurries: true, lingered_ms: millis(lingered), ..Self::elected(lock, lock.holder?, waiting) })
    }

    /// To the leader that was just elected: the message and its delay. It forms its batch at once, lingers first, or has yet to find
    /// out. `knows`: the tasks it names are all that wait, as far as its sender knows.
    #[must_use]
    pub fn first(self, size: BatchSize, knows: bool) -> (Self, Duration) {
        match size.is_full_of(self.waiting.len()).filter(|_| knows) {
            Some(true) => (self, Duration::ZERO),
            Some(false) => self.after(size.linger().first(), size.linger()),
            None => (self.lingering(), Duration::ZERO),
        }
    }

    /// The leader has yet to find out whether its tasks are to wait for more: only if they are, it lingers.
    #[must_use]
    pub fn lingering(self) -> Self {
        Self { lingers: true, ..self }
    }

    /// The leader lingers for `wait`: the message and its delay, which is whole seconds; its worker waits for the rest. It looks
    /// again unless its time is over by then.
    #[must_use]
    pub fn after(&self, wait: Duration, linger: Linger) -> (Self, Duration) {
        let (delay, rest) = linger.delay(wait);
        let lingered = self.lingered_ms.saturating_add(millis(delay)).saturating_add(millis(rest));
        let lingers = lingered < millis(linger.longest());
        let lingered_ms = if lingers { lingered } else { 0 };
        (Self { lingers, lingered_ms, worker_waits: millis(rest), ..self.clone() }, delay)
    }

    /// For how long the leader has lingered.
    #[must_use]
    pub fn lingered(&self) -> Duration {
        Duration::from_millis(self.lingered_ms)
    }

    /// For how long its worker waits before it looks: less than a second, whatever the message says.
    #[must_use]
    pub fn worker_waits(&self) -> Duration {
        Duration::from_millis(self.worker_waits).min(DELAY_MIN)
    }

    /// To the leader that takes over from the one this message was for.
    #[must_use]
    pub fn next(&self, batch: Uuid, epoch: u64, waiting: Waiting) -> Self {
        Self::to(self.lane.clone(), batch, epoch, waiting)
    }

    fn to(lane: Lane, batch: Uuid, epoch: u64, waiting: Waiting) -> Self {
        Self { lane, batch, epoch, waiting, lingers: false, lingered_ms: 0, worker_waits: 0, hurries: false }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl HandleMessage {
    /// Asks for a batch's first attempt. `more`: its leader left tasks waiting.
    #[must_use]
    pub fn first(batch: Uuid, more: bool) -> Self {
        Self { batch, attempt: 1, more }
    }

    /// The message that a batch waits for as its record stands, and the moment from which on it has an effect. None: its leader
    /// has not formed it yet.
    #[must_use]
    pub fn awaited(batch: &Batch) -> Option<(Self, Timestamp)> {
        let attempt = |attempt| Self { batch: batch.id, attempt, more: false };
        match (batch.status, batch.lease_until) {
            (BatchStatus::Grouping, _) => None,
            (BatchStatus::Formed, _) => Some((attempt(1), batch.turns.at().max(Some(batch.updated_at))?)),
            // An attempt runs. When its lease ends it is taken for lost, and another worker takes over.
            (BatchStatus::InProgress, Some(lease_until)) => {
                Some((attempt(batch.attempts), batch.turns.at().max(Some(lease_until))?))
            }
            // It is answered later, by its deadline.
            (BatchStatus::InProgress, None) if batch.later.is_some() => {
                Some((attempt(batch.attempts), batch.look_at()?))
            }
            (BatchStatus::InProgress, None) => {
                let due = batch.retry_at.unwrap_or(batch.updated_at);
                Some((attempt(batch.attempts + 1), batch.turns.at().max(Some(due))?))
            }
            // Its acks, notices and the next batch's wake-up are sent again.
            (BatchStatus::Done, _) => Some((attempt(batch.attempts), batch.updated_at)),
        }
    }

    /// The message of a batch that is to be called now: it waits neither for its time nor for its worker.
    #[must_use]
    pub fn due(batch: &Batch, now: Timestamp) -> Option<Self> {
        let (message, due) = Self::awaited(batch)?;
        (batch.status != BatchStatus::Done && due <= now).then_some(message)
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
    use crate::bits::Bits;
    use crate::ids::TaskId;
    use crate::store::batches::Later;

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
        let batch = Batch { status: BatchStatus::Formed, ..formed };
        assert_eq!(awaited(&batch), Some((1, 5)));
        let batch = Batch { status: BatchStatus::InProgress, attempts: 3, lease_until: Some(Timestamp(40)), ..batch };
        assert_eq!(awaited(&batch), Some((3, 40)), "its worker may be lost");
        let batch = Batch { lease_until: None, retry_at: Some(Timestamp(30)), ..batch };
        assert_eq!(awaited(&batch), Some((4, 30)));
        assert_eq!(awaited(&Batch { retry_at: None, ..batch.clone() }), Some((4, 5)));
        let later = Later { until: Timestamp(90), asked: Bits::ones(1), poll: None };
        assert_eq!(awaited(&Batch { later: Some(later), ..batch.clone() }), Some((3, 90)), "it is answered later");
        let batch = Batch { status: BatchStatus::Done, retry_at: None, ..batch };
        assert_eq!(awaited(&batch), Some((3, 5)), "what it left behind may be lost");
        assert_eq!(HandleMessage::due(&batch, Timestamp(90)), None, "nothing is left to call");
    }

    #[test]
    fn a_batch_is_due_once_its_time_has_come() {
        let batch = Batch::intended(Uuid::from_u128(9), lane(), tasks().tasks, Timestamp(5));
        let batch = Batch { status: BatchStatus::Formed, ..batch };
        let due = |batch: &Batch, now| HandleMessage::due(batch, Timestamp(now)).map(|message| message.attempt);
        assert_eq!([4, 5].map(|now| due(&batch, now)), [None, Some(1)]);
        let batch = Batch { status: BatchStatus::InProgress, attempts: 3, lease_until: Some(Timestamp(40)), ..batch };
        assert_eq!([39, 40].map(|now| due(&batch, now)), [None, Some(3)]);
    }

    #[test]
    fn a_leader_that_lingers_counts_its_waits() {
        let policy = |quiet: Option<u64>| {
            let policy = serde_json::json!({
                "kind": "parcel", "target": "content.state", "batch_api": {"command": ["x"]}, "linger": 9, "quiet": quiet,
            });
            Linger::of(&serde_json::from_value(policy).unwrap())
        };
        let lock = Lock { holder: Some(Uuid::from_u128(2)), epoch: 5, ..Lock::free(lane()) };
        let elected = GroupMessage::again(&lock).unwrap();
        let plain = policy(None);
        assert_eq!(elected.clone().lingering().after(plain.first(), plain), (elected.clone(), Duration::from_secs(9)));
        let quiet = policy(Some(4));
        let (first, delay) = elected.after(quiet.first(), quiet);
        assert_eq!((first.lingers, first.lingered_ms, delay), (true, 4_000, Duration::from_secs(4)));
        let (next, delay) = first.after(Duration::from_millis(2_001), quiet);
        assert_eq!((next.lingers, next.lingered_ms, delay), (true, 7_000, Duration::from_secs(3)));
        assert_eq!(next.after(Duration::from_secs(2), quiet), (elected, Duration::from_secs(2)));
    }

    #[test]
    fn a_worker_waits_for_what_is_less_than_a_second() {
        let policy = serde_json::json!({
            "kind": "parcel", "target": "content.state", "batch_api": {"command": ["x"]}, "linger": "2500ms", "max_batch": 2,
        });
        let size = BatchSize::of(&serde_json::from_value(policy).unwrap());
        let lock = Lock { holder: Some(Uuid::from_u128(2)), epoch: 5, ..Lock::free(lane()) };
        let elected = GroupMessage::elected(&lock, Uuid::from_u128(2), tasks());
        let waits = GroupMessage { worker_waits: 500, ..elected.clone() };
        assert_eq!(elected.clone().first(size, true), (waits.clone(), Duration::from_secs(2)));
        assert_eq!(waits.worker_waits(), Duration::from_millis(500));
        assert_eq!(elected.clone().first(size, false), (elected.clone().lingering(), Duration::ZERO), "it finds out");
        let (next, delay) = waits.after(Duration::from_millis(1_200), size.linger());
        assert_eq!(
            (next.lingered(), next.worker_waits, delay),
            (Duration::from_millis(1_200), 200, Duration::from_secs(1))
        );
        let two = Waiting::alone([1, 2].map(|id| TaskId::Single(Uuid::from_u128(id))));
        let full = GroupMessage::elected(&lock, Uuid::from_u128(2), two);
        assert_eq!(full.clone().first(size, true), (full, Duration::ZERO));
        let forged = GroupMessage { worker_waits: u64::MAX, ..elected };
        assert_eq!(forged.worker_waits(), DELAY_MIN);
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
        let hurried = GroupMessage::hurried(&lock, tasks(), Duration::ZERO);
        assert_eq!(hurried, Some(GroupMessage { hurries: true, ..elected.clone() }));
        assert_eq!(GroupMessage::hurried(&Lock::free(lane()), tasks(), Duration::ZERO), None);
        let next = elected.next(Uuid::from_u128(3), 6, Waiting::default());
        assert_eq!((next.lane, next.batch, next.epoch), (lane(), Uuid::from_u128(3), 6));
    }
}
