//! Leading on: the end of a batch makes the lane's next batch the leader, if tasks wait for room in flight.

mod repeated;
mod room;

use std::sync::atomic::Ordering;
use std::time::Duration;

use fanfold::aws::Write;
use fanfold::control::Scope;
use fanfold::delivery::Delivery;
use fanfold::ids::{TaskId, derived};
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::store::locks::Lock;
use fanfold::waiting::Waiting;
use fanfold_batch_api::Answer;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, lane, message, policy};
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

async fn lock(stack: &TestStack) -> Lock {
    stack.locks.get(&lane()).await.unwrap()
}

/// What is in a queue now.
async fn take<M: serde::de::DeserializeOwned>(stack: &TestStack, queue: QueueName) -> Vec<M> {
    let deliveries: Vec<Delivery> = stack.take(queue).await;
    deliveries.iter().map(|delivery| serde_json::from_str(&delivery.body).unwrap()).collect()
}

/// A lane that may have one batch in flight and has one, and more tasks. Returns them and the batch.
async fn busy(changes: Value) -> (TestStack, Vec<TaskId>, Uuid) {
    let stack = TestStack::with(json!({"max_batch": 5, "max_in_flight": 1})).await;
    if changes != json!({}) {
        stack.put_policy(policy(changes)).await;
    }
    let tasks = stack.register_orders("117", 0..12).await;
    stack.deliver(QueueName::Elect).await;
    stack.pass(&[QueueName::Group]).await;
    let lock = lock(&stack).await;
    assert_eq!((lock.in_flight.len(), lock.holder, lock.waiting), (1, None, true));
    (stack, tasks, lock.in_flight[0])
}

/// Delivers the messages of batches, and returns them.
async fn handle(stack: &TestStack) -> Vec<Delivery> {
    let messages = stack.take(QueueName::Handle).await;
    assert!(stack.hand(QueueName::Handle, messages.clone()).await.is_empty());
    messages
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_batch_makes_the_next_one_the_leader() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let before = lock(&stack).await.epoch;
    // The tasks that the first leader's messages named, and that it left, have a workflow of their own.
    let left: Vec<ElectMessage> = take(&stack, QueueName::Elect).await;
    assert!(left.iter().all(|message| !message.waiting.is_empty()));
    handle(&stack).await;
    let lock = lock(&stack).await;
    assert_eq!((lock.holder, lock.epoch), (Some(derived::led_on(batch)), before + 1));
    assert!(!lock.waiting && lock.in_flight.is_empty());
    assert_eq!(stack.take(QueueName::Elect).await.len(), 0, "no election is needed");
    let group: Vec<GroupMessage> = take(&stack, QueueName::Group).await;
    let message = GroupMessage::elected(&lock, derived::led_on(batch), Waiting::default()).lingering();
    assert_eq!(group, std::slice::from_ref(&message));
    assert!(stack.hand(QueueName::Group, vec![fanfold_tests::message("led on", &message)]).await.is_empty());
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    assert_eq!(stack.all_batches().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lane_works_through_its_tasks_without_elections() {
    let (stack, tasks, _) = busy(json!({"max_batch": 2, "max_in_flight": 1, "linger": 0})).await;
    stack.take(QueueName::Elect).await;
    let begun = stack.world.now();
    for _ in 0..6 {
        handle(&stack).await;
        stack.deliver(QueueName::Group).await;
    }
    assert_eq!((stack.world.now(), stack.take(QueueName::Elect).await.len()), (begun, 0));
    stack.assert_settled(&tasks, 2).await;
}

/// No tasks waited when the batch was formed: an election that found no room noted those that came later.
#[tokio::test(start_paused = true)]
async fn tasks_that_came_while_the_batch_was_in_flight_are_led_on_to() {
    let stack = TestStack::with(json!({"max_in_flight": 1})).await;
    let mut tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = lock(&stack).await.in_flight[0];
    assert!(!lock(&stack).await.waiting);
    tasks.extend(stack.register_orders("117", 3..20).await);
    stack.deliver(QueueName::Elect).await;
    assert!(lock(&stack).await.waiting);
    handle(&stack).await;
    assert_eq!(lock(&stack).await.holder, Some(derived::led_on(batch)));
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// As after an election: a batch that is not full waits for more tasks.
#[tokio::test(start_paused = true)]
async fn a_leader_led_on_to_lingers_unless_its_batch_is_full() {
    let (stack, mut tasks, _) = busy(json!({"max_batch": 7, "max_in_flight": 1, "linger": 600})).await;
    handle(&stack).await;
    let ended = stack.world.now();
    stack.deliver(QueueName::Group).await;
    assert_eq!((stack.all_batches().await.len(), lock(&stack).await.epoch), (1, 2), "five of seven wait");
    tasks.extend(stack.register_orders("117", 100..101).await);
    stack.drain().await;
    assert!(stack.world.now().since(ended) >= Duration::from_secs(600));
    let sizes = |stack: Vec<fanfold::store::batches::Batch>| {
        let mut sizes: Vec<usize> = stack.iter().map(|batch| batch.members.len()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(stack.all_batches().await), [6, 7]);
    stack.assert_settled(&tasks, 7).await;

    let (stack, mut tasks, _) = busy(json!({"max_batch": 7, "max_in_flight": 1, "linger": 600})).await;
    tasks.extend(stack.register_orders("117", 100..102).await);
    handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    assert_eq!(sizes(stack.all_batches().await), [7, 7], "it was full when it was led on to");
    stack.drain().await;
    stack.assert_settled(&tasks, 7).await;
}
