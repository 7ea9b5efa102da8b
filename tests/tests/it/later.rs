//! Batch APIs that accept a call and answer later: outcomes are posted until the deadline, or asked for.

mod crashes;
mod polled;
mod races;

use std::sync::Arc;
use std::time::Duration;

use fanfold::control::Scope;
use fanfold::ids::TaskId;
use fanfold::metrics::{MEMBERS_FAILED, MEMBERS_SUCCEEDED};
use fanfold::results::Kept;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold_batch_api::{Accepted, Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_tests::{Counters, Crash, QueueName, ScriptedApi, TestStack, outcome, outcomes, policy};
use serde_json::{Value, json};

/// How long outcomes may come.
const WITHIN: Duration = Duration::from_secs(3_600);

fn changes(changes: Value) -> Value {
    let within = json!({"batch_api": {"url": "https://example.com/", "answers_within": "1h"}});
    policy(fanfold_tests::changed(within, changes))
}

/// A stack whose batch API answers every call later.
async fn stack(with: Value) -> TestStack {
    TestStack::new(changes(with), ScriptedApi::answers_later(), Crash::never()).await
}

/// Answers the first call later, and the others at once.
fn first_later() -> Arc<ScriptedApi> {
    ScriptedApi::new(|call: &Call| match call.attempt {
        1 => Ok(Answer::Later(Accepted::default())),
        _ => Ok(Answer::AllSucceeded),
    })
}

/// Registers orders whose batch is called, and open then.
async fn open(stack: &TestStack, orders: usize) -> (Vec<TaskId>, Batch) {
    stack.register_orders("117", 0..orders).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let batch = stack.only_batch().await;
    assert!(batch.later.is_some() && batch.lease_until.is_none() && batch.members.len() == orders, "{batch:?}");
    (batch.members.ids().to_vec(), batch)
}

#[tokio::test(start_paused = true)]
async fn outcomes_come_in_parts_and_end_the_batch() {
    let stack = stack(json!({"keep_results": true})).await;
    let (_, ids) = stack.open(4, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let batch = stack.only_batch().await;
    let (members, token) = (batch.members.ids().to_vec(), stack.last_token());
    let first = vec![
        json!({"id": members[2], "outcome": "succeeded", "result": {"label": 2}}),
        json!({"id": members[0], "outcome": "failed", "error": "too heavy", "code": "E1"}),
    ];
    let answer = stack.post(batch.id, &token, &first).await;
    assert_eq!(answer, json!({"recorded": 2, "ignored": 0, "open": 2}));
    assert_eq!(stack.post(batch.id, &token, &first).await, answer, "repeating it does no harm");
    stack.pass(&[QueueName::Ack]).await;
    let fanout = stack.header(ids[0].fanout).await;
    assert_eq!((fanout.failed, fanout.ended()), (1, false), "outcomes count as they come");
    let later: Vec<Value> = [1, 3].map(|n| json!({"id": members[n], "outcome": "succeeded", "result": n})).into();
    assert_eq!(stack.post(batch.id, &token, &later).await["open"], 0);
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.error(0), batch.code(0), batch.attempts), (Some("too heavy"), Some("E1"), 1));
    let mut reader = stack.batches.results(&batch, 0..4);
    for (slot, result) in [(1, "1"), (2, "{\"label\":2}"), (3, "3")] {
        assert_eq!(reader.of(slot).await.unwrap(), Some(Kept::Result(result.to_owned())));
    }
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed, stack.api.seen().len()), (1, 3, 1, 1));
    assert!(stack.world.now().since(batch.created_at) < WITHIN, "nothing waits for the deadline");
}

