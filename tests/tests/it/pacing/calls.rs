//! `max_calls`: concurrent calls of a kind, over all its lanes.

use std::time::Duration;

use fanfold_tests::{Crash, QueueName, TestStack, policy};
use serde_json::json;

use super::{register, taking, work};

#[tokio::test(start_paused = true)]
async fn a_kind_makes_no_more_calls_at_once_than_it_may() {
    let api = taking(Duration::from_millis(700));
    let stack = TestStack::new(policy(json!({"max_calls": 4})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 30, 3).await;
    work(&stack, tasks.len()).await;
    assert_eq!(api.most_at_once(|_| true), 4);
    stack.assert_settled(&tasks, 10).await;
}

/// `max_calls` does not raise what the stack gives to one kind.
#[tokio::test(start_paused = true)]
async fn a_kind_gets_no_more_than_its_share() {
    let api = taking(Duration::from_secs(3));
    let stack = TestStack::new(policy(json!({"max_calls": 1_000})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 60, 1).await;
    work(&stack, tasks.len()).await;
    assert_eq!(api.most_at_once(|_| true), 15);
}

/// The calls of workers that died count until their leases end.
#[tokio::test(start_paused = true)]
async fn calls_of_the_dead_count_until_their_leases_end() {
    let api = taking(Duration::from_secs(9));
    let changes = json!({"max_calls": 2, "max_in_flight": 1, "batch_api": {"command": ["truck"], "timeout": "10s"}});
    let stack = TestStack::new(policy(changes), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 6, 1).await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
    }
    // Six workers; two of them call, and all die.
    let messages = stack.take(QueueName::Handle).await;
    let calls = messages.into_iter().map(|message| stack.hand(QueueName::Handle, vec![message]));
    assert!(tokio::time::timeout(Duration::from_millis(500), futures::future::join_all(calls)).await.is_err());
    assert_eq!((api.seen().len(), stack.places("parcel").await), (2, 2));
    let killed = tokio::time::Instant::now();
    for _ in 0..6 {
        stack.minutes(1).await;
    }
    stack.drain().await;
    assert_eq!(api.most_at_once(|_| true), 2);
    let again = api.seen()[2].at;
    assert!(again - killed >= Duration::from_secs(38), "{:?}", again - killed);
    stack.assert_settled(&tasks, 10).await;
}
