//! Posts, calls and deadlines that meet.

use std::sync::atomic::{AtomicBool, Ordering};

use fanfold::aws::Write;
use fanfold::bits::Bits;
use fanfold::messages::{HandleMessage, TaskRequest};
use fanfold::tracking::OpenRequest;
use fanfold_batch_api::Cause;
use fanfold_local::{Fate, Interceptor, ServiceRequest};
use fanfold_register::Registration;
use fanfold_tests::order;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use super::*;

/// A worker begins the first attempt of the batch that is to be called, and dies. Returns the batch's message, and the batch.
async fn lose_call(stack: &TestStack) -> (HandleMessage, Batch) {
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let message = stack.take(QueueName::Handle).await.remove(0);
    let message: HandleMessage = serde_json::from_str(&message.body).unwrap();
    let begun = stack.batches.begin_with_token(message.batch, 1, Duration::from_secs(10)).await.unwrap();
    (message, begun.done().unwrap())
}

#[tokio::test(start_paused = true)]
async fn two_posts_at_a_time_both_count() {
    let stack = stack(json!({"keep_results": true, "max_batch": 20})).await;
    let (members, batch) = open(&stack, 20).await;
    let token = stack.last_token();
    let posts = members.chunks(2).map(|chunk| {
        let entry = |id: &TaskId| json!({"id": id, "outcome": "succeeded", "result": id});
        let (stack, token, entries) = (&stack, &token, chunk.iter().map(entry).collect::<Vec<_>>());
        async move { stack.post(batch.id, token, &entries).await }
    });
    assert_eq!(join_all(posts).await.len(), 10);
    stack.drain().await;
    let batch = stack.assert_settled(&members, 20).await.remove(&members[0]).unwrap();
    let mut reader = stack.batches.results(&batch, 0..20);
    for (slot, id) in members.iter().enumerate() {
        assert_eq!(
            reader.of(slot).await.unwrap(),
            Some(Kept::Result(json!(id).to_string())),
            "of two with one slot first"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_come_before_the_answer_to_the_call_count() {
    let api = ScriptedApi::slow(|_| Duration::from_secs(5), |_| Ok(Answer::Later(Accepted::default())));
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let posted = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        let batch = stack.only_batch().await;
        assert!(batch.lease_until.is_some(), "its call is being made");
        let members = batch.members.ids().to_vec();
        stack.post(batch.id, &stack.last_token(), &outcomes(&members[..2], "succeeded")).await;
        (members, batch.id)
    };
    let ((members, batch), ()) = futures::join!(posted, async {
        stack.pass(&[QueueName::Handle]).await;
    });
    assert_eq!(stack.only_batch().await.succeeded.count(), 2, "the call's own write keeps them");
    stack.post(batch, &stack.last_token(), &outcomes(&members[2..], "succeeded")).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    assert_eq!(stack.api.seen().len(), 1);
}

/// The deadline and the last outcome: whichever comes first, the outcome counts, and nothing is stuck.
#[tokio::test(start_paused = true)]
async fn the_deadline_meets_the_last_outcome() {
    for early in [Duration::from_secs(2), Duration::from_millis(1), Duration::ZERO] {
        let stack = TestStack::new(changes(json!({})), first_later(), Crash::never()).await;
        let (members, batch) = open(&stack, 2).await;
        let token = stack.last_token();
        let left = batch.later.as_ref().unwrap().until.since(stack.world.now());
        tokio::time::sleep(left.saturating_sub(early)).await;
        let message = HandleMessage { batch: batch.id, attempt: 1, more: false };
        let posted = outcomes(&members, "succeeded");
        let (answer, ()) = futures::join!(stack.post(batch.id, &token, &posted), async {
            tokio::task::yield_now().await;
            stack.handle_message(message).await;
        });
        assert_eq!((&answer["recorded"], &answer["open"]), (&json!(2), &json!(0)));
        stack.sweep().await;
        stack.drain().await;
        let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
        assert_eq!((batch.succeeded.count(), batch.status), (2, BatchStatus::Done));
    }
}

/// A call that was taken for lost answers after all.
#[tokio::test(start_paused = true)]
async fn a_late_success_of_an_older_call_counts_and_its_retry_does_not() {
    let stack = stack(json!({})).await;
    let (members, batch) = open(&stack, 3).await;
    let old = stack.last_token();
    stack.pass_time(WITHIN + Duration::from_secs(60)).await;
    let new = stack.last_token();
    assert_eq!((stack.api.seen().len(), old == new), (2, false));
    let late = [outcome(members[0], "succeeded"), outcome(members[1], "retry"), outcome(members[2], "failed")];
    assert_eq!(stack.post(batch.id, &old, &late).await, json!({"recorded": 2, "ignored": 1, "open": 1}));
    assert!(stack.only_batch().await.again.is_zero());
    let answer = stack.post(batch.id, &new, &outcomes(&members, "succeeded")).await;
    assert_eq!(answer, json!({"recorded": 2, "ignored": 1, "open": 0}), "the first outcome of a member counts");
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), stack.api.seen().len()), (2, 1, 2));
    assert_eq!(stack.post(batch.id, &old, &late).await["open"], 0, "after the end it changes nothing");
    stack.drain().await;
    assert_eq!(stack.only_batch().await, batch);
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_last_outcome_comes_between_two_attempts_is_done_without_a_call() {
    let stack = stack(json!({"backoff": {"base": "10m", "max": "10m"}})).await;
    let (members, batch) = open(&stack, 2).await;
    let token = stack.last_token();
    stack.pass_time(WITHIN + Duration::from_secs(20)).await;
    assert!(stack.only_batch().await.retry_at.is_some());
    stack.post(batch.id, &token, &outcomes(&members, "succeeded")).await;
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
    assert_eq!(stack.api.seen().len(), 1);
}

