//! Well-formed messages that no step sent, about batches: to the queues `group` and `handle`.

use fanfold::bits::Bits;
use fanfold::ids::{ItemId, TaskId};
use fanfold::masks::Masks;
use fanfold::members::Members;
use fanfold::messages::{GroupMessage, HandleMessage};
use fanfold::policy::Weight;
use fanfold::store::batches::BatchStatus;
use fanfold::waiting::Waiting;
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, message, policy};
use serde_json::json;
use uuid::Uuid;

use super::{assert_unharmed, hand};

/// The message for the leader, which forms its batch.
async fn take_group(stack: &TestStack) -> GroupMessage {
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    serde_json::from_str(&stack.take(QueueName::Group).await.remove(0).body).unwrap()
}

/// Forms of a group message that name another epoch, lane, batch or other tasks.
fn forgeries(right: &GroupMessage) -> Vec<GroupMessage> {
    let lanes = ["parcel:1:117", "parcel:0:900", "parcel:4294967295:117"];
    let beyond = ItemId { fanout: Uuid::nil(), group: Uuid::nil(), index: 7_167 };
    let strangers = Waiting::alone([TaskId::Single(Uuid::nil()), TaskId::Item(beyond)]);
    let unknown = Waiting { bundles: [(Uuid::max(), 7)].into(), ..Waiting::default() };
    let mut forged: Vec<GroupMessage> = lanes
        .into_iter()
        .map(|lane| GroupMessage { lane: lane.parse().unwrap(), ..right.clone() })
        .chain([0, 2, 3, u64::MAX - 1, u64::MAX].map(|epoch| GroupMessage { epoch, ..right.clone() }))
        .chain([Uuid::nil(), Uuid::max()].map(|batch| GroupMessage { batch, ..right.clone() }))
        .collect();
    forged.extend([strangers, unknown, Waiting::default()].map(|waiting| GroupMessage { waiting, ..right.clone() }));
    forged
}

async fn forge(stack: &TestStack, right: &GroupMessage) {
    let forged = forgeries(right);
    let deliveries = forged.iter().enumerate().map(|(n, forged)| message(n, forged)).collect();
    assert_eq!(hand(stack, QueueName::Group, deliveries).await, Vec::<String>::new());
}

/// Only the leader of that epoch puts its batch in flight, and each task is in one batch: a forgery that acts in its
/// name does its work, or nothing. Each forgery at each stage of a batch.
#[tokio::test(start_paused = true)]
async fn forged_leaders_do_no_harm_at_any_stage() {
    // The forgeries come after so many steps.
    for stage in 0..5 {
        let stack = TestStack::with(json!({"max_batch": 5})).await;
        let (_, ids) = stack.open(23, true).await;
        let tasks = stack.register_items(&ids).await;
        stack.pass(&[QueueName::Elect]).await;
        let right = take_group(&stack).await;
        if stage == 0 {
            forge(&stack, &right).await;
        }
        assert!(hand(&stack, QueueName::Group, vec![message("right", &right)]).await.is_empty());
        for (n, queue) in [QueueName::Handle, QueueName::Ack].into_iter().enumerate() {
            if stage == n + 1 {
                forge(&stack, &right).await;
            }
            stack.pass(&[queue]).await;
        }
        if stage == 3 {
            forge(&stack, &right).await;
        }
        stack.drain().await;
        if stage == 4 {
            forge(&stack, &right).await;
        }
        assert_unharmed(&stack, &tasks, 0).await;
    }
}

/// What a forged leader comes to before the right one did anything: a batch that does not lead claims nothing, the leader in another
/// epoch claims what it would anyway and forms nothing, and which tasks a message names changes nothing.
#[tokio::test(start_paused = true)]
async fn a_forged_leader_is_refused_and_not_just_harmless() {
    let mut seen = [0; 3];
    for n in 0.. {
        let stack = TestStack::with(json!({"max_batch": 5})).await;
        let (_, ids) = stack.open(23, true).await;
        let tasks = stack.register_items(&ids).await;
        stack.pass(&[QueueName::Elect]).await;
        let right = take_group(&stack).await;
        let Some(forged) = forgeries(&right).into_iter().nth(n) else { break };
        let before = stack.locks.get(&right.lane).await.unwrap();
        assert!(hand(&stack, QueueName::Group, vec![message(n, &forged)]).await.is_empty());
        let after = stack.locks.get(&right.lane).await.unwrap();
        let claimed = stack.claimed(&tasks).await;
        let batches: Vec<Uuid> = stack.all_batches().await.iter().map(|batch| batch.id).collect();
        let sent = stack.take(QueueName::Handle).await.len();
        if (&forged.lane, forged.batch) != (&right.lane, right.batch) {
            assert_eq!((after, claimed, batches, sent), (before, 0, vec![], 0), "{forged:?}");
            seen[0] += 1;
        } else if forged.epoch != right.epoch {
            assert_eq!((after, claimed, batches, sent), (before, 5, vec![right.batch], 0), "{forged:?}");
            seen[1] += 1;
        } else {
            assert_eq!((after.in_flight, claimed, sent), (vec![right.batch], 5, 1), "{forged:?}");
            seen[2] += 1;
        }
    }
    assert_eq!(seen, [5, 5, 3]);
}

