//! Hints name what they must, and nothing else.

use super::*;
use crate::bits::Bits;
use crate::ids::TaskId;
use crate::store::batches::Later;
use crate::testing::{lane, parcels};

const WORKFLOW: Uuid = Uuid::from_u128(7);

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
fn the_first_message_of_a_batch_needs_a_lock_that_names_it() {
    let formed = Batch::intended(Uuid::from_u128(9), lane(), tasks().tasks, Timestamp(5));
    let formed = Batch { status: BatchStatus::Formed, ..formed };
    let more = |left, led| HandleMessage::first_of(&formed, true, left, led).map(|first| (first.attempt, first.more));
    assert_eq!(
        (more(true, false), more(true, true), more(false, false)),
        (Some((1, true)), Some((1, false)), Some((1, false)))
    );
    assert_eq!(HandleMessage::first_of(&formed, false, true, false), None, "it would be lost with this message");
    let begun = Batch { status: BatchStatus::InProgress, ..formed.clone() };
    assert_eq!(HandleMessage::first_of(&begun, true, true, false), None);
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
    let asked = Batch { again: Bits::ones(1), again_at: Some(Timestamp(60)), ..batch.clone() };
    assert_eq!(awaited(&asked), Some((3, 60)), "and a pause was posted for its members");
    let come = Batch { again: Bits::default(), ..asked.clone() };
    assert_eq!(awaited(&come), Some((3, 40)), "those that asked for the pause have other outcomes");
    assert_eq!(awaited(&Batch { dropped: Bits::ones(1), ..asked }), Some((3, 40)), "or are not called any more");
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
    let policy = |quiet: Option<u64>| Linger::of(&parcels(serde_json::json!({"linger": 9, "quiet": quiet})));
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
    let size = BatchSize::of(&parcels(serde_json::json!({"linger": "2500ms", "max_batch": 2})));
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
