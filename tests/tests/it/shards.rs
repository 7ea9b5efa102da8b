//! What the sweep finds lanes and fan-outs by is spread over many partitions of an index, so that thousands of them may begin and
//! end in a second. The sweep sees all of them.

use std::collections::BTreeSet;

use fanfold::aws::Segment;
use fanfold::ids::{ItemId, expand};
use fanfold::lane::Lane;
use fanfold::limits::{FEW_SHARDS, SWEEP_SEGMENTS};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::locks::Leader;
use fanfold::tracking::OpenRequest;
use fanfold_tests::{QueueName, TestStack, done};
use serde_json::json;
use uuid::Uuid;

const MANY: usize = 300;

fn segments() -> impl Iterator<Item = Segment> {
    (0..SWEEP_SEGMENTS).map(|number| Segment { number, of: SWEEP_SEGMENTS })
}

/// The partition keys of an index that records of a table have.
async fn shards(stack: &TestStack, table: &str, index: &str) -> BTreeSet<String> {
    let records = stack.scan(table).await;
    records.iter().filter_map(|record| Some(record.get(index)?.as_s().unwrap().clone())).collect()
}

/// Opens fan-outs whose ends are to be reported, with one item each.
async fn open(stack: &TestStack, seal: bool) -> Vec<(Uuid, ItemId)> {
    let mut opened = Vec::new();
    for n in 0..MANY {
        let notify = Some(Destination::Queue(NoticesQueue::Notices));
        let request = OpenRequest { items: 1, seal, user_key: Some(n.to_string()), notify, ..OpenRequest::default() };
        let fanout = stack.tracking.open(request, None).await.unwrap();
        opened.push((fanout.fanout.id, expand(fanout.fanout.id, &fanout.groups).next().unwrap()));
    }
    opened
}

async fn ending(stack: &TestStack) -> BTreeSet<Uuid> {
    let mut found = BTreeSet::new();
    for segment in segments() {
        found.extend(stack.tracking.fanouts.ending(segment).await.unwrap());
    }
    found
}

/// Who seals a fan-out that is drained dies before it completes it.
#[tokio::test(start_paused = true)]
async fn fanouts_in_many_shards_are_all_found_by_a_sweep() {
    let stack = TestStack::with(json!({})).await;
    let opened = open(&stack, false).await;
    let items: Vec<ItemId> = opened.iter().map(|(_, item)| *item).collect();
    stack.ack.apply(&done(&items)).await.unwrap();
    assert_eq!(ending(&stack).await.len(), 0, "nothing is to be looked at while they are open");
    for (fanout, _) in &opened {
        stack.tracking.fanouts.seal(*fanout, false).await.unwrap();
    }
    assert_eq!(ending(&stack).await, opened.iter().map(|(fanout, _)| *fanout).collect());
    let shards = shards(&stack, "FanoutsTable", "ending").await.len();
    assert!(shards > MANY / 2, "{shards}");
    stack.sweep().await;
    stack.take(QueueName::Notify).await;
    assert_eq!(ending(&stack).await.len(), MANY, "their ends are still to be reported: the messages are lost");
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), MANY);
    assert_eq!(ending(&stack).await.len(), 0);
}

/// A small fan-out is completed by the write that clears its last bit: until its end is to be reported, nobody need look at it, and the
/// index of those that end costs nothing.
#[tokio::test(start_paused = true)]
async fn a_small_fanout_is_looked_at_when_its_end_is_to_be_reported() {
    let stack = TestStack::with(json!({})).await;
    let before = stack.usage().write_units;
    let opened = open(&stack, true).await;
    let written = stack.usage().write_units - before;
    assert!((written - 3.0 * MANY as f64).abs() < 0.5, "itself, by its user key, and by when it was opened: {written}");
    assert_eq!(ending(&stack).await.len(), 0);
    let items: Vec<ItemId> = opened.iter().map(|(_, item)| *item).collect();
    stack.ack.apply(&done(&items)).await.unwrap();
    stack.take(QueueName::Notify).await;
    assert_eq!(ending(&stack).await.len(), MANY);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!((stack.completions().await.len(), ending(&stack).await.len()), (MANY, 0));
}