/// A batch that was handed on is known in flight; so is its lane's next leader, whichever epoch a late message names.
#[tokio::test(start_paused = true)]
async fn a_repeated_leader_of_a_forged_epoch_sends_the_next_one_its_own() {
    let stack = TestStack::with(json!({"max_batch": 5})).await;
    let (_, ids) = stack.open(23, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect]).await;
    let right = take_group(&stack).await;
    assert!(hand(&stack, QueueName::Group, vec![message("right", &right)]).await.is_empty());
    let next = take_group(&stack).await;
    assert_eq!(stack.locks.get(&right.lane).await.unwrap().holder, Some(next.batch));
    let forged = GroupMessage { epoch: u64::MAX, ..right.clone() };
    assert!(hand(&stack, QueueName::Group, vec![message("forged", &forged)]).await.is_empty());
    assert_eq!(take_group(&stack).await.epoch, next.epoch, "the epoch is the lock's, not the message's");
    // Both messages of the next leader are lost.
    assert_unharmed(&stack, &tasks, 0).await;
}

/// An attempt begins once, in its turn: messages with another number find the batch as it stands, and go on with that.
#[tokio::test(start_paused = true)]
async fn forged_attempts_neither_call_twice_nor_count() {
    let api = ScriptedApi::new(|call| match call.attempt {
        1 | 2 => Err(CallError::again("503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(json!({"backoff": {"base": 60, "max": 60}})), api, Crash::never()).await;
    let (_, ids) = stack.open(5, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect]).await;
    let right = take_group(&stack).await;
    let forge = async |attempts: &[u32]| {
        let forged = |attempt: &u32| {
            message(attempt, &HandleMessage { attempt: *attempt, ..HandleMessage::first(right.batch, false) })
        };
        hand(&stack, QueueName::Handle, attempts.iter().map(forged).collect()).await
    };
    let unknown = ["0", "1", "4294967295"];
    assert_eq!(forge(&[0, 1, u32::MAX]).await, unknown, "there is no such batch yet");
    let bundles: Masks = right.waiting.bundles.keys().map(|bundle| (*bundle, Bits::ones(5))).collect();
    stack
        .batches
        .intend(right.batch, &right.lane, &Members::new(tasks.clone()), &bundles, Weight::default())
        .await
        .unwrap();
    assert_eq!(forge(&[0, 1, u32::MAX]).await, unknown, "it is not formed yet");
    assert!(hand(&stack, QueueName::Group, vec![message("right", &right)]).await.is_empty());
    assert!(forge(&[0, 2, 3, u32::MAX - 1, u32::MAX]).await.is_empty());
    assert_eq!(stack.api.seen().len(), 0, "it is the first one's turn");
    stack.pass(&[QueueName::Handle]).await;
    assert!(forge(&[0, 1, 3, 4, u32::MAX]).await.is_empty());
    let batch = stack.batches.get(right.batch).await.unwrap().unwrap();
    assert_eq!((batch.status, batch.attempts, stack.api.seen().len()), (BatchStatus::InProgress, 1, 1));
    stack.drain().await;
    assert!(forge(&[0, 1, 2, 3, 4, 5, u32::MAX]).await.is_empty());
    assert_unharmed(&stack, &tasks, 0).await;
    let batch = stack.batches.get(right.batch).await.unwrap().unwrap();
    assert_eq!((batch.attempts, batch.ended, stack.api.seen().len()), (3, 3, 3));
}

/// Two batches run at once; messages that name one's id with the other's attempt are about the one they name.
#[tokio::test(start_paused = true)]
async fn another_batchs_id_is_that_batch() {
    let stack = TestStack::with(json!({"max_batch": 5})).await;
    let (_, ids) = stack.open(10, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    stack.pass(&[QueueName::Group]).await;
    let batches = stack.all_batches().await;
    assert_eq!(batches.len(), 2);
    let mut deliveries = Vec::new();
    for batch in &batches {
        for attempt in [1, 2, 1, 7, 1] {
            deliveries
                .push(message(deliveries.len(), &HandleMessage { attempt, ..HandleMessage::first(batch.id, false) }));
        }
    }
    assert!(hand(&stack, QueueName::Handle, deliveries).await.is_empty());
    assert_eq!(stack.api.seen().len(), 2, "one call per batch");
    assert_unharmed(&stack, &tasks, 0).await;
}
