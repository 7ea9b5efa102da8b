//! Tasks that end the linger of their lane.

use std::time::Duration;

use fanfold::limits::POLICY_CACHE_MAX;
use fanfold::messages::{ElectMessage, GroupMessage, TaskRequest};
use fanfold_register::RegisterError;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, deaths, policy};
use serde_json::{Value, json};

use super::{assert_batched, calls, heal, parcel, register, register_each};

/// A policy whose leaders linger for ten minutes, unless the last parcel of a truck is there.
fn flushing(changes: Value) -> Value {
    changed(json!({"flush_when": "has(content.last) && content.last", "linger": 600, "max_in_flight": 2}), changes)
}

fn parcels(number: usize) -> Vec<TaskRequest> {
    (0..number).map(|n| parcel(json!({"n": n}))).collect()
}

fn last() -> Vec<TaskRequest> {
    vec![parcel(json!({"n": "last", "last": true}))]
}

/// A lane whose leader lingers, with three tasks.
async fn lingering(changes: Value) -> (TestStack, Vec<fanfold::ids::TaskId>) {
    let stack = TestStack::with(flushing(changes)).await;
    let tasks = register(&stack, "first", parcels(3)).await;
    stack.seconds(12).await;
    let lock = stack.locks.get(&"parcel:0:117".parse().unwrap()).await.unwrap();
    assert!(lock.holder.is_some() && stack.api.seen().is_empty(), "{lock:?}");
    (stack, tasks)
}

#[tokio::test(start_paused = true)]
async fn a_lane_with_such_a_task_does_not_linger() {
    for bundled in [false, true] {
        let stack = TestStack::with(flushing(json!({}))).await;
        let tasks = if bundled {
            register(&stack, "together", [parcels(3), last()].concat()).await
        } else {
            register_each(&stack, "apart", [last(), parcels(3)].concat()).await
        };
        stack.seconds(30).await;
        assert_batched(&stack, &tasks).await;
        assert_eq!(stack.api.seen().len(), 1, "{:?}", calls(&stack, "n"));
    }
}

/// The leader has lingered for some time when the task comes.
#[tokio::test(start_paused = true)]
async fn such_a_task_ends_the_linger_of_a_leader() {
    for others in [0, 2] {
        let (stack, mut tasks) = lingering(json!({})).await;
        tasks.extend(register(&stack, "last", [parcels(others), last()].concat()).await);
        stack.seconds(30).await;
        assert_batched(&stack, &tasks).await;
        assert_eq!(stack.api.seen().len(), 1, "one batch takes all of them");
        // The message for which the leader lingered finds its batch formed, and those that come later linger again.
        let more = register(&stack, "more", parcels(2)).await;
        stack.seconds(60).await;
        assert_eq!(stack.claimed(&more).await, 0);
        stack.drain().await;
        stack.assert_settled(&[tasks, more].concat(), 10).await;
        assert_eq!(stack.api.seen().len(), 2);
    }
}

/// A task says that it flushes in its record. Without its hint it flushes as soon as a leader looks.
#[tokio::test(start_paused = true)]
async fn it_is_not_forgotten_with_its_message() {
    let stack = TestStack::with(flushing(json!({}))).await;
    let mut tasks = register(&stack, "last", last()).await;
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1);
    tokio::time::sleep(Duration::from_secs(5)).await;
    tasks.extend(register(&stack, "first", parcels(2)).await);
    stack.seconds(30).await;
    assert_batched(&stack, &tasks).await;
    assert_eq!(stack.api.seen().len(), 1);
    // If nothing else comes, the sweep wakes the lane.
    let lost = register(&stack, "lost", last()).await;
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1);
    stack.minutes(4).await;
    stack.assert_settled(&[tasks, lost].concat(), 10).await;
    // If a leader lingers, the sweep has it look.
    let (stack, mut tasks) = lingering(json!({})).await;
    tasks.extend(register(&stack, "last", last()).await);
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1);
    stack.minutes(4).await;
    assert_batched(&stack, &tasks).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    assert_eq!(stack.api.seen().len(), 1);
}

