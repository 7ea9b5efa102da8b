//! The plain group-batching algorithm.

use std::collections::{BTreeMap, BTreeSet};

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::masks::Masks;
use fanfold::members::Members;
use fanfold::policy::Weight;
use fanfold::waiting::Waiting;
use fanfold_batch_api::Answer;
use fanfold_tests::QueueName;
use serde_json::json;

use super::{elected, settled, stack};

/// The plain group-batching algorithm: the lock's expiry is not in its condition, and nothing fences a leader that wakes up
/// late: the leader sleeps until others act for it and lead after it.
#[tokio::test(start_paused = true)]
async fn a_leader_that_sleeps_past_its_lease_is_fenced() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (_, ids) = stack.open(6, true).await;
    let late = elected(&stack, &ids[..3]).await;
    stack.sweep().await;
    stack.drain().await;
    elected(&stack, &ids[3..]).await;
    stack.send(QueueName::Group, json!(late)).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    settled(&stack, &ids).await;
    assert_eq!(stack.completions().await.len(), 1);
}

/// The plain algorithm: the index it reads is eventually consistent. A leader that is shown tasks of another batch gets none
/// of them.
#[tokio::test(start_paused = true)]
async fn tasks_that_an_index_shows_too_long_are_not_claimed_again() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (_, ids) = stack.open(6, true).await;
    stack.register_items(&ids[..3]).await;
    stack.drain().await;
    let mut stale = elected(&stack, &ids[3..]).await;
    stale.waiting = Waiting::alone(ids.iter().copied().map(TaskId::Item)).union(&stale.waiting);
    stack.send(QueueName::Group, json!(stale)).await;
    stack.drain().await;
    let batches: BTreeSet<_> =
        settled(&stack, &ids).await.into_iter().map(|batch| (batch.id, batch.members.len())).collect();
    assert_eq!(batches.into_iter().map(|(_, members)| members).collect::<Vec<_>>(), [3, 3]);
}

/// The plain algorithm: a crash between marking tasks and writing the members loses them.
#[tokio::test(start_paused = true)]
async fn a_crash_between_claiming_and_forming_loses_nothing() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (_, ids) = stack.open(4, true).await;
    let leader = elected(&stack, &ids[..2]).await;
    stack.register_items(&ids[2..]).await;
    let tasks: Vec<TaskId> = ids.iter().copied().map(TaskId::Item).collect();
    let bundles: Masks = stack.waiting(&tasks).await.bundles.keys().map(|id| (*id, Bits::ones(2))).collect();
    let members = Members::new(tasks.iter().copied());
    stack.batches.intend(leader.batch, &leader.lane, &members, &bundles, Weight::default()).await.unwrap();
    let first: Masks = bundles.iter().take(1).map(|(id, slots)| (id, slots.clone())).collect();
    stack.tasks.claim_bundles(&first, BTreeMap::new(), &leader.lane, leader.batch).await.unwrap();
    assert_eq!(stack.claimed(&tasks).await, 2, "half of them are claimed when the worker dies");
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert!(settled(&stack, &ids).await.iter().all(|batch| batch.id == leader.batch));
}
