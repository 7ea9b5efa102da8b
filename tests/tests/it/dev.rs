//! Dev sessions: while the lease of one holds, calls of its kind go to its queue; what it leaves is called as ever.

mod crashes;

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::{DEV_LEASE, POLICY_CACHE_MAX};
use fanfold::store::batches::Batch;
use fanfold_handle::Handle;
use fanfold_tests::{Crash, DEV_WITHIN, QueueName, ScriptedApi, TestStack, order, outcome, outcomes, policy};
use serde_json::{Value, json};

/// A kind whose batches are called once, so that an attempt that counts fails them.
async fn once(with: Value) -> TestStack {
    let once = json!({"max_attempts": 1, "batch_api": {"url": "https://example.com/"}});
    TestStack::new(policy(fanfold_tests::changed(once, with)), ScriptedApi::always_succeeds(), Crash::never()).await
}

/// Registers orders whose batch is sent to a session.
async fn sent(stack: &TestStack, orders: usize) -> (Vec<TaskId>, Batch) {
    stack.take_dev("anna").await.unwrap();
    stack.register_orders("117", 0..orders).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let batch = stack.only_batch().await;
    assert!(batch.later.is_some() && batch.dev_session.is_some() && batch.members.len() == orders, "{batch:?}");
    (batch.members.ids().to_vec(), batch)
}

fn numbers(stack: &TestStack) -> (usize, usize) {
    let (dev, own) = stack.seen_by_dev();
    (dev.len(), own.len())
}

#[tokio::test(start_paused = true)]
async fn a_session_has_the_calls_and_its_outcomes_count() {
    let stack = once(json!({"keep_results": true})).await;
    let (members, batch) = sent(&stack, 3).await;
    let (dev, own) = stack.seen_by_dev();
    assert_eq!((dev.len(), own.len()), (1, 0));
    let called: Vec<TaskId> = dev[0].call.members.iter().map(|member| member.id).collect();
    assert_eq!((called, stack.places("parcel").await), (members.clone(), 0));
    let posted = [
        json!({"id": members[0], "outcome": "succeeded", "result": 7}),
        json!({"id": members[1], "outcome": "failed", "error": "too heavy"}),
        outcome(members[2], "succeeded"),
    ];
    assert_eq!(stack.post(batch.id, &stack.last_token(), &posted).await["open"], 0);
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.error(1), numbers(&stack)), (Some("too heavy"), (1, 0)));
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_session_had_is_called_again_and_it_was_no_attempt() {
    let stack = once(json!({})).await;
    let (members, _) = sent(&stack, 3).await;
    stack.pass_time(DEV_WITHIN - Duration::from_secs(10)).await;
    assert_eq!(numbers(&stack), (1, 0), "its outcomes may still come");
    stack.pass_time(Duration::from_secs(30)).await;
    assert_eq!(numbers(&stack), (1, 1));
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.refused, batch.dev_session), (3, 1, None));
    assert!(batch.silent.is_zero(), "its own batch API was not called before");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_handed_back_at_once_and_it_was_no_attempt() {
    let stack = once(json!({})).await;
    let (members, batch) = sent(&stack, 3).await;
    let token = stack.last_token();
    stack.give_back_dev("anna").await.unwrap();
    stack.post(batch.id, &token, &outcomes(&members[..1], "succeeded")).await;
    stack.post(batch.id, &token, &outcomes(&members[1..], "retry")).await;
    stack.pass_time(Duration::from_secs(10)).await;
    let (dev, own) = stack.seen_by_dev();
    let called: Vec<TaskId> = own[0].call.members.iter().map(|member| member.id).collect();
    assert_eq!((dev.len(), own.len(), called.as_slice()), (1, 1, &members[1..]));
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_a_session_that_goes_on_use_up_attempts() {
    let stack = once(json!({"max_attempts": 2})).await;
    let (members, batch) = sent(&stack, 2).await;
    for _ in 0..2 {
        stack.take_dev("anna").await.unwrap();
        let retry: Vec<Value> =
            members.iter().map(|id| json!({"id": id, "outcome": "retry", "error": "a bug"})).collect();
        stack.post(batch.id, &stack.last_token(), &retry).await;
        stack.pass_time(Duration::from_secs(10)).await;
    }
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.error(0), numbers(&stack)), (Some("gave up after 2 attempts: a bug"), (2, 0)));
}

