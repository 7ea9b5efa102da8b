//! Acks that are sent on in place of being written, until enough items of a group have come together: none is lost, none counts twice, and what
//! is refused is refused as ever.

use std::sync::Arc;

use fanfold::delivery::Delivery;
use fanfold::ids::ItemId;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::{Gathering, OpenRequest};
use fanfold_ack::Ack;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, deaths, delivery, policy};
use serde_json::{Value, json};
use uuid::Uuid;

/// What two messages of two groups are enough for.
const FEW: Gathering = Gathering { bytes: 2_048, groups: 2, items: 5, spread: 1, times: 4 };

async fn stack(crash: Crash, gathering: Gathering) -> TestStack {
    let mut stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    stack.ack = Arc::new(Ack::from_environment(stack.surroundings()).unwrap().gathering(gathering));
    stack
}

/// A fan-out of four groups of ten items each, sealed.
async fn four_groups(stack: &TestStack) -> (Uuid, Vec<Vec<ItemId>>) {
    let request = OpenRequest { notify: Some(Destination::Queue(NoticesQueue::Notices)), ..OpenRequest::default() };
    let fanout = stack.insist(async || stack.tracking.open(request.clone(), Some("one")).await).await.fanout.id;
    let mut groups = Vec::new();
    for key in ["a", "b", "c", "d"] {
        let added = stack.insist(async || stack.tracking.add(fanout, 10, Some(key)).await).await;
        groups.push(fanfold::ids::expand(fanout, &added).collect());
    }
    stack.insist(async || stack.tracking.seal(fanout).await).await;
    (fanout, groups)
}

/// A message for the item of this index of each group.
fn column(groups: &[Vec<ItemId>], index: usize) -> Vec<Delivery> {
    let body = |items: &Vec<ItemId>| json!({"items": [items[index].to_string()]});
    groups.iter().enumerate().map(|(n, items)| delivery(format!("{n}-{index}"), body(items))).collect()
}

fn read(message: &Delivery) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

async fn pending(stack: &TestStack, groups: &[Vec<ItemId>]) -> Vec<u64> {
    let ids: Vec<Uuid> = groups.iter().map(|items| items[0].group).collect();
    let records = stack.tracking.groups.get_many(&ids).await.unwrap();
    ids.iter().map(|id| records.iter().find(|group| group.id == *id).unwrap().pending.count()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_group_is_written_once_enough_of_its_items_have_come() {
    let stack = stack(Crash::never(), Gathering { times: 9, ..FEW }).await;
    let (_, groups) = four_groups(&stack).await;
    let before = stack.usage().write_units;
    let mut gathered = Vec::new();
    for index in 0..4 {
        gathered.extend(column(&groups, index));
        assert!(stack.hand(QueueName::Ack, gathered).await.is_empty());
        gathered = stack.take(QueueName::Ack).await;
        assert_eq!((gathered.len(), &read(&gathered[0])["gathered"]), (1, &json!(index + 1)));
    }
    assert_eq!(stack.usage().write_units - before, 0.0);
    assert_eq!(pending(&stack, &groups).await, [10; 4]);
    gathered.extend(column(&groups[..3], 4));
    assert!(stack.hand(QueueName::Ack, gathered).await.is_empty());
    assert_eq!(pending(&stack, &groups).await, [5, 5, 5, 6], "what is left is of one group, which is not sent on");
    assert_eq!(stack.backlog().await, 0);
    assert_eq!(stack.usage().write_units - before, 4.0);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_on_often_enough_or_comes_alone_is_written() {
    let stack = stack(Crash::never(), FEW).await;
    let (_, groups) = four_groups(&stack).await;
    let mut gathered = Vec::new();
    for index in 0..4 {
        gathered.extend(column(&groups, index));
        stack.hand(QueueName::Ack, gathered).await;
        gathered = stack.take(QueueName::Ack).await;
    }
    assert_eq!(read(&gathered[0])["gathered"], 4);
    let mut last = gathered.clone();
    last.push(delivery("more", json!({"items": [groups[0][9].to_string()]})));
    assert!(stack.hand(QueueName::Ack, last).await.is_empty());
    assert_eq!((pending(&stack, &groups).await, stack.backlog().await), (vec![5, 6, 6, 6], 0));
    // Nothing that it could be gathered with is waiting.
    stack.hand(QueueName::Ack, column(&groups, 4)).await;
    let alone = stack.take(QueueName::Ack).await;
    assert!(stack.hand(QueueName::Ack, alone).await.is_empty());
    assert_eq!(pending(&stack, &groups).await, [4, 5, 5, 5]);
    // An hour late, and by nobody in particular.
    assert!(stack.hand(QueueName::Ack, gathered).await.is_empty());
    assert_eq!(pending(&stack, &groups).await, [4, 5, 5, 5]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_fails_alone_and_is_not_sent_on() {
    let stack = stack(Crash::never(), FEW).await;
    let (fanout, groups) = four_groups(&stack).await;
    let mut messages = column(&groups, 0);
    messages.push(delivery("nowhere", json!({"items": [format!("{fanout}:{}:0", Uuid::nil())]})));
    messages.push(delivery("beyond", json!({"failed": [format!("{fanout}:{}:9-10", groups[3][0].group)]})));
    messages.push(delivery("malformed", json!({"items": ["x"]})));
    let mut failed = stack.hand(QueueName::Ack, messages).await;
    failed.sort_unstable();
    assert_eq!(failed, ["beyond", "malformed", "nowhere"]);
    assert_eq!(pending(&stack, &groups).await, [10, 10, 10, 8], "what is right in the group is applied at once");
    let gathered = stack.take(QueueName::Ack).await;
    assert_eq!((gathered.len(), read(&gathered[0])["items"].as_array().unwrap().len()), (1, 3));
}

/// Each item twice, in any order, some as failed; the messages that are sent on among them.
#[tokio::test(start_paused = true)]
async fn every_item_counts_once_whatever_is_repeated() {
    for seed in 0..20 {
        let stack = stack(Crash::never(), Gathering { items: 3 + seed % 9, ..FEW }).await;
        let (fanout, groups) = four_groups(&stack).await;
        let field = |item: &ItemId| if item.index < 3 { "failed" } else { "items" };
        let body = |item: &ItemId| json!({field(item): [item.to_string()]});
        let mut bodies: Vec<Value> = groups.iter().flatten().flat_map(|item| [body(item), body(item)]).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut bodies);
        for some in bodies.chunks(7) {
            for body in some {
                stack.send(QueueName::Ack, body).await;
            }
            let sent = stack.deliver(QueueName::Ack).await;
            assert!(sent >= some.len());
        }
        stack.drain().await;
        let end = stack.header(fanout).await;
        assert_eq!((end.state, end.done, end.failed), (FanoutState::Completed, 40, 12), "{seed}");
        assert_eq!(stack.completions().await.len(), 1);
    }
}

/// Returns the struck request.
async fn run(crash: Crash) -> Option<String> {
    let stack = stack(crash, FEW).await;
    let (fanout, groups) = four_groups(&stack).await;
    for index in [0, 2, 4, 6, 8] {
        for message in column(&groups, index).into_iter().chain(column(&groups, index + 1)) {
            stack.send(QueueName::Ack, message.body).await;
        }
        stack.deliver(QueueName::Ack).await;
    }
    for _ in 0..3 {
        stack.drain().await;
        stack.sweep().await;
    }
    let end = stack.header(fanout).await;
    assert_eq!((end.state, end.done, end.failed), (FanoutState::Completed, 40, 0));
    assert_eq!(stack.completions().await.len(), 1, "one notice");
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);
