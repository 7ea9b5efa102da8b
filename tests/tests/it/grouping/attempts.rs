//! Attempts: counted once, and they end.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::limits::LOST_ATTEMPTS_MAX;
use fanfold::messages::HandleMessage;
use fanfold_batch_api::{Answer, CallError, Cause};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

use super::spoil_policy;

/// That of the policy's calls.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_and_end() {
    let api = ScriptedApi::new(|_| Err(CallError::new(Cause::Silence, "no answer in time")));
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((stack.api.seen().len(), batch.attempts, batch.failed.count()), (4, 4, 2));
    let keys: BTreeSet<String> = stack.api.seen().into_iter().map(|seen| seen.key).collect();
    assert_eq!(keys.len(), 1, "a batch of which nothing was done keeps its key");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_attempt_does_not_call() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let message = stack.take(QueueName::Handle).await;
    let both = (0..2).map(|_| stack.hand(QueueName::Handle, message.clone()));
    join_all(both).await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_lease_does_not_count_twice() {
    let api = ScriptedApi::new(|_| Ok(Answer::AllSucceeded));
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    // A worker begins and falls asleep; after its lease another one does the work.
    let message: HandleMessage =
        serde_json::from_str(&stack.receive(QueueName::Handle).await[0].body.clone().unwrap()).unwrap();
    let asleep = stack.batches.begin(message.batch, message.attempt, TIMEOUT).await.unwrap().done().unwrap();
    tokio::time::sleep(Duration::from_secs(130)).await;
    stack.handle_message(message).await;
    let late = fanfold::store::batches::Settlement {
        succeeded: fanfold::bits::Bits::default(),
        silent: fanfold::bits::Bits::default(),
        freed: fanfold::bits::Bits::default(),
        failed: fanfold::bits::Bits::ones(2),
        errors: vec![("too late".to_owned(), fanfold::bits::Bits::ones(2))],
        refused: 0,
        refused_since: None,
        parts: fanfold::grouping::Parts::default(),
        codes: Vec::new(),
        results: Vec::new(),
        split: false,
        last_error: None,
        retry_at: None,
    };
    assert!(!stack.batches.settle(&asleep, late).await.unwrap().is_done(), "the late outcome is refused");
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), batch.attempts), (2, 0, 2));
}

/// An attempt that could not read what it needs has not called: it is taken back.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_could_not_read_does_not_count() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    spoil_policy(&stack, "parcel").await;
    for _ in 0..40 {
        stack.sweep().await;
        stack.deliver(QueueName::Handle).await;
    }
    stack.put_policy(policy(json!({}))).await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), stack.api.seen().len()), (2, 1), "{:?}", batch.errors);
}

/// So many workers in turn begin an attempt of a batch, and die.
async fn lose_workers(stack: &TestStack, batch: Uuid, workers: u32) {
    for attempt in 1..=workers {
        let lost = attempt.saturating_sub(1).max(1);
        assert!(stack.batches.begin(batch, lost, TIMEOUT).await.unwrap().is_done());
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
}

/// A worker that dies while it calls is no failure of the batch API: it uses up no attempt of the policy.
#[tokio::test(start_paused = true)]
async fn lost_workers_use_up_no_attempts() {
    let api = ScriptedApi::always_succeeds();
    let stack = TestStack::new(policy(json!({"max_attempts": 2})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0).id;
    lose_workers(&stack, batch, 10).await;
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, batch.ended), (3, 11, 1));
}

/// But a batch that kills every worker ends.
#[tokio::test(start_paused = true)]
async fn a_batch_that_kills_its_workers_ends() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0).id;
    lose_workers(&stack, batch, LOST_ATTEMPTS_MAX).await;
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.failed.count(), stack.api.seen().len()), (3, 0));
    assert!(batch.error(0).unwrap().contains("workers were lost"));
}
