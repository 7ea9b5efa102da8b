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
#[path = "hostile/forged_notices.rs"]
mod forged_notices;
#[path = "hostile/later.rs"]
mod later;
#[path = "hostile/mixed.rs"]
mod mixed;
#[path = "hostile/server.rs"]
mod server;
#[path = "hostile/shown.rs"]
mod shown;

use fanfold::delivery::Delivery;
use fanfold::ids::TaskId;
use fanfold_tests::{QueueName, TestStack};

/// Hands messages to the step behind a queue. Returns which failed, in order of their names.
async fn hand(stack: &TestStack, queue: QueueName, deliveries: Vec<Delivery>) -> Vec<String> {
    let mut failed = stack.hand(queue, deliveries).await;
    failed.sort_unstable();
    failed
}

/// Lets everything come to its end, sweeps included, then checks what must hold: every task in one batch, and one fan-out
/// completed, all of whose items have the outcome expected.
async fn assert_unharmed(stack: &TestStack, tasks: &[TaskId], failed: u64) {
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