/// A worker is lost after the batch API took the call: the repeated call is the same, and what was said of the first one counts.
#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_lost_call_counts_for_the_call_that_repeats_it() {
    let stack = stack(json!({})).await;
    stack.register_orders("117", 0..2).await;
    let (message, lost) = lose_call(&stack).await;
    let (token, members) = (lost.token().unwrap(), lost.members.ids().to_vec());
    // The other one does not wait for a pause that is over with the outcome.
    let busy = json!({"id": members[0], "outcome": "retry", "retry_after": 86_400});
    for said in [busy, outcome(members[0], "succeeded")] {
        stack.post(lost.id, &token, &[said]).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    stack.handle_message(message).await;
    let batch = stack.only_batch().await;
    assert_eq!((batch.attempts, batch.later.is_some(), batch.attempt_of(&token)), (2, true, Some(1)));
    let called: Vec<TaskId> = stack.api.seen()[0].call.members.iter().map(|member| member.id).collect();
    assert_eq!(called, members[1..], "the one that succeeded is not called again");
    let answer = stack.post(batch.id, &token, &outcomes(&members[1..], "retry")).await;
    assert_eq!(answer, json!({"recorded": 1, "ignored": 0, "open": 1}));
    stack.pass_time(Duration::from_secs(20)).await;
    assert_eq!(stack.api.seen().len(), 2, "it is called again");
    stack.post(batch.id, &stack.last_token(), &outcomes(&members[1..], "succeeded")).await;
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
}

