//! A lane's next leader: what its message says, and when it is sent.

use std::time::Duration;

use uuid::Uuid;

use crate::grouping::{BatchSize, Rest};
use crate::messages::GroupMessage;
use crate::store::locks::Lock;
use crate::waiting::Waiting;

impl GroupMessage {
    /// To the leader that takes over from the one this message was for: the message and its delay. It forms its batch at once if
    /// that is full or a task of it flushes, finds out by itself if more may wait than was read, or lingers first.
    #[must_use]
    pub fn taken_over(&self, next: Uuid, epoch: u64, rest: &Rest, size: BatchSize) -> (Self, Duration) {
        let message = self.next(next, epoch, rest.to_name());
        match rest.full || rest.flushes {
            true => (message, Duration::ZERO),
            false if rest.is_part || size.linger().hears_quiet() => (message.lingering(), Duration::ZERO),
            false => message.after(size.linger().first(), size.linger()),
        }
    }

    /// To a leader of which it is unknown whether its tasks are to wait for more: it finds out by itself, now.
    #[must_use]
    pub fn finding_out(lock: &Lock, batch: Uuid, waiting: Waiting) -> Self {
        Self::elected(lock, batch, waiting).lingering()
    }

    /// Those of its tasks that no other message names. The tasks that a message with `hurries` names have their own elections.
    #[must_use]
    pub fn own(&self, named: Waiting) -> Waiting {
        if self.hurries { Waiting::default() } else { named }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ids::TaskId;
    use crate::testing::parcels;
    use serde_json::json;

    const NEXT: Uuid = Uuid::from_u128(3);

    fn lock() -> Lock {
        Lock { holder: Some(Uuid::from_u128(2)), epoch: 5, ..Lock::free("parcel:0:NY".parse().unwrap()) }
    }

    fn tasks() -> Waiting {
        Waiting::alone([TaskId::Single(Uuid::from_u128(1))])
    }

    fn size(changes: serde_json::Value) -> BatchSize {
        let mut changes = changes;
        changes["linger"] = json!(9);
        BatchSize::of(&parcels(changes))
    }

    /// Whether the next leader has yet to find out, and the delay of its message in seconds.
    fn next(rest: &Rest, size: BatchSize) -> (bool, u64) {
        let message = GroupMessage::again(&lock()).unwrap();
        let (message, delay) = message.taken_over(NEXT, 6, rest, size);
        assert_eq!((message.batch, message.epoch, &message.waiting), (NEXT, 6, &rest.named));
        (message.lingers, delay.as_secs())
    }

    #[test]
    fn the_next_leader_waits_as_any_other() {
        let rest = Rest { named: tasks(), ..Rest::default() };
        assert_eq!(next(&rest, size(json!({}))), (false, 9));
        assert_eq!(next(&rest, size(json!({"quiet": 4}))), (true, 0), "it reads for how long its lane was quiet");
        assert_eq!(next(&Rest { is_part: true, ..rest.clone() }, size(json!({}))), (true, 0));
        assert_eq!(next(&Rest { full: true, ..rest.clone() }, size(json!({}))), (false, 0));
        assert_eq!(next(&Rest { flushes: true, is_part: true, ..rest }, size(json!({}))), (false, 0));
    }

    #[test]
    fn who_knows_nothing_of_the_lane_lets_its_leader_find_out() {
        let message = GroupMessage::finding_out(&lock(), NEXT, tasks());
        assert_eq!(message, GroupMessage { lingers: true, ..GroupMessage::elected(&lock(), NEXT, tasks()) });
    }

    #[test]
    fn what_a_message_that_hurries_names_is_not_its_own() {
        let message = GroupMessage::elected(&lock(), NEXT, tasks());
        assert_eq!(message.own(tasks()), tasks());
        assert!(GroupMessage { hurries: true, ..message }.own(tasks()).is_empty());
    }
}
