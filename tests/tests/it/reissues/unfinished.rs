//! Items of which it cannot be said yet, or not any more, whether they may be called again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::control::Scope;
use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::{POLICY_CACHE_MAX, RETENTION};
use fanfold::messages::TaskRequest;
use fanfold::producing::ReissueRequest;
use fanfold::store::fanouts::FanoutState;
use fanfold::store::producers::{Partition, PartitionState};
use fanfold::tracking::{FanoutTask, ItemState, OpenRequest};
use fanfold_batch_api::{Answer, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, failed, order, policy};
use serde_json::json;
use uuid::Uuid;

use super::{called, contents, ended, name_of, orders, registrar, reissue, stack, try_reissue};

async fn partition(stack: &TestStack, fanout: Uuid) -> Partition {
    stack.producing.partitions(&stack.header(fanout).await).await.unwrap().remove(0)
}

/// A fan-out has ended, and the failure of its item 3 was acked by others while its task waits in a batch: it fails at the second
/// call. All others succeeded.
async fn waiting() -> (TestStack, Uuid) {
    let asked = Arc::new(AtomicUsize::new(0));
    let api = ScriptedApi::new(move |call| {
        let answer = |member: &fanfold_batch_api::CallMember| {
            let busy = name_of(member.content.get()) == "ORD-3";
            let answers = [MemberOutcome::Retry, MemberOutcome::Failed];
            let outcome = if busy { answers.get(asked.fetch_add(1, Ordering::Relaxed)) } else { None };
            let outcome = outcome.copied().unwrap_or(MemberOutcome::Succeeded);
            MemberAnswer { retry_after: Some(Duration::from_secs(300)), ..MemberAnswer::new(member.id, outcome) }
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    });
    let stack = TestStack::new(policy(json!({"linger": 0})), api, Crash::never()).await;
    let (old, ids) = stack.open(5, true).await;
    stack.register_items(&ids).await;
    stack.pass(&[QueueName::Group, QueueName::Handle, QueueName::Ack]).await;
    stack.ack(&failed(&ids[3..4])).await;
    assert_eq!(stack.header(old).await.state, FanoutState::Completed);
    (stack, old)
}

#[tokio::test(start_paused = true)]
async fn an_item_in_a_batch_that_has_not_ended_is_waited_for() {
    let (stack, old) = waiting().await;
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.deliver(QueueName::Produce).await;
    let at = partition(&stack, new).await;
    assert_eq!((at.state, at.tries, at.bad), (PartitionState::Running, 1, 0));
    assert!(at.error.unwrap().contains("is in a batch that has not ended"));
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total), (FanoutState::Completed, 1));
    assert_eq!(contents(&stack, new).await.into_keys().collect::<Vec<_>>(), ["ORD-3"]);
    assert_eq!(called(&stack, 0)["ORD-3"].len(), 3);
}

/// What was claimed has a batch that knows its outcome, for as long as its record is there.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_record_expired_is_no_failure() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let (old, ids) = ended(&stack, &[7]).await;
    let batch = stack.tasks.get(&TaskId::Item(ids[3])).await.unwrap().unwrap().batch.unwrap();
    stack.delete_record("BatchesTable", &batch.to_string()).await;
    let calls = stack.api.seen().len();
    broken.store(false, Ordering::Relaxed);
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let at = partition(&stack, new).await;
    assert_eq!((at.state, at.rows, at.bad), (PartitionState::Failed, 0, 0));
    let error = at.error.unwrap();
    assert!(error.contains(&ids[0].to_string()) && error.contains("record expired"), "{error}");
    assert_eq!(called(&stack, calls).len(), 0);
}

