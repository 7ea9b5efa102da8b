//! What happens between the calls of two parts: a worker dies, members are dropped, messages come again, the policy changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fanfold::delivery::Step;
use fanfold::ids::TaskId;
use fanfold::limits::LOST_ATTEMPTS_MAX;
use fanfold::messages::{HandleMessage, TaskRequest};
use fanfold::store::batches::Batch;
use fanfold::tracking::OpenRequest;
use fanfold_batch_api::{Answer, Call, CallError, Caller, Cause, MemberAnswer, MemberOutcome, RetryAfter};
use fanfold_handle::Handle;
use fanfold_register::Registration;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, message, order, policy};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Said, failures, orders, refused};

pub(super) const TIMEOUT: Duration = Duration::from_secs(45);

/// A stack with one batch of so many orders, not called yet. Its calls take so long that each has a message of its own.
pub(super) async fn formed(
    changes: Value,
    count: usize,
    script: impl Fn(&Call) -> Said + Send + Sync + 'static,
) -> (TestStack, Vec<TaskId>, Uuid) {
    let slow = policy(json!({"batch_api": {"command": ["truck"], "timeout": TIMEOUT.as_secs()}}));
    let api = ScriptedApi::slow(|_| Duration::from_secs(11), script);
    let stack = TestStack::new(fanfold_tests::changed(slow, changes), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..count).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0).id;
    (stack, tasks, batch)
}

/// A stack with one batch of two items of one fan-out and two of another, not called yet.
async fn of_two_fanouts(changes: Value, api: Arc<ScriptedApi>) -> (TestStack, Vec<TaskId>, Uuid) {
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let mut items = Vec::new();
    for key in ["one", "other"] {
        let request = OpenRequest { items: 2, seal: true, user_key: Some(key.to_owned()), ..OpenRequest::default() };
        items.extend(stack.open_as(&request, key).await.1);
    }
    let tasks = stack.register_items(&items).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0).id;
    (stack, tasks, batch)
}

pub(super) async fn get(stack: &TestStack, batch: Uuid) -> Batch {
    stack.batches.get(batch).await.unwrap().unwrap()
}

/// Hands over the message that a batch waits for.
pub(super) async fn call(stack: &TestStack, batch: Uuid) {
    let (message, _) = HandleMessage::awaited(&get(stack, batch).await).unwrap();
    stack.handle_message(message).await;
}

/// The same by a worker that makes no more than one call for a message.
pub(super) async fn call_once(stack: &TestStack, batch: Uuid) {
    let calls = Handle::from_environment(stack.surroundings(), Arc::clone(&stack.api) as Arc<dyn Caller>).unwrap();
    let (awaited, _) = HandleMessage::awaited(&get(stack, batch).await).unwrap();
    assert!(calls.call_by_call().deliver(vec![message("one", &awaited)]).await.is_empty());
}

