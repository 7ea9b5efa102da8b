//! Job libraries and workflow services.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::messages::HandleMessage;
use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_register::Registration;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, order};
use serde_json::json;

use super::{done, settled, stack};

/// That of the policy's calls.
const TIMEOUT: Duration = Duration::from_secs(10);

fn every(call: &Call, outcome: MemberOutcome) -> Answer {
    Answer::Members(call.members.iter().map(|member| MemberAnswer::new(member.id, outcome)).collect())
}

/// sidekiq/sidekiq#6852, #2268, #4818: the last job ran twice; callbacks fired twice, counters went below zero.
#[tokio::test(start_paused = true)]
async fn the_last_item_done_twice_ends_the_fanout_once() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 3, "a").await;
    stack.seal(fanout).await;
    stack.ack.apply(&done(&ids[..2])).await.unwrap();
    for _ in 0..5 {
        stack.ack.apply(&done(&ids[2..])).await.unwrap();
    }
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    let header = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
    assert_eq!((header.total, header.open_groups, header.failed), (3, 0, 0));
}

/// celery/celery#2405, celery/django-celery-results#397, RichardKnop/machinery#30: the end was called while tasks were still
/// retried. bensheldon/good_job#1450: it was not called after a failed job was retried and succeeded.
#[tokio::test(start_paused = true)]
async fn the_end_is_reported_after_the_last_retry_and_not_before() {
    let stack = stack(|call| match call.attempt {
        1 => Err(CallError::again("503")),
        2 | 3 => Ok(every(call, MemberOutcome::Retry)),
        _ => Ok(every(call, MemberOutcome::Succeeded)),
    })
    .await;
    let (fanout, ids) = stack.open(4, true).await;
    stack.register_items(&ids).await;
    while stack.api.seen().last().is_none_or(|seen| seen.call.attempt < 4) {
        for queue in QueueName::STEPS {
            stack.deliver(queue).await;
        }
        if stack.api.seen().iter().all(|seen| seen.call.attempt < 4) {
            assert!(!stack.tracking.fanouts.get(fanout).await.unwrap().unwrap().complete());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stack.drain().await;
    let completions = stack.completions().await;
    assert_eq!((completions.len(), completions[0].succeeded, completions[0].failed), (1, 4, 0));
}

/// taskforcesh/bullmq#3362: a parent waits for ever after a child fails.
#[tokio::test(start_paused = true)]
async fn failures_end_a_fanout_like_successes() {
    let stack = stack(|call| Ok(every(call, MemberOutcome::Failed))).await;
    let (_, ids) = stack.open(3, true).await;
    stack.register_items(&ids).await;
    stack.drain().await;
    let completions = stack.completions().await;
    assert_eq!((completions.len(), completions[0].succeeded, completions[0].failed), (1, 0, 3));
}

/// triggerdotdev/trigger.dev#4397: a producer died while adding, before the seal. Another one does all of it again.
#[tokio::test(start_paused = true)]
async fn a_producer_that_died_while_adding_is_repeated_as_a_whole() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let produce = async |dies: bool| {
        let (fanout, _) = stack.open(0, false).await;
        let mut ids = stack.add(fanout, 2, "page 1").await;
        stack.register_items(&ids).await;
        if !dies {
            ids.extend(stack.add(fanout, 2, "page 2").await);
            stack.register_items(&ids).await;
            stack.seal(fanout).await;
        }
        stack.drain().await;
    };
    produce(true).await;
    assert_eq!(stack.completions().await.len(), 0, "it is not sealed");
    produce(false).await;
    let completions = stack.completions().await;
    assert_eq!((completions.len(), completions[0].total, completions[0].succeeded), (1, 4, 4));
    assert_eq!(stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 4, "each was handled once");
}

/// inngest/inngest#3675: a retried append did not schedule the batch.
#[tokio::test(start_paused = true)]
async fn a_repeated_registration_wakes_the_lane() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let tasks = || (0..3).map(|n| order(None, "117", n)).collect();
    let first = stack.register.register(tasks(), "request").await.unwrap();
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1, "the first hint is lost");
    let again = stack.register.register(tasks(), "request").await.unwrap();
    assert!(again.iter().all(|task| task.outcome == Registration::Known));
    stack.drain().await;
    let ids: Vec<TaskId> = first.iter().map(|task| task.id).collect();
    stack.assert_settled(&ids, 10).await;
    stack.register.register(tasks(), "request").await.unwrap();
    assert!(stack.take(QueueName::Elect).await.is_empty(), "what a batch has needs no leader");
}

/// inngest/inngest#2427: running a batch again replayed only its first event.
#[tokio::test(start_paused = true)]
async fn a_batch_tried_again_has_all_its_members() {
    let stack =
        stack(|call| if call.attempt < 3 { Err(CallError::again("503")) } else { Ok(Answer::AllSucceeded) }).await;
    let (_, ids) = stack.open(5, true).await;
    stack.register_items(&ids).await;
    stack.drain().await;
    let calls: BTreeSet<Vec<String>> = stack
        .api
        .seen()
        .iter()
        .map(|seen| seen.call.members.iter().map(|member| member.id.to_string()).collect())
        .collect();
    assert_eq!((stack.api.seen().len(), calls.len()), (3, 1));
    assert_eq!(calls.first().unwrap().len(), 5);
}

/// laravel/framework#39562, laravel/horizon#1512: a worker was killed, and the batch's end was never called.
#[tokio::test(start_paused = true)]
async fn a_killed_worker_keeps_no_end_from_being_reported() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (_, ids) = stack.open(3, true).await;
    stack.register_items(&ids).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stack.deliver(QueueName::Group).await;
    let message = stack.take(QueueName::Handle).await.remove(0);
    let message: HandleMessage = serde_json::from_str(&message.body).unwrap();
    assert!(
        stack.batches.begin(message.batch, message.attempt, TIMEOUT).await.unwrap().is_done(),
        "the worker begins, and is killed"
    );
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 0);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    settled(&stack, &ids).await;
}

/// oban-bg/oban#954: the process died while it wrote the callback. Here it dies after it delivered the notice and before it
/// noted so: the notice comes again under its id.
#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_reporting_the_end_is_followed_by_another() {
    for at in 1.. {
        let api = ScriptedApi::always_succeeds();
        let crash = Crash::new(at, Moment::After);
        let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]}});
        let stack = TestStack::new(policy, api, crash).await;
        let (_, ids) = stack.open(2, true).await;
        while stack.ack.apply(&done(&ids)).await.is_err() {
            stack.crash.revive();
        }
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(stack.completions().await.len(), 1, "died after request {at}");
        if stack.crash.struck().is_none() {
            assert!(at > 4, "opening, acking, sending and noting are requests");
            return;
        }
    }
}

/// oban-bg/oban#949: users add a sentinel job because nothing seals.
#[tokio::test(start_paused = true)]
async fn nothing_ends_before_it_is_sealed() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (fanout, mut ids) = stack.open(0, false).await;
    for page in 0..3 {
        ids.extend(stack.add(fanout, 2, &page.to_string()).await);
        stack.ack.apply(&done(&ids)).await.unwrap();
        stack.sweep().await;
        stack.drain().await;
        assert!(!stack.tracking.fanouts.get(fanout).await.unwrap().unwrap().complete(), "all {} are done", ids.len());
    }
    assert_eq!(stack.completions().await.len(), 0);
    stack.seal(fanout).await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
}
