//! Hostile input: what every queue and every batch API may bring. Nothing panics, nothing is lost, each bad message is told
//! clearly, and no other suffers for it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "hostile/answers.rs"]
mod answers;
#[path = "hostile/api.rs"]
mod api;
#[path = "hostile/bodies.rs"]
mod bodies;
#[path = "hostile/dead.rs"]
mod dead;
#[path = "hostile/errors.rs"]
mod errors;
#[path = "hostile/forged_acks.rs"]
mod forged_acks;
#[path = "hostile/forged_batches.rs"]
mod forged_batches;
#[path = "hostile/forged_lanes.rs"]
mod forged_lanes;
#[path = "hostile/later.rs"]
mod later;
#[path = "hostile/mixed.rs"]
mod mixed;
#[path = "hostile/server.rs"]
mod server;
#[path = "hostile/shown.rs"]
mod shown;

use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold::ids::{ItemId, TaskId};
use fanfold_tests::{Crash, QueueName, ScriptedApi, Stack, order, policy};
use serde::Serialize;
use serde_json::Value;

async fn stack(changes: Value) -> Stack {
    Stack::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await
}

fn delivery(id: impl ToString, body: impl ToString) -> Delivery {
    Delivery { message_id: id.to_string(), body: body.to_string(), receive_count: 1 }
}

fn message(id: impl ToString, message: &impl Serialize) -> Delivery {
    delivery(id, serde_json::to_string(message).unwrap())
}

/// Hands messages to the step behind a queue. Answers which failed, in order of their names.
async fn hand(stack: &Stack, queue: QueueName, deliveries: Vec<Delivery>) -> Vec<String> {
    let mut failed = stack.hand(queue, deliveries).await;
    failed.sort_unstable();
    failed
}

/// Registers a task for every item, all of one target.
async fn register(stack: &Stack, ids: &[ItemId]) -> Vec<TaskId> {
    stack.register(ids.iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
    ids.iter().map(|id| TaskId::Item(*id)).collect()
}

/// Delivers what is in these queues, one after the other.
async fn pass(stack: &Stack, queues: &[QueueName]) {
    for queue in queues {
        // What is delayed is due by then.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(stack.deliver(*queue).await > 0, "nothing came to {queue:?}");
    }
}

/// Lets everything come to its end, sweeps included, then checks what must hold: every task in one batch, and one fan-out
/// completed, all of whose items have the outcome expected.
async fn assert_unharmed(stack: &Stack, tasks: &[TaskId], failed: u64) {
    for _ in 0..3 {
        stack.drain().await;
        stack.sweep().await;
    }
    stack.drain().await;
    stack.assert_settled(tasks, 10).await;
    let completions = stack.completions().await;
    let total = tasks.len() as u64;
    assert_eq!(completions.len(), 1, "{completions:?}");
    let end = &completions[0];
    assert_eq!((end.total, end.succeeded, end.failed), (total, total - failed, failed));
    let header = stack.tracking.fanouts.get(end.fanout).await.unwrap().unwrap();
    assert_eq!((header.open_groups, header.complete()), (0, true));
}