/// A call that began with the session is posted when the batch is called by the stack again: the first outcome counts, and a
/// `retry` of then says nothing any more.
#[tokio::test(start_paused = true)]
async fn late_outcomes_of_a_session_count_by_the_rules_of_all() {
    let later = json!({"max_attempts": 1, "batch_api": {"url": "https://example.com/", "answers_within": "1h"}});
    let stack = TestStack::new(policy(later), ScriptedApi::answers_later(), Crash::never()).await;
    let (members, batch) = sent(&stack, 3).await;
    let old = stack.last_token();
    stack.pass_time(DEV_WITHIN + Duration::from_secs(20)).await;
    assert_eq!(numbers(&stack), (1, 1));
    let token = stack.last_token();
    assert_eq!(stack.post(batch.id, &old, &outcomes(&members[1..], "retry")).await["ignored"], 2);
    assert_eq!(stack.post(batch.id, &old, &outcomes(&members[..1], "succeeded")).await["recorded"], 1);
    let answer = stack.post(batch.id, &token, &outcomes(&members, "failed")).await;
    assert_eq!((&answer["recorded"], &answer["ignored"], &answer["open"]), (&json!(2), &json!(1), &json!(0)));
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), numbers(&stack)), (1, 2, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn calls_move_within_seconds_and_come_back_at_once() {
    let stack = once(json!({"max_batch": 1})).await;
    let register = async |n| {
        stack.register_orders("117", n..n + 1).await;
        stack.pass_time(Duration::from_secs(3)).await;
    };
    register(0).await;
    assert_eq!(numbers(&stack), (0, 1));
    stack.take_dev("anna").await.unwrap();
    tokio::time::sleep(POLICY_CACHE_MAX).await;
    register(1).await;
    assert_eq!(numbers(&stack), (1, 1));
    stack.give_back_dev("anna").await.unwrap();
    register(2).await;
    assert_eq!(numbers(&stack), (1, 2), "what was known of the lease is read again");
    stack.take_dev("anna").await.unwrap();
    tokio::time::sleep(DEV_LEASE).await;
    register(3).await;
    assert_eq!(numbers(&stack), (1, 3), "it has passed");
}

/// The queue of a session that has ended may be gone while its lease holds. That says nothing of the kind's own batch API.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_gone_stops_no_kind_and_uses_up_no_attempt() {
    let stack = once(json!({"max_batch": 1, "max_in_flight": 9})).await;
    stack.take_dev("gone").await.unwrap();
    let tasks = stack.register_orders("117", 0..8).await;
    stack.pass_time(Duration::from_secs(30)).await;
    let (dev, own) = stack.seen_by_dev();
    assert!(dev.len() > 8 && own.is_empty(), "{} {}", dev.len(), own.len());
    stack.pass_time(DEV_LEASE).await;
    stack.drain().await;
    let settled = stack.assert_settled(&tasks, 1).await;
    assert!(settled.values().all(|batch| batch.succeeded.count() == 1), "{settled:?}");
    let gate = stack.gates.get("parcel").await.unwrap();
    assert!(gate.as_ref().is_none_or(|gate| gate.stopped.is_none() && gate.places.is_empty()), "{gate:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_a_session_is_called_as_ever() {
    let stack = once(json!({})).await;
    stack.take_dev("anna").await.unwrap();
    let large = |n: usize| {
        let noise: String =
            (0..120_000_u32).map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761) >> 27) as u8 % 26)).collect();
        let mut order = order(None, "117", n);
        order.content = json!({"depot": "117", "noise": noise});
        order
    };
    stack.register((0..9).map(large).collect()).await;
    stack.drain().await;
    let members: Vec<usize> = stack.api.seen().iter().map(|seen| seen.call.members.len()).collect();
    assert_eq!((members.iter().sum::<usize>(), numbers(&stack).1 > 0), (9, true), "{members:?}");
    for seen in stack.seen_by_dev().0 {
        assert!(seen.body.len() < 1_024 * 1_024, "{}", seen.body.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_allows_no_sessions_calls_none() {
    let stack = once(json!({})).await;
    stack.take_dev("anna").await.unwrap();
    let allowed = stack.surroundings().clone();
    let without = fanfold::config::Surroundings::new(
        allowed.dynamodb.clone(),
        allowed.sqs.clone(),
        allowed.world.clone(),
        move |name| allowed.named(name).filter(|_| name != "DEV_QUEUES"),
    );
    let api = std::sync::Arc::clone(&stack.api);
    let mut stack = stack;
    stack.handle = std::sync::Arc::new(Handle::from_environment(&without, api).unwrap());
    stack.register_orders("117", 0..2).await;
    stack.drain().await;
    assert_eq!(numbers(&stack), (0, 1));
}
