//! Workers that are lost while they call a part: what follows for its members, and nothing for those of other parts.

use fanfold_tests::outcomes;

use super::between::{TIMEOUT, call, call_once, end, formed, get, lose_workers};
use super::*;

/// Members of another part that are dropped with those that a lost worker called were not called.
#[tokio::test(start_paused = true)]
async fn of_those_that_are_dropped_only_who_was_called_may_have_worked() {
    let api = ScriptedApi::new(|_| Err(CallError::new(Cause::Status(400), "one is wrong")));
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let (fanout, items) = stack.open(4, true).await;
    let tasks = stack.register_items(&items).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.only_batch().await.id;
    call_once(&stack, batch).await;
    let called = get(&stack, batch).await.called();
    assert_eq!(called.len(), 2);
    lose_workers(&stack, batch, 1).await;
    stack.tracking.cancel(fanout).await.unwrap();
    let ended = end(&stack, &tasks).await;
    assert_eq!((ended.dropped.count(), ended.silent.iter().collect::<Vec<_>>()), (4, called));
}

/// A batch of four. A worker calls its first part when outcomes are posted for all of that. Returns the batch as the worker has it.
async fn posted() -> (TestStack, Vec<TaskId>, Batch) {
    let (stack, tasks, batch) = formed(json!({}), 4, |call| refused(call, &[0, 1, 2, 3], 400)).await;
    call(&stack, batch).await;
    let begun = stack.batches.begin_with_token(batch, 2, TIMEOUT).await.unwrap().done().unwrap();
    let first: Vec<TaskId> = begun.called().iter().map(|slot| begun.members.ids()[*slot]).collect();
    assert_eq!(first.len(), 2);
    stack.post(batch, &begun.token().unwrap(), &outcomes(&first, "succeeded")).await;
    (stack, tasks, begun)
}

/// The worker is lost. That is not counted against the next part: its members have a clear answer.
#[tokio::test(start_paused = true)]
async fn a_part_whose_outcomes_were_posted_takes_its_losses_along() {
    let (stack, tasks, _) = posted().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let ended = end(&stack, &tasks).await;
    assert_eq!((ended.succeeded.count(), ended.failed.count(), ended.silent.count()), (2, 2, 0));
}

/// The worker takes its attempt back, which therefore is not one that was lost. The next worker is.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_taken_back_after_a_post_is_not_lost() {
    let (stack, _, begun) = posted().await;
    stack.batches.take_back(&begun).await.unwrap();
    lose_workers(&stack, begun.id, 1).await;
    let next = stack.batches.begin(begun.id, 2, TIMEOUT).await.unwrap().done().unwrap();
    assert_eq!(next.lost_in_a_row(), 1);
}