/// What a batch has no room for is not forgotten by the leader after it, however that one comes to lead.
#[tokio::test(start_paused = true)]
async fn it_is_not_forgotten_when_a_batch_leaves_it() {
    for max_in_flight in [1, 3] {
        let stack = TestStack::with(flushing(json!({"max_batch": 3, "max_in_flight": max_in_flight}))).await;
        let mut tasks = Vec::new();
        for (name, parcels) in [("first", parcels(3)), ("last", last()), ("more", parcels(1))] {
            tasks.extend(register(&stack, name, parcels).await);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stack.seconds(30).await;
        assert_batched(&stack, &tasks).await;
        assert_eq!(stack.api.seen().len(), 2, "{:?}", calls(&stack, "n"));
    }
}

/// The hint is late or comes again: its task is in a batch. The next leader goes on to linger.
#[tokio::test(start_paused = true)]
async fn a_late_hint_hurries_nobody() {
    let (stack, mut tasks) = lingering(json!({})).await;
    tasks.extend(register(&stack, "last", last()).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let late = stack.take(QueueName::Elect).await;
    let flushes = |body: &str| serde_json::from_str::<ElectMessage>(body).unwrap().flushes;
    assert!(late.iter().any(|delivery| flushes(&delivery.body)));
    stack.hand(QueueName::Elect, late.clone()).await;
    stack.seconds(30).await;
    assert_batched(&stack, &tasks).await;
    let more = register(&stack, "more", parcels(2)).await;
    stack.seconds(12).await;
    stack.hand(QueueName::Elect, late).await;
    let hurried = stack.take(QueueName::Group).await;
    let message: GroupMessage = serde_json::from_str(&hurried[0].body).unwrap();
    assert!(message.hurries && !message.waiting.is_empty(), "{message:?}");
    // It comes twice, and once more when that leader's batch is formed.
    stack.hand(QueueName::Group, hurried.clone()).await;
    stack.hand(QueueName::Group, hurried.clone()).await;
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&more).await, 0);
    stack.drain().await;
    stack.assert_settled(&[tasks, more].concat(), 10).await;
    let (calls, group) = (stack.api.seen().len(), stack.hand(QueueName::Group, hurried).await);
    stack.drain().await;
    assert_eq!((calls, stack.api.seen().len(), group.len()), (2, 2, 0));
}

/// The late hint names as many tasks as fill a batch. They are all in another one.
#[tokio::test(start_paused = true)]
async fn a_late_hint_fills_no_batch() {
    let stack = TestStack::with(flushing(json!({"max_batch": 4}))).await;
    let mut tasks = register_each(&stack, "apart", [parcels(3), last()].concat()).await;
    let late = stack.take(QueueName::Elect).await;
    stack.hand(QueueName::Elect, late.clone()).await;
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
    let more = register(&stack, "more", parcels(1)).await;
    stack.seconds(12).await;
    stack.hand(QueueName::Elect, late).await;
    assert!(stack.deliver(QueueName::Group).await > 0, "the hint comes");
    assert_eq!(stack.claimed(&more).await, 0);
    stack.drain().await;
    tasks.extend(more);
    stack.assert_settled(&tasks, 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_drops_the_field_lingers_from_the_next_batch_on() {
    let (stack, mut tasks) = lingering(json!({})).await;
    stack.put_policy(policy(json!({"linger": 600}))).await;
    tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    tasks.extend(register(&stack, "last", last()).await);
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    // Those that were registered under another policy say nothing of it.
    stack.put_policy(policy(flushing(json!({})))).await;
    tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    tasks.extend(register(&stack, "another", last()).await);
    stack.seconds(30).await;
    assert_batched(&stack, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_neither_is_refused_with_the_reason() {
    let stack = TestStack::with(flushing(json!({}))).await;
    let tasks = vec![parcel(json!({"last": false})), parcel(json!({"last": "yes"}))];
    let error = stack.register.register(tasks, "request").await.unwrap_err();
    let RegisterError::Refused(faults) = error else { panic!("{error}") };
    assert_eq!((faults.len(), faults[0].path().as_str()), (1, "tasks[1].flush_when"));
    assert!(stack.scan("TasksTable").await.is_empty(), "nothing is half done");
}

/// A task that flushes costs no write and no message more than another: only its leader looks once more.
#[tokio::test(start_paused = true)]
async fn it_costs_no_write() {
    let cost = async |changes: Value, lasts: bool| {
        let stack = TestStack::with(changes).await;
        let mut tasks = register(&stack, "together", parcels(20)).await;
        stack.seconds(8).await;
        tasks.extend(register(&stack, "end", if lasts { last() } else { parcels(1) }).await);
        stack.drain().await;
        stack.assert_settled(&tasks, 30).await;
        assert_eq!(stack.api.seen().len(), 1);
        let usage = stack.usage();
        (usage.write_units, usage.sqs_requests)
    };
    let long = json!({"linger": 60, "max_batch": 30});
    let (without, of_nobody) = (cost(long.clone(), true).await, cost(flushing(long.clone()), false).await);
    let with = cost(flushing(long), true).await;
    assert_eq!((with.0, of_nobody.0), (without.0, without.0), "write units");
    assert!(with.1 <= without.1 + 2 && of_nobody.1 <= without.1 + 2, "{without:?} {of_nobody:?} {with:?}");
}

async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(flushing(json!({"max_batch": 4}))), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = register(&stack, "first", parcels(2)).await;
    stack.seconds(6).await;
    tasks.extend(register(&stack, "last", last()).await);
    stack.seconds(30).await;
    // Those stored by a worker that died may come later.
    assert_eq!(stack.claimed(&tasks[2..]).await, 1, "its batch does not linger again");
    let claimed = stack.claimed(&tasks).await;
    stack.seconds(240).await;
    assert!(calls(&stack, "n").into_iter().flatten().count() >= claimed, "nor does it wait to be called");
    tasks.extend(register(&stack, "more", [parcels(2), last()].concat()).await);
    heal(&stack, &tasks, 4).await;
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
