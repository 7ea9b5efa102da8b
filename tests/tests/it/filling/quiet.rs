//! Lanes in which nothing comes for some time.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, deaths, policy};
use serde_json::{Value, json};

use super::{assert_batched, calls, heal, parcel, register};

/// A policy whose leaders linger for ten minutes, unless nothing comes for ten seconds.
fn quiet(changes: Value) -> Value {
    changed(json!({"linger": 600, "quiet": 10, "max_batch": 100, "max_in_flight": 2}), changes)
}

/// Registers a task every six seconds.
async fn trickle(stack: &TestStack, name: &str, tasks: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for n in 0..tasks {
        ids.extend(register(stack, &format!("{name}-{n}"), vec![parcel(json!({"n": n}))]).await);
        stack.seconds(6).await;
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn a_batch_goes_when_nothing_comes_any_more() {
    let stack = TestStack::with(quiet(json!({}))).await;
    let tasks = trickle(&stack, "first", 10).await;
    assert_eq!(stack.claimed(&tasks).await, 0, "never was it quiet for ten seconds");
    stack.seconds(45).await;
    assert_batched(&stack, &tasks).await;
    assert_eq!(stack.api.seen().len(), 1, "{:?}", calls(&stack, "n"));
    // A single task is followed by nothing.
    let more = trickle(&stack, "more", 1).await;
    stack.seconds(45).await;
    assert_batched(&stack, &more).await;
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_is_never_quiet_waits_no_longer_than_the_linger() {
    let stack = TestStack::with(quiet(json!({"linger": 30}))).await;
    let tasks = trickle(&stack, "all", 12).await;
    let claimed = stack.claimed(&tasks).await;
    assert!((4..12).contains(&claimed), "{claimed} after more than a minute");
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    assert!(stack.api.seen().len() <= 3, "{:?}", calls(&stack, "n"));
}

/// A leader looks twice in each quiet time at most, and what comes costs no message.
#[tokio::test(start_paused = true)]
async fn a_leader_looks_seldom() {
    let stack = TestStack::with(quiet(json!({"linger": 100}))).await;
    let mut looks = 0;
    let mut tasks = Vec::new();
    for n in 0..40 {
        tasks.extend(register(&stack, &format!("all-{n}"), vec![parcel(json!({"n": n}))]).await);
        for queue in [QueueName::Elect, QueueName::Group] {
            let delivered = stack.deliver(queue).await;
            looks += if queue == QueueName::Group { delivered } else { 0 };
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(stack.claimed(&tasks).await, 0);
    assert!(looks <= 16, "{looks} looks in 80 s");
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
}

/// What waited for room in flight waited long enough.
#[tokio::test(start_paused = true)]
async fn who_is_led_on_to_counts_from_the_last_task() {
    let stack = TestStack::with(quiet(json!({"max_batch": 3, "max_in_flight": 1}))).await;
    let mut tasks = register(&stack, "full", (0..3).map(|n| parcel(json!({"n": n}))).collect()).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    tasks.extend(register(&stack, "rest", vec![parcel(json!({"n": 3}))]).await);
    stack.pass(&[QueueName::Elect]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    stack.deliver(QueueName::Handle).await;
    stack.deliver(QueueName::Group).await;
    assert_eq!(stack.claimed(&tasks).await, 4, "the leader lingers no more");
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_drops_the_field_lingers_from_the_next_batch_on() {
    let stack = TestStack::with(quiet(json!({"linger": 120}))).await;
    let tasks = trickle(&stack, "first", 1).await;
    stack.put_policy(policy(json!({"linger": 120}))).await;
    tokio::time::sleep(POLICY_CACHE_MAX).await;
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    stack.seconds(90).await;
    assert_batched(&stack, &tasks).await;
}

/// A leader whose message is lost has the whole linger, and is woken then.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_message_is_lost_is_woken() {
    let stack = TestStack::with(quiet(json!({"linger": 60}))).await;
    let tasks = register(&stack, "first", vec![parcel(json!({}))]).await;
    stack.pass(&[QueueName::Elect]).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1);
    stack.minutes(5).await;
    stack.assert_settled(&tasks, 100).await;
}

async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(quiet(json!({"linger": 18}))), ScriptedApi::always_succeeds(), crash).await;
    let tasks = trickle(&stack, "all", 4).await;
    heal(&stack, &tasks, 100).await;
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