/// The lease of a lost call is over before the pause that was posted for its members.
#[tokio::test(start_paused = true)]
async fn a_posted_pause_holds_although_the_worker_is_lost() {
    let stack = stack(json!({})).await;
    stack.register_orders("117", 0..2).await;
    let (message, lost) = lose_call(&stack).await;
    let busy = json!({"id": lost.members.ids()[0], "outcome": "retry", "retry_after": 600});
    stack.post(lost.id, &lost.token().unwrap(), &[busy]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    stack.handle_message(message).await;
    assert!(stack.api.seen().is_empty());
    stack.pass_time(Duration::from_secs(600)).await;
    assert_eq!(stack.api.seen().len(), 1);
}

/// Holds up the first write that depends on which members are dropped.
#[derive(Debug, Default)]
struct HeldUp(AtomicBool);

impl Interceptor for HeldUp {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            let drops = call.operation == "UpdateItem" && String::from_utf8_lossy(&call.body).contains("dropped");
            if drops && !self.0.swap(true, Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Fate::Pass
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_comes_while_others_are_dropped_counts_and_the_rest_is_called() {
    let crash = Crash::meeting(Arc::new(HeldUp::default()));
    let stack = TestStack::new(changes(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let request = |items| OpenRequest { items, seal: true, ..OpenRequest::default() };
    let (cancelled, gone) = stack.open_as(&request(1), "gone").await;
    let (_, kept) = stack.open_as(&request(2), "kept").await;
    let tasks = stack.register_items(&[gone, kept].concat()).await;
    let (message, lost) = lose_call(&stack).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    stack.tracking.cancel(cancelled).await.unwrap();
    let posted = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stack.post(lost.id, &lost.token().unwrap(), &outcomes(&tasks[1..2], "succeeded")).await
    };
    futures::join!(stack.handle_message(message), posted);
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.attempts, batch.succeeded.count(), batch.dropped.count()), (2, 2, 1));
    let called: Vec<TaskId> = stack.api.seen()[0].call.members.iter().map(|member| member.id).collect();
    assert_eq!(called, tasks[2..]);
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_twice_or_late_change_nothing() {
    let stack = stack(json!({})).await;
    let (members, batch) = open(&stack, 2).await;
    let token = stack.last_token();
    for attempt in [1, 1, 2, 3] {
        stack.handle_message(HandleMessage { batch: batch.id, attempt, more: false }).await;
    }
    assert_eq!((stack.only_batch().await, stack.api.seen().len()), (batch.clone(), 1));
    stack.post(batch.id, &token, &outcomes(&members, "succeeded")).await;
    for attempt in [1, 2] {
        stack.handle_message(HandleMessage { batch: batch.id, attempt, more: false }).await;
    }
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
}

/// The call that was lost may have worked, whatever is posted for the one that repeats it.
#[tokio::test(start_paused = true)]
async fn a_key_is_kept_although_a_retry_was_posted_after_a_lost_call() {
    let answers = std::sync::atomic::AtomicU32::new(0);
    let api = ScriptedApi::new(move |_| match answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => Ok(Answer::Later(Accepted::default())),
        _ => Err(CallError::new(Cause::Status(400), "wrong")),
    });
    let with = json!({
        "key": "content.order", "batch_api": {"url": "https://example.com/", "answers_within": "1h"},
    });
    let stack = TestStack::new(changes(with), api, Crash::never()).await;
    let members = stack.register_orders("117", 0..1).await;
    let (message, _) = lose_call(&stack).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    stack.handle_message(message).await;
    stack.post(message.batch, &stack.last_token(), &outcomes(&members, "retry")).await;
    stack.pass_time(Duration::from_secs(20)).await;
    stack.drain().await;
    let batch = stack.only_batch().await;
    assert_eq!((stack.api.seen().len(), batch.failed.count(), batch.silent.count()), (2, 1, 1));
    let again = TaskRequest { id: None, ..order(None, "117", 0) };
    let again = stack.register.register(vec![again], "again").await.unwrap().remove(0).outcome;
    assert!(matches!(again, Registration::Duplicate { .. }), "{again:?}");
}

/// Whoever repeats a post does what its first worker left undone.
#[tokio::test(start_paused = true)]
async fn a_repeated_post_releases_the_key_of_a_failure_that_was_recorded_before() {
    let stack = stack(json!({"key": "content.order"})).await;
    let (members, batch) = open(&stack, 2).await;
    let failed = outcomes(&members[..1], "failed");
    // Its worker dies when it has recorded the outcome.
    let after = Batch { failed: Bits::from_iter([0]), ..batch.clone() };
    assert!(matches!(stack.batches.note(&batch, after, Vec::new()).await.unwrap(), Write::Done(_)));
    let slot = batch.members.slot(&members[0]).unwrap();
    assert_eq!(slot, 0);
    stack.post(batch.id, &stack.last_token(), &failed).await;
    let again = TaskRequest { id: None, ..order(None, "117", 0) };
    let again = stack.register.register(vec![again], "again").await.unwrap().remove(0).outcome;
    assert_eq!(again, Registration::Registered);
}