/// A notice that was given up is no longer looked at; asked for anew it is, in the shard of its fan-out.
#[tokio::test(start_paused = true)]
async fn a_notice_that_is_asked_for_anew_is_found_again() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, items) = stack.open(1, true).await;
    stack.ack.apply(&done(&items)).await.unwrap();
    stack.take(QueueName::Notify).await;
    let before = shards(&stack, "FanoutsTable", "ending").await;
    let notices = stack.tracking.fanouts.notices();
    let notice = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap().notice;
    let running = notices.begin(&fanout.to_string(), &notice).await.unwrap().unwrap();
    assert!(notices.give_up(&running, 0, "nobody is there").await.unwrap());
    assert_eq!(ending(&stack).await.len(), 0);
    notices.revive(&fanout.to_string(), None).await.unwrap().unwrap();
    assert_eq!(shards(&stack, "FanoutsTable", "ending").await, before);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn lanes_in_many_shards_are_all_found_by_a_sweep() {
    let stack = TestStack::with(json!({})).await;
    let lanes: BTreeSet<Lane> = (0..MANY).map(|n| format!("parcel:0:{n}").parse().unwrap()).collect();
    for (n, lane) in lanes.iter().enumerate() {
        stack.locks.acquire(lane, Uuid::from_u128(n as u128), 1).await.unwrap().done().unwrap();
    }
    let mut busy = BTreeSet::new();
    for segment in segments() {
        busy.extend(stack.locks.busy(segment).await.unwrap());
    }
    assert_eq!(busy, lanes);
    assert!(shards(&stack, "LocksTable", "active").await.len() > MANY / 2);
    stack.sweep().await;
    assert_eq!(stack.take(QueueName::Group).await.len(), MANY, "each silent leader is woken");
    stack.sweep().await;
    stack.drain().await;
    stack.sweep().await;
    assert_eq!(shards(&stack, "LocksTable", "active").await.len(), 0, "idle lanes are not looked at");
}

/// A sweep that saw a lane idle may be slow.
#[tokio::test(start_paused = true)]
async fn only_an_idle_lane_is_put_aside_and_one_that_is_busy_again_does_not_expire() {
    let stack = TestStack::with(json!({})).await;
    let (lane, [first, second]) = (fanfold_tests::lane(), [1, 2].map(Uuid::from_u128));
    // Whether the index of busy lanes shows it, and how many records expire.
    let stands = async || (stack.locks.get(&lane).await.unwrap().active, stack.expiring("LocksTable").await);
    let retired = async || {
        stack.locks.retire(&lane).await.unwrap();
        stands().await
    };
    let lock = stack.locks.acquire(&lane, first, 1).await.unwrap().done().unwrap();
    assert_eq!(retired().await, (true, 0), "it has a leader");
    let leader = Leader { lane: &lane, batch: first, epoch: lock.epoch };
    assert!(stack.locks.step_down(&leader, false).await.unwrap().is_done());
    assert_eq!(retired().await, (true, 0), "a batch is in flight");
    assert!(stack.locks.leave(&lane, first, true).await.unwrap().is_done());
    assert_eq!(retired().await, (true, 0), "a batch is closing");
    stack.locks.closed(&lane, &[first]).await.unwrap();
    assert_eq!(retired().await, (false, 1));
    let lock = stack.locks.acquire(&lane, second, 1).await.unwrap().done().unwrap();
    assert_eq!(stands().await, (true, 0), "it has a leader again");
    stack.locks.resign(&Leader { lane: &lane, batch: second, epoch: lock.epoch }).await.unwrap();
    assert_eq!(retired().await, (false, 1));
    stack.locks.close_again(&lane, first).await.unwrap();
    assert_eq!(stands().await, (true, 0), "a batch is closing again");
}

/// What a sweep reads where nothing is to be done: half a unit for each of five indexes and for each shard of the fan-outs
/// that may be idle, and one for each of two reads of the policies and for the kind's gate.
#[tokio::test(start_paused = true)]
async fn a_sweep_of_an_idle_stack_reads_little() {
    let stack = TestStack::with(json!({})).await;
    let before = stack.usage();
    stack.sweep().await;
    let after = stack.usage();
    let read = after.read_units - before.read_units;
    let looks = 5.0 + FEW_SHARDS as f64;
    assert!(read <= looks * 0.5 + 3.0, "{read} read units");
    // What it found is written down.
    assert!((after.write_units - before.write_units - 1.0).abs() < f64::EPSILON);
}