/// An alarm on failed members, and a run that stops at the first failures, must see those that are posted.
#[tokio::test(start_paused = true)]
async fn posted_outcomes_are_counted_once() {
    let counters = Counters::default();
    let _guard = metrics::set_default_local_recorder(&counters);
    let stack = stack(json!({})).await;
    let (members, batch) = open(&stack, 4).await;
    let token = stack.last_token();
    for _ in 0..2 {
        stack.post(batch.id, &token, &outcomes(&members[..1], "failed")).await;
        assert_eq!((counters.get(MEMBERS_FAILED), counters.get(MEMBERS_SUCCEEDED)), (1, 0));
    }
    stack.post(batch.id, &token, &outcomes(&members[1..], "succeeded")).await;
    stack.drain().await;
    assert_eq!((counters.get(MEMBERS_FAILED), counters.get(MEMBERS_SUCCEEDED)), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_to_be_tried_again_is_called_when_the_others_have_come() {
    let stack = TestStack::new(changes(json!({})), first_later(), Crash::never()).await;
    let (members, batch) = open(&stack, 3).await;
    let token = stack.last_token();
    let again = json!({"id": members[1], "outcome": "retry", "error": "busy", "retry_after": 40});
    assert_eq!(stack.post(batch.id, &token, &[again, outcome(members[0], "succeeded")]).await["open"], 2);
    stack.pass_time(Duration::from_secs(90)).await;
    assert_eq!(stack.api.seen().len(), 1, "the attempt is still open");
    stack.post(batch.id, &token, &outcomes(&members[2..], "succeeded")).await;
    let posted = tokio::time::Instant::now();
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
    let seen = stack.api.seen();
    let called: Vec<TaskId> = seen[1].call.members.iter().map(|member| member.id).collect();
    assert_eq!((seen.len(), called), (2, vec![members[1]]));
    assert!(seen[1].at >= posted && seen[1].at - posted < Duration::from_secs(10), "its time had passed");
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_members_without_an_outcome_are_called_again_and_fail_in_the_end() {
    let stack = stack(json!({"key": "content.order", "max_attempts": 2})).await;
    let (members, batch) = open(&stack, 3).await;
    stack.post(batch.id, &stack.last_token(), &outcomes(&members[..1], "succeeded")).await;
    stack.pass_time(WITHIN - Duration::from_secs(30)).await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.pass_time(Duration::from_secs(60)).await;
    let seen = stack.api.seen();
    let called: Vec<TaskId> = seen[1].call.members.iter().map(|member| member.id).collect();
    assert_eq!((seen.len(), called.as_slice()), (2, &members[1..]));
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!(batch.error(1), Some("gave up after 2 attempts: no outcome came within 1h"));
    assert_eq!(batch.silent.iter().collect::<Vec<_>>(), [1, 2], "they may have worked: their keys are not released");
}

#[tokio::test(start_paused = true)]
async fn a_batch_stays_in_flight_until_its_outcomes_have_come() {
    let stack = stack(json!({"max_batch": 1, "max_in_flight": 1})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass_time(Duration::from_secs(600)).await;
    let seen = stack.api.seen();
    assert_eq!(seen.len(), 1, "the second batch waits");
    assert_eq!(stack.places("parcel").await, 0, "no call is made meanwhile");
    stack.post(seen[0].call.batch_id, &stack.last_token(), &outcomes(&[seen[0].call.members[0].id], "succeeded")).await;
    stack.pass_time(Duration::from_secs(30)).await;
    let seen = stack.api.seen();
    assert_eq!(seen.len(), 2);
    stack.post(seen[1].call.batch_id, &stack.last_token(), &outcomes(&[seen[1].call.members[0].id], "succeeded")).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 1).await;
}

/// The deadline, the last outcome and the next attempt are found by the sweep if their messages are lost.
#[tokio::test(start_paused = true)]
async fn lost_messages_are_found_by_the_sweep() {
    let stack = stack(json!({"max_attempts": 2, "backoff": {"base": 1, "max": 1}})).await;
    let (members, batch) = open(&stack, 2).await;
    stack.take(QueueName::Handle).await;
    tokio::time::sleep(Duration::from_secs(901)).await;
    assert_eq!(stack.take(QueueName::Handle).await.len(), 1, "its message comes on the way, and is lost");
    stack.sweep().await;
    assert_eq!(stack.backlog().await, 0, "it is not due");
    tokio::time::sleep(WITHIN).await;
    stack.sweep().await;
    stack.pass_time(Duration::from_secs(30)).await;
    assert_eq!(stack.api.seen().len(), 2, "the deadline was found");
    let token = stack.last_token();
    tokio::time::sleep(Duration::from_secs(901)).await;
    stack.take(QueueName::Handle).await;
    stack.post(batch.id, &token, &outcomes(&members[..1], "succeeded")).await;
    stack.post(batch.id, &token, &outcomes(&members[1..], "failed")).await;
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
}

#[tokio::test(start_paused = true)]
async fn what_no_call_of_the_batch_says_is_refused_as_a_whole() {
    let stack = stack(json!({})).await;
    let (members, batch) = open(&stack, 2).await;
    let token = stack.last_token();
    let stranger = outcome(TaskId::Single(uuid::Uuid::from_u128(5)), "succeeded");
    for (token, members, status, code) in [
        ("", outcomes(&members, "succeeded"), 403, "wrong_token"),
        ("1.00000000000000000000000000000001", outcomes(&members, "succeeded"), 403, "wrong_token"),
        (&token.replace("1.", "2."), outcomes(&members, "succeeded"), 403, "wrong_token"),
        (&token, vec![outcome(members[0], "succeeded"), stranger], 422, "invalid_outcomes"),
        (&token, [outcomes(&members, "succeeded"), outcomes(&members, "failed")].concat(), 422, "invalid_outcomes"),
        (&token, outcomes(&members, "done"), 422, "invalid_body"),
    ] {
        let (got, answer) = stack.post_once(batch.id, token, &members).await;
        assert_eq!((got, &answer["code"]), (status, &json!(code)), "{answer}");
    }
    assert_eq!(stack.only_batch().await, batch, "nothing was recorded");
    let (status, answer) = stack.post_once(uuid::Uuid::nil(), &token, &outcomes(&members, "succeeded")).await;
    assert_eq!((status, &answer["code"]), (404, &json!("unknown_batch")));
    assert_eq!(stack.post(batch.id, &token, &[]).await, json!({"recorded": 0, "ignored": 0, "open": 2}));
}

/// Without the policy's leave a status 202 is an answer like any other, and there is no token.
#[tokio::test(start_paused = true)]
async fn without_a_time_for_it_there_is_no_token() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((stack.api.seen()[0].token.clone(), batch.secret), (None, None));
    let (status, _) = stack.post_once(batch.id, "1.", &outcomes(&tasks, "failed")).await;
    assert_eq!(status, 403);
}

/// A request that cannot be written for one member is sent for the others.
#[tokio::test(start_paused = true)]
async fn a_member_that_was_not_in_the_request_fails_at_once_and_the_others_are_awaited() {
    let api = ScriptedApi::new(|call: &Call| {
        let unsent = MemberAnswer::new(call.members[0].id, MemberOutcome::Failed);
        let unsent = MemberAnswer { error: Some("it has no weight".to_owned()), ..unsent };
        Ok(Answer::Later(Accepted { members: vec![unsent], ..Accepted::default() }))
    });
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let (members, batch) = open(&stack, 3).await;
    assert_eq!((batch.failed.count(), batch.error(0)), (1, Some("it has no weight")));
    stack.post(batch.id, &stack.last_token(), &outcomes(&members[1..], "succeeded")).await;
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), batch.attempts), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_parts_are_answered_later_is_called_part_by_part() {
    let poison = |call: &Call| call.members.iter().any(|member| member.content.get().contains("ORD-2\""));
    let api = ScriptedApi::new(move |call| match poison(call) && call.members.len() > 1 {
        true => Err(CallError::for_good("400: order 2")),
        false => Ok(Answer::Later(Accepted::default())),
    });
    let stack = TestStack::new(changes(json!({"max_batch": 8})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..8).await;
    let mut answered = 0;
    for _ in 0..20 {
        stack.pass_time(Duration::from_secs(20)).await;
        let Some(seen) =
            stack.api.seen().into_iter().rfind(|seen| !(poison(&seen.call) && seen.call.members.len() > 1))
        else {
            continue;
        };
        if stack.only_batch().await.later.is_none() {
            break;
        }
        let members: Vec<TaskId> = seen.call.members.iter().map(|member| member.id).collect();
        let said = if poison(&seen.call) { "failed" } else { "succeeded" };
        answered += members.len();
        for member in members {
            stack.post(seen.call.batch_id, seen.token.as_ref().unwrap(), &[outcome(member, said)]).await;
        }
    }
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 8).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), answered), (7, 1, 8), "{batch:?}");
}

#[tokio::test(start_paused = true)]
async fn outcomes_count_during_a_pause_and_without_a_policy() {
    let stack = stack(json!({})).await;
    let (members, batch) = open(&stack, 3).await;
    let token = stack.last_token();
    let scope = Scope::Kind("parcel".to_owned());
    stack.insist(async || stack.control.pause(&scope).await).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    stack.post(batch.id, &token, &outcomes(&members[..1], "succeeded")).await;
    stack.insist(async || stack.control.resume(&scope).await).await;
    stack.delete_policy("parcel").await;
    stack.post(batch.id, &token, &outcomes(&members[1..], "succeeded")).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(stack.only_batch().await.unsettled().is_empty());
    stack.put_policy(changes(json!({}))).await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&members, 10).await;
    assert_eq!(stack.only_batch().await.status, BatchStatus::Done);
}
