//! The message of a leader comes once more when it has handed its lane over: the worker that did so may have died before it sent
//! the next leader's message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanfold::ids::derived;
use fanfold::store::locks::{Leader, Lock};
use fanfold_local::{Fate, Interceptor, ServiceRequest};
use fanfold_tests::{Crash, ScriptedApi, policy};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::*;

const BATCH: Uuid = Uuid::from_u128(1);

/// A lane of five tasks in batches of two, and its first leader.
async fn led(crash: Crash) -> (TestStack, Vec<TaskId>, Lock) {
    let stack = TestStack::new(policy(json!({"max_batch": 2})), ScriptedApi::always_succeeds(), crash).await;
    let tasks = stack.register_orders("117", 0..5).await;
    stack.take(QueueName::Elect).await;
    let lock = stack.locks.acquire(&lane(), BATCH, 3).await.unwrap().done().unwrap();
    (stack, tasks, lock)
}

/// The message of the leader is handed to a worker.
async fn hand(stack: &TestStack, lock: &Lock) {
    let leader = GroupMessage::elected(lock, BATCH, Waiting::default());
    assert!(stack.hand(QueueName::Group, vec![message("leader", &leader)]).await.is_empty());
}

/// What was sent to leaders is for the next one. It forms its batch, and the lane goes on.
async fn goes_on(stack: &TestStack, tasks: &[TaskId]) {
    let sent = stack.take(QueueName::Group).await;
    let batch = |body: &str| serde_json::from_str::<GroupMessage>(body).unwrap().batch;
    let to: Vec<Uuid> = sent.iter().map(|delivery| batch(&delivery.body)).collect();
    assert_eq!(to, [derived::next_batch(BATCH)]);
    assert!(stack.hand(QueueName::Group, sent).await.is_empty());
    stack.drain().await;
    stack.assert_settled(tasks, 2).await;
}

#[tokio::test(start_paused = true)]
async fn the_leader_that_it_handed_over_to_is_woken() {
    let (stack, tasks, lock) = led(Crash::never()).await;
    hand(&stack, &lock).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1, "the message is lost");
    hand(&stack, &lock).await;
    goes_on(&stack, &tasks).await;
}

/// Holds up the write that hands the lane over.
#[derive(Debug, Default)]
struct HandsOverLate(AtomicBool);

impl Interceptor for HandsOverLate {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            let is_it = call.operation == "UpdateItem" && String::from_utf8_lossy(&call.body).contains(":room");
            if is_it && !self.0.swap(true, Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            Fate::Pass
        }
        .boxed()
    }
}

/// Of two workers that act for the leader at once, one hands the lane over and dies. The other one finds that when it wants to.
#[tokio::test(start_paused = true)]
async fn a_worker_that_comes_second_wakes_the_leader_that_the_first_one_made() {
    let (stack, tasks, lock) = led(Crash::meeting(Arc::new(HandsOverLate::default()))).await;
    let first = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let leader = Leader { lane: &lock.lane, batch: BATCH, epoch: lock.epoch };
        stack.locks.hand_over(&leader, derived::next_batch(BATCH), 3).await.unwrap()
    };
    let ((), epoch) = futures::join!(hand(&stack, &lock), first);
    assert_eq!(epoch, Some(lock.epoch + 1));
    goes_on(&stack, &tasks).await;
}