/// So many workers in turn begin the next attempt of a batch, and die.
pub(super) async fn lose_workers(stack: &TestStack, batch: Uuid, workers: u32) {
    for _ in 0..workers {
        let now = get(stack, batch).await;
        let attempt = now.attempts + u32::from(now.lease_until.is_none());
        assert!(stack.batches.begin(batch, attempt, TIMEOUT).await.unwrap().is_done());
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
}

pub(super) async fn end(stack: &TestStack, tasks: &[TaskId]) -> Batch {
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(tasks, 10).await.remove(&tasks[0]).unwrap()
}

/// A worker that is lost while it calls one part says nothing about the members of another.
#[tokio::test(start_paused = true)]
async fn a_worker_lost_in_one_part_keeps_no_keys_of_another() {
    let (stack, tasks, batch) =
        formed(json!({"key": "content.order"}), 4, |call| refused(call, &[0, 1, 2, 3], 400)).await;
    call(&stack, batch).await;
    lose_workers(&stack, batch, 1).await;
    let batch = end(&stack, &tasks).await;
    assert_eq!(batch.failed.count(), 4);
    // The call of the first half was lost, and may have worked.
    let called = orders(&stack.api.seen()[1].call);
    assert_eq!(called.len(), 2);
    for bad in 0..4 {
        let again = TaskRequest { id: None, ..order(None, "117", bad) };
        let again = stack.register.register(vec![again], &format!("again-{bad}")).await.unwrap().remove(0).outcome;
        assert_eq!(again == Registration::Registered, !called.contains(&bad), "{bad}: {again:?}");
    }
}

/// What was lost with a part whose members are then dropped is not counted against the next one: its members have a clear answer,
/// and are split.
#[tokio::test(start_paused = true)]
async fn a_part_that_is_dropped_takes_its_losses_along() {
    let api = ScriptedApi::new(|_| Err(CallError::new(Cause::Status(400), "one is wrong")));
    let (stack, tasks, batch) = of_two_fanouts(json!({}), api).await;
    call_once(&stack, batch).await;
    let split = get(&stack, batch).await;
    let first = split.called();
    assert_eq!((first.len(), stack.api.seen().len()), (2, 1));
    lose_workers(&stack, batch, LOST_ATTEMPTS_MAX).await;
    let Some(TaskId::Item(item)) = split.members.ids().get(first[0]).copied() else { panic!("{split:?}") };
    stack.tracking.cancel(item.fanout).await.unwrap();
    let ended = end(&stack, &tasks).await;
    for slot in 0..4 {
        let is_first = first.contains(&slot);
        assert_eq!(
            [ended.dropped.get(slot), ended.silent.get(slot), ended.failed.get(slot)],
            [is_first, is_first, !is_first]
        );
        assert_eq!(ended.error(slot), (!is_first).then_some("one is wrong"), "{ended:?}");
    }
}

/// Only workers that are lost in a row fail members, and only those that they called.
#[tokio::test(start_paused = true)]
async fn lost_workers_are_counted_for_each_call() {
    let (stack, tasks, batch) = formed(json!({}), 4, |call| refused(call, &[0, 3], 400)).await;
    call(&stack, batch).await;
    for _ in 0..2 {
        lose_workers(&stack, batch, LOST_ATTEMPTS_MAX - 1).await;
        call(&stack, batch).await;
    }
    let ended = end(&stack, &tasks).await;
    assert_eq!(failures(&stack, &ended).await.into_keys().collect::<Vec<_>>(), [0, 3]);

    let (stack, tasks, batch) = formed(json!({}), 4, |call| refused(call, &[0], 400)).await;
    call(&stack, batch).await;
    lose_workers(&stack, batch, LOST_ATTEMPTS_MAX).await;
    let called = get(&stack, batch).await.called();
    let ended = end(&stack, &tasks).await;
    let lost = |slot: &usize| ended.error(*slot).is_some_and(|error| error.contains("workers were lost"));
    assert_eq!((0..4).filter(lost).collect::<Vec<_>>(), called);
}

/// After silence, a fault does not show that the first call did nothing: the same call is repeated, and nobody is called under
/// another key.
#[tokio::test(start_paused = true)]
async fn what_may_have_worked_is_not_split() {
    let script = |call: &Call| match call.attempt {
        1 => Err(CallError::new(Cause::Silence, "nothing")),
        _ => Err(CallError::new(Cause::Status(409), "it is at work")),
    };
    let (stack, tasks, _) = formed(json!({"max_attempts": 2, "key": "content.order"}), 4, script).await;
    let batch = end(&stack, &tasks).await;
    let seen = stack.api.seen();
    assert_eq!((seen.len(), batch.failed.count(), batch.silent.count()), (2, 4, 4));
    assert_eq!(seen[0].key, seen[1].key);
}

/// With a single attempt a fault that may pass is the end: it may have done a part of its work.
#[tokio::test(start_paused = true)]
async fn a_single_attempt_is_not_split_after_a_fault() {
    for cause in [Cause::Status(500), Cause::Exit] {
        let script = move |_: &Call| Err(CallError::new(cause, "it broke"));
        let (stack, tasks, _) = formed(json!({"max_attempts": 1}), 4, script).await;
        let batch = end(&stack, &tasks).await;
        assert_eq!((stack.api.seen().len(), batch.failed.count()), (1, 4));
    }
}

/// The members of a part are dropped before its call, and the next part waits: it is not called before its pause is over.
#[tokio::test(start_paused = true)]
async fn a_part_that_is_dropped_does_not_shorten_the_pause_of_another() {
    let script = |call: &Call| match call.attempt {
        1 => Err(CallError::new(Cause::Status(400), "one is wrong")),
        2 => all_again(call),
        _ => Ok(Answer::AllSucceeded),
    };
    let (stack, tasks, batch) =
        of_two_fanouts(json!({"backoff": {"base": 600, "max": 600}}), ScriptedApi::new(script)).await;
    for calls_made in 1..=2 {
        call_once(&stack, batch).await;
        assert_eq!(stack.api.seen().len(), calls_made, "each message is for one call");
    }
    let split = get(&stack, batch).await;
    let Some(TaskId::Item(next)) = split.members.ids().get(split.called()[0]).copied() else { panic!("{split:?}") };
    stack.tracking.cancel(next.fanout).await.unwrap();
    call(&stack, batch).await;
    let dropped = get(&stack, batch).await;
    assert_eq!((dropped.dropped.count(), dropped.attempts, stack.api.seen().len()), (2, 2, 2), "{dropped:?}");
    assert!(dropped.retry_at.is_some(), "the other part still waits");
    let ended = end(&stack, &tasks).await;
    let seen = stack.api.seen();
    assert_eq!((seen.len(), ended.succeeded.count(), ended.failed.count()), (3, 2, 0));
    assert!(seen[2].at - seen[1].at >= Duration::from_secs(300), "{:?}", seen[2].at - seen[1].at);
    let header = stack.header(next.fanout).await;
    assert_eq!((header.ended(), header.missing), (true, 2));
}

/// All members are to be tried again.
fn all_again(call: &Call) -> Said {
    let again = |id| MemberAnswer::new(id, MemberOutcome::Retry);
    Ok(Answer::Members(call.members.iter().map(|member| again(member.id)).collect()))
}

/// Messages that come again, or late, lead to no further call.
#[tokio::test(start_paused = true)]
async fn repeated_and_late_messages_call_no_part_again() {
    let (stack, tasks, batch) = formed(json!({"max_batch": 8}), 8, |call| refused(call, &[1, 6], 400)).await;
    let mut before = Vec::new();
    while let Some((message, _)) = HandleMessage::awaited(&get(&stack, batch).await) {
        if get(&stack, batch).await.unsettled().is_empty() {
            break;
        }
        stack.handle_message(message).await;
        before.push(message);
        let calls = stack.api.seen().len();
        for message in &before {
            stack.handle_message(*message).await;
        }
        assert_eq!(stack.api.seen().len(), calls);
    }
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let ended = end(&stack, &tasks).await;
    assert_eq!(failures(&stack, &ended).await.into_keys().collect::<Vec<_>>(), [1, 6]);
    let calls: BTreeMap<_, _> = stack.api.seen().iter().map(|seen| (seen.key.clone(), seen.at)).collect();
    assert_eq!((calls.len(), stack.api.seen().len()), (ended.attempts as usize, ended.attempts as usize));
}

/// A new version of the policy holds for the parts that are left: they stay as they are.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_leaves_the_parts_as_they_are() {
    let (stack, tasks, batch) = formed(json!({"max_batch": 8}), 8, |call| refused(call, &[1, 6], 400)).await;
    call(&stack, batch).await;
    let parts = get(&stack, batch).await.parts;
    let changes = json!({"max_batch": 2, "max_attempts": 1, "batch_api": {"command": ["truck"], "timeout": 60}});
    stack.put_policy(policy(changes)).await;
    assert_eq!(get(&stack, batch).await.parts, parts);
    let ended = end(&stack, &tasks).await;
    assert_eq!(failures(&stack, &ended).await.into_keys().collect::<Vec<_>>(), [1, 6]);
}

