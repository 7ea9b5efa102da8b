//! Waits below a second, and parts of one: SQS delays by whole seconds, and a leader's worker waits for the rest.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::messages::GroupMessage;
use fanfold_tests::{
    Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, changed, message, order, policy,
};
use serde_json::{Value, json};

use super::{assert_batched, calls, heal, parcel, register};

/// A policy whose leaders wait for a part of a second.
fn short(changes: Value) -> Value {
    changed(json!({"linger": "300ms", "max_batch": 100, "max_in_flight": 2}), changes)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Registers so many tasks, one after the other, after as many pauses.
async fn trickle(stack: &TestStack, pause: Duration, tasks: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for n in 0..tasks {
        tokio::time::sleep(pause).await;
        ids.extend(register(stack, &format!("trickle-{n}"), vec![parcel(json!({"n": n}))]).await);
    }
    ids
}

/// Delivers what is for leaders until nothing is left that is not delayed. Returns the number of messages.
async fn lead(stack: &TestStack) -> usize {
    let mut messages = 0;
    loop {
        match stack.deliver(QueueName::Group).await {
            0 => return messages,
            delivered => messages += delivered,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_the_worker_waits_is_in_the_batch() {
    let stack = TestStack::with(short(json!({}))).await;
    let mut tasks = register(&stack, "first", vec![parcel(json!({"n": "first"}))]).await;
    let begun = stack.world.now();
    let (messages, more) = tokio::join!(lead(&stack), trickle(&stack, millis(90), 3));
    assert_eq!(messages, 1);
    assert_eq!(stack.world.now().since(begun), millis(300));
    tasks.extend(more);
    assert_batched(&stack, &tasks).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    assert_eq!(stack.api.seen().len(), 1, "{:?}", calls(&stack, "n"));
}

#[tokio::test(start_paused = true)]
async fn of_a_longer_wait_the_message_is_delayed_by_the_seconds() {
    let stack = TestStack::with(short(json!({"linger": "2300ms"}))).await;
    let tasks = register(&stack, "first", vec![parcel(json!({}))]).await;
    assert!(stack.deliver(QueueName::Elect).await > 0, "there is an election");
    let begun = stack.world.now();
    while lead(&stack).await == 0 {
        assert_eq!(stack.claimed(&tasks).await, 0);
        tokio::time::sleep(millis(100)).await;
    }
    let waited = stack.world.now().since(begun);
    assert!(waited >= millis(2_300) && waited < millis(2_500), "{waited:?}");
    assert_batched(&stack, &tasks).await;
}

/// By quiet times of a part of a second, and no later than the linger.
#[tokio::test(start_paused = true)]
async fn a_lane_is_quiet_for_a_part_of_a_second() {
    for (linger, batches, least, most) in [("900ms", 1, 450, 550), ("250ms", 2, 250, 250)] {
        let stack = TestStack::with(short(json!({"linger": linger, "quiet": "100ms"}))).await;
        let begun = stack.world.now();
        let mut tasks = register(&stack, "first", vec![parcel(json!({"n": "first"}))]).await;
        let first = async {
            while stack.claimed(&tasks).await == 0 {
                stack.deliver(QueueName::Group).await;
            }
            stack.world.now().since(begun)
        };
        let (waited, more) = tokio::join!(first, trickle(&stack, millis(70), 5));
        assert!(waited >= millis(least) && waited <= millis(most), "{linger}: {waited:?}");
        tasks.extend(more);
        if batches == 1 {
            assert_batched(&stack, &tasks).await;
        }
        stack.drain().await;
        stack.assert_settled(&tasks, 100).await;
        assert_eq!(stack.api.seen().len(), batches, "{:?}", calls(&stack, "n"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_too_small_waits_on_for_a_part_of_a_second() {
    let enough = json!({"linger": "200ms", "min_batch": 3, "min_batch_wait": "400ms"});
    let stack = TestStack::with(short(enough)).await;
    let tasks = register(&stack, "first", vec![parcel(json!({}))]).await;
    assert!(stack.deliver(QueueName::Elect).await > 0, "there is an election");
    let begun = stack.world.now();
    lead(&stack).await;
    assert_eq!(stack.world.now().since(begun), millis(600));
    assert_batched(&stack, &tasks).await;
}

/// A kind that does not linger is served in the same invocation.
#[tokio::test(start_paused = true)]
async fn others_do_not_wait_for_a_worker_that_waits() {
    let stack = TestStack::with(short(json!({}))).await;
    stack.put_policy(policy(json!({"kind": "letter", "linger": 0}))).await;
    let waits = register(&stack, "first", vec![parcel(json!({}))]).await;
    let hasty = register(
        &stack,
        "second",
        vec![fanfold::messages::TaskRequest { kind: "letter".to_owned(), ..order(None, "117", 1) }],
    )
    .await;
    let both = stack.take(QueueName::Group).await;
    assert_eq!(both.len(), 2);
    let (failed, ()) = tokio::join!(stack.hand(QueueName::Group, both), async {
        tokio::time::sleep(millis(100)).await;
        assert_eq!((stack.claimed(&hasty).await, stack.claimed(&waits).await), (1, 0));
        assert_eq!(stack.take(QueueName::Handle).await.len(), 1, "its message is sent");
    });
    assert_eq!((failed.len(), stack.claimed(&waits).await), (0, 1));
}

/// A full batch waits for nothing, and a request about many lanes leaves them to elections.
#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let stack = TestStack::with(short(json!({"max_batch": 3}))).await;
    let begun = stack.world.now();
    let tasks = register(&stack, "three", (0..3).map(|n| parcel(json!({"n": n}))).collect()).await;
    lead(&stack).await;
    assert_batched(&stack, &tasks).await;
    assert_eq!(stack.world.now(), begun);
    stack.register((0..20).map(|n| order(None, &n.to_string(), n)).collect()).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_waits_for_a_second_at_most_whatever_a_message_says() {
    let stack = TestStack::with(short(json!({}))).await;
    let tasks = register(&stack, "first", vec![parcel(json!({}))]).await;
    let sent: GroupMessage = serde_json::from_str(&stack.take(QueueName::Group).await[0].body).unwrap();
    let begun = stack.world.now();
    let forged = GroupMessage { worker_waits: u64::MAX, lingered_ms: u64::MAX, ..sent };
    assert!(stack.hand(QueueName::Group, vec![message("forged", &forged)]).await.is_empty());
    assert_eq!(stack.world.now().since(begun), millis(1_000));
    assert_batched(&stack, &tasks).await;
}

/// A leader whose message is lost while its worker waits is woken.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_message_is_lost_is_woken() {
    let stack = TestStack::with(short(json!({}))).await;
    let tasks = register(&stack, "first", vec![parcel(json!({}))]).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1);
    stack.minutes(5).await;
    stack.assert_settled(&tasks, 100).await;
}

async fn run(crash: Crash) -> Option<String> {
    let changes = short(json!({"linger": "700ms", "quiet": "200ms", "min_batch": 3, "min_batch_wait": "400ms"}));
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = register(&stack, "first", vec![parcel(json!({"n": "first"}))]).await;
    stack.deliver(QueueName::Elect).await;
    let (_, more) = tokio::join!(lead(&stack), trickle(&stack, millis(100), 3));
    tasks.extend(more);
    heal(&stack, &tasks, 100).await;
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    assert!(at_every_request(Moment::Before, run).await.len() > 20);
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    assert!(at_every_request(Moment::After, run).await.len() > 20);
}
