//! Lost messages, and what a sweep makes of them.

use std::time::Duration;

use fanfold::messages::TaskRequest;
use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, order, policy};
use serde_json::json;
use uuid::Uuid;

use super::{lane, spoil_policy};

/// A crash between claiming and forming: the plain algorithm loses the tasks that it marked.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_message_is_lost_is_found_by_its_lock() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..4).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1, "the leader's message is lost");
    stack.sweep().await;
    stack.deliver(QueueName::Group).await;
    assert_eq!(stack.take(QueueName::Handle).await.len(), 1, "the batch's message is lost");
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_whose_messages_are_lost_are_found_in_the_index() {
    let stack = TestStack::with(json!({"max_batch": 3})).await;
    let tasks = stack.register_orders("117", 0..10).await;
    stack.take(QueueName::Elect).await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_fanout_whose_ack_is_lost_completes_by_a_sweep() {
    let stack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(4, true).await;
    stack.register_items(&ids).await;
    for _ in 0..6 {
        for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
            stack.deliver(queue).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "the ack is lost");
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 0);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    stack.assert_locks_free().await;
}

/// A policy that cannot be read, as after a roll-back, does not keep a sweep from healing the rest.
#[tokio::test(start_paused = true)]
async fn a_sweep_goes_on_past_a_record_that_it_cannot_read() {
    let stack = TestStack::with(json!({})).await;
    spoil_policy(&stack, "letter").await;
    stack.locks.acquire(&lane("letter:0:x"), Uuid::from_u128(1), 1).await.unwrap().done().unwrap();
    let tasks = stack.register_orders("117", 0..2).await;
    stack.take(QueueName::Elect).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        let _ = stack.sweeper.sweep(SweepRequest::default()).await;
    }
    stack.drain().await;
    assert_eq!(stack.claimed(&tasks).await, 2, "tasks of another kind wait for ever");
}

/// A queue that is an hour behind must not get a message per minute for each of its batches.
#[tokio::test(start_paused = true)]
async fn sweeps_do_not_pile_up_messages_for_one_batch() {
    let stack = TestStack::with(json!({})).await;
    stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
    }
    let messages = stack.take(QueueName::Handle).await.len();
    assert!((2..=10).contains(&messages), "{messages} messages for one batch");
}

/// The same for a leader, which elections of its lane find silent, too.
#[tokio::test(start_paused = true)]
async fn sweeps_and_elections_do_not_pile_up_messages_for_one_leader() {
    let stack = TestStack::with(json!({})).await;
    stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect]).await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
        stack.deliver(QueueName::Elect).await;
    }
    let messages = stack.take(QueueName::Group).await.len();
    assert!((2..=10).contains(&messages), "{messages} messages for one leader");
}

/// A batch whose record has expired was done long ago.
#[tokio::test(start_paused = true)]
async fn a_batch_without_a_record_keeps_no_lane_busy() {
    for closing in [false, true] {
        let stack = TestStack::with(json!({})).await;
        stack.register_orders("117", 0..2).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        let batch = stack.only_batch().await;
        assert!(!closing || stack.locks.leave(&batch.lane, batch.id, true).await.unwrap().is_done());
        stack.delete_record("BatchesTable", &batch.id.to_string()).await;
        stack.sweep().await;
        stack.assert_locks_free().await;
    }
}

/// Whether failures are reported is asked of the policy each time. A batch is closed even if the answer changed.
#[tokio::test(start_paused = true)]
async fn a_batch_is_closed_although_its_policy_names_no_receiver_any_more() {
    let api = ScriptedApi::new(|_| Err(fanfold_batch_api::CallError::for_good("404")));
    let stack = TestStack::new(policy(json!({"notify": {"queue": "notices"}})), api, Crash::never()).await;
    stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    assert_eq!(stack.take(QueueName::Notify).await.len(), 1, "the notice's message is lost");
    stack.put_policy(policy(json!({}))).await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    stack.assert_locks_free().await;
}

/// The acks of an invocation do not depend on one another's policies.
#[tokio::test(start_paused = true)]
async fn an_ack_does_not_fail_for_another_kinds_policy() {
    let stack = TestStack::with(json!({})).await;
    stack.put_policy(policy(json!({"kind": "letter"}))).await;
    let (_, ids) = stack.open(2, true).await;
    let letter = TaskRequest { kind: "letter".to_owned(), ..order(Some(ids[1]), "117", 1) };
    stack.register(vec![order(Some(ids[0]), "117", 0), letter]).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let acks = stack.take(QueueName::Ack).await;
    assert_eq!(acks.len(), 2);
    spoil_policy(&stack, "letter").await;
    assert!(stack.hand(QueueName::Ack, acks).await.len() < 2, "both failed");
}