/// A part that is refused like every call is called again as it is, under the same key, and its attempt does not count.
#[tokio::test(start_paused = true)]
async fn a_part_that_must_wait_is_called_again_as_it_is() {
    let script = |call: &Call| match call.attempt {
        2 | 3 => Err(CallError::new(Cause::Status(429), "slowly")),
        _ => refused(call, &[1, 6], 400),
    };
    let (stack, tasks, _) = formed(json!({"max_batch": 8, "max_attempts": 1}), 8, script).await;
    let ended = end(&stack, &tasks).await;
    assert_eq!(failures(&stack, &ended).await.into_keys().collect::<Vec<_>>(), [1, 6]);
    let seen = stack.api.seen();
    assert!(seen[1].key == seen[2].key && seen[2].key == seen[3].key && seen[3].body == seen[1].body);
    assert_eq!(ended.refused, 2);
}

/// A `Retry-After` holds up the parts that are left, and a fault lets the halves wait for the policy's pause.
#[tokio::test(start_paused = true)]
async fn parts_wait_after_a_fault_and_as_long_as_they_are_asked_to() {
    let script = |call: &Call| match call.attempt {
        1 | 2 => Err(CallError::new(Cause::Status(500), "it broke")),
        3 => {
            let retry_after = Some(RetryAfter::Delay(Duration::from_secs(300)));
            Err(CallError { retry_after, ..CallError::for_good("one is wrong") })
        }
        _ => refused(call, &[1, 6], 400),
    };
    let pauses = json!({"max_batch": 8, "max_attempts": 2, "backoff": {"base": 100, "max": 100}});
    let (stack, tasks, _) = formed(pauses, 8, script).await;
    let ended = end(&stack, &tasks).await;
    assert_eq!(failures(&stack, &ended).await.into_keys().collect::<Vec<_>>(), [1, 6]);
    let seen = stack.api.seen();
    let members = |at: usize| seen[at].call.members.len();
    assert_eq!([members(0), members(1), members(2), members(3)], [8, 8, 4, 2]);
    assert!(seen[2].at - seen[1].at >= Duration::from_secs(50), "the halves wait");
    assert!(seen[3].at - seen[2].at >= Duration::from_secs(300), "all parts wait");
}
