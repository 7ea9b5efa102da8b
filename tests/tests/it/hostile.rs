//! Hostile input: what every queue and every batch API may bring. Nothing panics, nothing is lost, each bad message is reported
//! clearly, and no other suffers for it.

mod answers;
mod api;
mod bodies;
mod dead;
mod errors;
mod forged_acks;
mod forged_batches;
mod forged_lanes;
mod forged_notices;
mod later;
mod mixed;
pub(crate) mod server;
mod shown;
mod unsent;

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
