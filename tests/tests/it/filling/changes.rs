//! A policy that changes while tasks wait: the next batch is filled as it says then.

use std::time::Duration;

use fanfold_tests::{QueueName, TestStack, changed, policy};
use serde_json::{Value, json};

use super::{calls, parcel, register};

/// One batch at a time, formed at once.
fn hasty(changes: &Value) -> Value {
    changed(json!({"linger": 0, "max_batch": 100, "max_in_flight": 1}), changes.clone())
}

/// Has a lane form one batch of so many tasks, changes the policy, and lets everything be done. Returns the number of members of each
/// call, and how long it took from the change on.
async fn run(before: &Value, after: &Value, tasks: usize) -> (Vec<usize>, Duration) {
    let stack = TestStack::with(hasty(before)).await;
    let tasks = register(&stack, "all", (0..tasks).map(|n| parcel(json!({"n": n}))).collect()).await;
    while stack.claimed(&tasks).await == 0 {
        stack.deliver(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stack.put_policy(policy(hasty(after))).await;
    let begun = stack.world.now();
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    (calls(&stack, "n").iter().map(Vec::len).collect(), stack.world.now().since(begun))
}

#[tokio::test(start_paused = true)]
async fn another_size_holds_from_the_next_batch_on() {
    let weighing = |most: u64| json!({"weight": "1.0", "max_weight": most});
    for (two, five) in [
        (json!({"max_batch": 2}), json!({"max_batch": 5})),
        // A member has 149 bytes.
        (json!({"max_batch_bytes": 300}), json!({"max_batch_bytes": 750})),
        (weighing(2), weighing(5)),
    ] {
        assert_eq!(run(&two, &five, 10).await.0, [2, 5, 3], "{five}");
        assert_eq!(run(&five, &two, 10).await.0, [5, 2, 2, 1], "{two}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_linger_holds_from_the_next_batch_on() {
    let lingering = |linger: u64| json!({"linger": linger, "max_batch": 2});
    let (sizes, took) = run(&lingering(0), &lingering(600), 3).await;
    assert!(sizes == [2, 1] && took >= Duration::from_secs(600), "{sizes:?} in {took:?}");
    let (sizes, took) = run(&lingering(600), &lingering(0), 3).await;
    assert!(sizes == [2, 1] && took < Duration::from_secs(60), "{sizes:?} in {took:?}");
}