/// Each item of a fan-out that was opened with tasks, or has a producer, is a task. One that waited alone may be forgotten
/// before its fan-out is.
#[tokio::test(start_paused = true)]
async fn a_task_whose_record_expired_is_not_left_out() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let task = |number: usize| {
        let TaskRequest { kind, content, .. } = order(None, "117", number);
        FanoutTask { kind, content }
    };
    let request = OpenRequest { tasks: Some((0..7).map(task).collect()), ..OpenRequest::default() };
    let opened = stack.producing.open(&stack.tracking, request, Some("tasks")).await.unwrap().fanout;
    registrar(&stack).register_opened(std::slice::from_ref(&opened)).await.unwrap();
    stack.rest().await;
    let produced = reissue(&stack, opened.id, &ReissueRequest::default()).await;
    stack.rest().await;
    stack.clock.skip(RETENTION);
    broken.store(false, Ordering::Relaxed);
    for old in [opened.id, produced] {
        let header = stack.header(old).await;
        assert_eq!((header.state, header.failed), (FanoutState::Completed, 3));
        let failed = stack.tracking.items_in(&header, None, &[ItemState::Failed], 100).await.unwrap().items;
        stack.delete_record("TasksTable", &failed[2].to_string()).await;
        let calls = stack.api.seen().len();
        let again = ReissueRequest { again: true, ..ReissueRequest::default() };
        let new = try_reissue(&stack, old, &again, &format!("{old} again")).await.unwrap();
        stack.rest().await;
        let at = partition(&stack, new).await;
        assert_eq!((at.state, at.rows, at.bad), (PartitionState::Failed, 2, 0));
        let error = at.error.unwrap();
        assert!(error.contains(&failed[2].to_string()) && error.contains("record expired"), "{error}");
        assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders([0, 3]));
    }
}

/// The index does not show a group, perhaps for ever.
#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_found_holds_the_reissue_up() {
    let (stack, _) = stack(json!({}), Crash::never()).await;
    let (old, ids) = ended(&stack, &[7, 3, 3]).await;
    stack.delete_record("GroupsTable", &ids[7].group.to_string()).await;
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let at = partition(&stack, new).await;
    assert_eq!((at.state, at.rows), (PartitionState::Failed, 0));
    assert!(at.error.unwrap().contains("10 of 13 items"));
}

/// A task that waits in a paused lane is not called once its fan-out, which was cut short, is forgotten: its item was reissued.
#[tokio::test(start_paused = true)]
async fn a_task_of_a_forgotten_fanout_is_not_called() {
    for small in [true, false] {
        let (stack, broken) = stack(json!({"linger": 0}), Crash::never()).await;
        broken.store(false, Ordering::Relaxed);
        let kind = Scope::Kind("parcel".to_owned());
        let (old, ids) = stack.open(4, small).await;
        stack.register_items(&ids).await;
        stack.control.pause(&kind).await.unwrap();
        tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
        stack.tracking.cancel(old).await.unwrap();
        stack.rest().await;
        stack.minutes(20).await;
        let new = reissue(&stack, old, &ReissueRequest { missing: true, ..ReissueRequest::default() }).await;
        stack.rest().await;
        assert!(stack.api.seen().is_empty(), "the kind is paused");
        stack.delete_record("FanoutsTable", &old.to_string()).await;
        stack.control.resume(&kind).await.unwrap();
        stack.rest().await;
        let header = stack.header(new).await;
        assert_eq!((header.state, header.total), (FanoutState::Completed, 4));
        assert!(called(&stack, 0).values().all(|calls| calls.len() == 1), "{:?}", called(&stack, 0));
        assert_eq!(called(&stack, 0).into_keys().collect::<BTreeSet<_>>(), orders(0..4));
        dropped(&stack, &ids).await;
    }
}

/// The old tasks have their outcome, too.
async fn dropped(stack: &TestStack, ids: &[ItemId]) {
    for id in ids {
        let task = stack.tasks.get(&TaskId::Item(*id)).await.unwrap().unwrap();
        let batch = stack.batches.get(task.batch.unwrap()).await.unwrap().unwrap();
        assert!(batch.dropped.get(batch.members.slot(&task.id).unwrap()));
    }
    stack.assert_locks_free().await;
}
