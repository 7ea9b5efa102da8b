//! What counts of estimated fan-outs may cost, and what the same costs exactly: docs/api.md has these numbers.

use std::collections::BTreeMap;

use fanfold::ids::ItemId;
use fanfold::store::fanouts::Mode;
use fanfold::tracking::OpenRequest;
use fanfold_local::Usage;
use fanfold_tests::{QueueName, TestStack, delivery};
use serde_json::{Value, json};
use uuid::Uuid;

/// Items that each fan-out has.
const ITEMS: u32 = 10_000;

/// Messages of an invocation.
const MESSAGES: usize = 1_000;

/// Requests to DynamoDB, units that were written, and units that were read.
type Used = (u64, f64, f64);

/// What was used between two moments.
fn used(before: &Usage, after: &Usage) -> Used {
    let requests = after.dynamodb_requests - before.dynamodb_requests;
    (requests, after.write_units - before.write_units, after.read_units - before.read_units)
}

async fn estimated(stack: &TestStack) -> Uuid {
    let request = OpenRequest { mode: Mode::Estimated, items: ITEMS, ..OpenRequest::default() };
    stack.tracking.open(request, None).await.unwrap().fanout.id
}

/// One whose items are acked in random order.
async fn exact(stack: &TestStack, name: &str) -> Vec<ItemId> {
    let fanout = stack.tracking.open(OpenRequest::default(), Some(name)).await.unwrap().fanout.id;
    let mut ids = stack.add(fanout, ITEMS, "a").await;
    fastrand::Rng::with_seed(1).shuffle(&mut ids);
    ids
}

/// What an invocation uses that gets one message.
async fn at_once(stack: &TestStack, body: &Value) -> Used {
    let before = stack.usage();
    assert!(stack.hand(QueueName::Ack, vec![delivery("all", body)]).await.is_empty());
    used(&before, &stack.usage())
}

/// What invocations use that get a message for every item.
async fn by_queue(stack: &TestStack, body: impl Fn(usize) -> Value) -> Used {
    let before = stack.usage();
    for first in (0..ITEMS as usize).step_by(MESSAGES) {
        let message = |at| delivery(at, body(at));
        assert!(stack.hand(QueueName::Ack, (first..first + MESSAGES).map(message).collect()).await.is_empty());
    }
    used(&before, &stack.usage())
}

/// A write for an invocation, and nothing is read; many in one message are one more write.
#[tokio::test(start_paused = true)]
async fn messages_of_counts_are_a_write_for_an_invocation() {
    let stack = TestStack::with(json!({})).await;
    let fanout = estimated(&stack).await;
    let counts = by_queue(&stack, |_| json!({"counts": [{"fanout": fanout, "succeeded": 1}]})).await;
    assert_eq!(counts, (10, 10.0, 0.0));
    let header = stack.tracking.seal(fanout).await.unwrap();
    assert_eq!((header.complete(), header.done), (true, u64::from(ITEMS)));
    let other = estimated(&stack).await;
    let all = at_once(&stack, &json!({"counts": [{"fanout": other, "succeeded": ITEMS}]})).await;
    assert_eq!(all, (1, 1.0, 0.0));
}

/// Beside it: a read, and a write for each group. The last invocation ends both of them, and looks at the header.
#[tokio::test(start_paused = true)]
async fn acks_of_items_are_a_write_for_an_invocation_and_group() {
    let stack = TestStack::with(json!({})).await;
    let ids = exact(&stack, "one").await;
    let acks = by_queue(&stack, |at| json!({"items": [ids[at].to_string()]})).await;
    assert_eq!(acks, (30, 26.0, 21.0));
    let ids = exact(&stack, "other").await;
    let groups: BTreeMap<Uuid, u16> = ids.iter().fold(BTreeMap::new(), |mut groups, id| {
        let last = groups.entry(id.group).or_default();
        *last = id.index.max(*last);
        groups
    });
    let ranges: Vec<String> =
        groups.iter().map(|(group, last)| format!("{}:{group}:0-{last}", ids[0].fanout)).collect();
    let all = at_once(&stack, &json!({"items": ranges})).await;
    assert_eq!(all, (3, 8.0, 3.0));
}

/// One by one over HTTP: each is a write, or a read and a write, and how the fan-out stands then is read.
#[tokio::test(start_paused = true)]
async fn a_count_on_its_own_is_one_request_and_an_ack_three() {
    let stack = TestStack::with(json!({})).await;
    let fanout = estimated(&stack).await;
    let ids = exact(&stack, "one").await;
    let before = stack.usage();
    let request = serde_json::from_value(json!({"counts": [{"fanout": fanout, "add": 2, "succeeded": 1}]})).unwrap();
    stack.ack.count([&request]).await.remove(&fanout).unwrap().unwrap();
    let between = stack.usage();
    assert_eq!(used(&before, &between), (1, 1.0, 0.0));
    stack.ack.apply(&fanfold_tests::done(&ids[..1])).await.unwrap();
    assert_eq!(used(&between, &stack.usage()), (3, 1.0, 2.0));
}

/// Opening brings no groups, and adding is a write: exactly, it is a transaction with the groups.
#[tokio::test(start_paused = true)]
async fn adding_to_a_counter_is_one_unit_however_many_are_added() {
    let stack = TestStack::with(json!({})).await;
    let before = stack.usage();
    let fanout = estimated(&stack).await;
    let opened = used(&before, &stack.usage());
    let before = stack.usage();
    let request = serde_json::from_value(json!({"counts": [{"fanout": fanout, "add": 1_000_000_000}]})).unwrap();
    stack.ack.count([&request]).await.remove(&fanout).unwrap().unwrap();
    assert_eq!(used(&before, &stack.usage()), (1, 1.0, 0.0));
    let before = stack.usage();
    exact(&stack, "one").await;
    assert_eq!((opened, used(&before, &stack.usage())), ((1, 2.0, 0.0), (2, 12.0, 0.0)));
}
