//! A member that spoils the calls of its batch: the batch is split until that member stands alone, and the others work.

mod between;
mod crashes;
mod lost;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fanfold::control::Scope;
use fanfold::ids::TaskId;
use fanfold::messages::TaskRequest;
use fanfold::store::batches::Batch;
use fanfold::tracking::ItemState;
use fanfold_batch_api::{Answer, Call, CallError, Cause, MemberAnswer, MemberOutcome};
use fanfold_register::Registration;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, Seen, TestStack, at_every_request, order, policy};
use serde_json::{Value, json};

type Said = Result<Answer, CallError>;

/// The numbers of the orders that a call is for.
fn orders(call: &Call) -> BTreeSet<usize> {
    let number = |content: &str| -> usize {
        let content: Value = serde_json::from_str(content).unwrap();
        content["order"].as_str().unwrap().trim_start_matches("ORD-").parse().unwrap()
    };
    call.members.iter().map(|member| number(member.content.get())).collect()
}

/// Refuses every call as a whole that has one of these orders.
fn refuses(poison: &[usize], status: u16) -> Arc<ScriptedApi> {
    let poison = poison.to_vec();
    ScriptedApi::new(move |call| refused(call, &poison, status))
}

fn refused(call: &Call, poison: &[usize], status: u16) -> Said {
    match orders(call).iter().find(|order| poison.contains(order)) {
        Some(order) => Err(CallError::new(Cause::Status(status), format!("{status}: order {order} is wrong"))),
        None => Ok(Answer::AllSucceeded),
    }
}

/// How often each order was called so that its call worked, and that no order was called after that.
fn worked(seen: &[Seen], poison: &[usize]) -> BTreeSet<usize> {
    let mut worked = BTreeSet::new();
    for call in seen.iter().map(|seen| orders(&seen.call)) {
        assert!(call.is_disjoint(&worked), "{call:?} after {worked:?}");
        if poison.iter().all(|order| !call.contains(order)) {
            worked.extend(call);
        }
    }
    worked
}

/// The error of each order of the only batch that failed.
async fn failures(stack: &TestStack, batch: &Batch) -> BTreeMap<usize, String> {
    let mut failures = BTreeMap::new();
    for slot in batch.failed.iter() {
        let id = batch.members.ids()[slot];
        let content = stack.tasks.contents(&[id]).await.unwrap().remove(&id).unwrap().json;
        let content: Value = serde_json::from_str(&content).unwrap();
        let number = content["order"].as_str().unwrap().trim_start_matches("ORD-").parse().unwrap();
        failures.insert(number, batch.error(slot).unwrap().to_owned());
    }
    failures
}

fn large(changes: Value) -> Value {
    fanfold_tests::changed(policy(json!({"max_batch": 100, "linger": 3})), changes)
}

#[tokio::test(start_paused = true)]
async fn one_bad_member_fails_alone_and_the_others_work() {
    for status in [400, 413, 422] {
        for bad in [0, 1, 31, 32, 63] {
            let stack = TestStack::new(large(json!({})), refuses(&[bad], status), Crash::never()).await;
            let tasks = stack.register_orders("117", 0..64).await;
            stack.drain().await;
            let batch = stack.assert_settled(&tasks, 100).await.remove(&tasks[0]).unwrap();
            let expected = BTreeMap::from([(bad, format!("{status}: order {bad} is wrong"))]);
            assert_eq!(failures(&stack, &batch).await, expected);
            let seen = stack.api.seen();
            assert_eq!(worked(&seen, &[bad]).len(), 63);
            assert!(seen.len() <= 1 + 2 * 6, "{} calls", seen.len());
            assert_eq!(batch.attempts as usize, seen.len());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_bad_members_fail_alone_and_their_fanout_counts_them() {
    let (bad, all) = ([3, 4, 17, 40], 50);
    let stack = TestStack::new(large(json!({})), refuses(&bad, 400), Crash::never()).await;
    let (_, ids) = stack.open(all, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "one message for the outcomes of all parts; it is lost");
    assert_eq!(stack.receive(QueueName::Handle).await.len(), 0);
    tokio::time::sleep(Duration::from_secs(300)).await;
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 100).await.remove(&tasks[0]).unwrap();
    assert_eq!(failures(&stack, &batch).await.into_keys().collect::<Vec<_>>(), bad);
    assert_eq!(worked(&stack.api.seen(), &bad).len(), 46);
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 46, 4));
}

/// A fault that may pass is first taken for one: the batch is split when its attempts are used up, halves are called once, and
/// for a member alone the attempts are counted again.
#[tokio::test(start_paused = true)]
async fn a_fault_splits_a_batch_when_its_attempts_are_used_up() {
    for cause in [Cause::Status(500), Cause::Exit] {
        let api = ScriptedApi::new(move |call| match orders(call).contains(&5) {
            true => Err(CallError::new(cause, "it broke")),
            false => Ok(Answer::AllSucceeded),
        });
        let stack = TestStack::new(policy(json!({"max_batch": 8, "max_attempts": 3})), api, Crash::never()).await;
        let tasks = stack.register_orders("117", 0..8).await;
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 8).await.remove(&tasks[0]).unwrap();
        let failed = failures(&stack, &batch).await;
        assert_eq!(failed, BTreeMap::from([(5, "gave up after 3 attempts: it broke".to_owned())]));
        let calls: Vec<BTreeSet<usize>> = stack.api.seen().iter().map(|seen| orders(&seen.call)).collect();
        let of = |orders: &[usize]| calls.iter().filter(|call| call.iter().eq(orders)).count();
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7]), 3, "{calls:?}");
        assert_eq!(of(&[5]), 3, "{calls:?}");
        let mut halves: Vec<_> = calls.iter().filter(|call| call.len() > 1 && call.len() < 8).collect();
        let before = halves.len();
        halves.sort();
        halves.dedup();
        assert_eq!(halves.len(), before, "halves are called once: {calls:?}");
    }
}

/// The key of a member that failed alone is free while other parts are still to be called, and each is released once more at
/// the end at most.
#[tokio::test(start_paused = true)]
async fn keys_of_bad_members_are_released_part_by_part() {
    let cost = async |bad: usize| {
        let poison: Vec<usize> = (0..bad).collect();
        let changes = large(json!({"key": "content.order"}));
        let stack = TestStack::new(changes, refuses(&poison, 400), Crash::never()).await;
        let tasks = stack.register_orders("117", 0..64).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        let before = stack.usage().write_units;
        stack.pass(&[QueueName::Handle]).await;
        let taken = (stack.usage().write_units - before) as usize / stack.api.seen().len();
        for bad in poison {
            let again = vec![order(None, "117", bad)];
            let again = stack.register.register(again, &format!("again {bad}")).await.unwrap();
            assert_eq!(again[0].outcome, Registration::Registered);
        }
        assert_eq!(tasks.len(), 64);
        taken
    };
    let (one, all) = (cost(1).await, cost(64).await);
    assert!(all <= one + 2, "write units per call: {one} with one bad member, {all} with 64");
}

/// Silence is no answer: the same bytes are sent again under the same key, and in the end all fail without one.
#[tokio::test(start_paused = true)]
async fn silence_splits_nothing() {
    for cause in [Cause::Silence, Cause::BadAnswer, Cause::Status(504)] {
        let api = ScriptedApi::new(move |_| Err(CallError::new(cause, "nothing")));
        let stack =
            TestStack::new(policy(json!({"max_attempts": 3, "key": "content.order"})), api, Crash::never()).await;
        let tasks = stack.register_orders("117", 0..4).await;
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
        let seen = stack.api.seen();
        assert_eq!((seen.len(), batch.failed.count(), batch.silent.count()), (3, 4, 4));
        assert!(seen.iter().all(|call| call.key == seen[0].key && call.body == seen[0].body));
        let again = TaskRequest { id: None, ..order(None, "117", 0) };
        let again = stack.register.register(vec![again], "again").await.unwrap().remove(0).outcome;
        assert_eq!(again, Registration::Duplicate { of: tasks[0] }, "its key is kept");
    }
}

/// A half that is not answered is repeated byte for byte; the others wait for it.
#[tokio::test(start_paused = true)]
async fn a_half_that_is_silent_is_repeated() {
    let api = ScriptedApi::new(|call| match call.attempt {
        2 | 3 => Err(CallError::new(Cause::Silence, "nothing")),
        _ => refused(call, &[2], 400),
    });
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..4).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!(failures(&stack, &batch).await.into_keys().collect::<Vec<_>>(), [2]);
    let seen = stack.api.seen();
    let members: Vec<usize> = seen.iter().map(|seen| seen.call.members.len()).collect();
    assert_eq!(members[..4], [4, 2, 2, 2]);
    assert!(seen[1].body == seen[2].body && seen[2].body == seen[3].body);
    assert!(seen[1].key == seen[2].key && seen[2].key == seen[3].key && seen[0].key != seen[1].key);
    assert!(seen[2].at - seen[1].at >= Duration::from_millis(500), "after a pause");
}

/// Statuses that concern every call split nothing: no member is to blame.
#[tokio::test(start_paused = true)]
async fn refusals_of_every_call_split_nothing() {
    for (status, calls) in [(401, 1), (404, 1), (429, 4), (503, 4)] {
        let stack = TestStack::new(policy(json!({"refusals": "fail"})), refuses(&[0], status), Crash::never()).await;
        let tasks = stack.register_orders("117", 0..4).await;
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
        assert_eq!((stack.api.seen().len(), batch.failed.count()), (calls, 4), "{status}");
    }
}

/// Members of a half that are to come again do so after the other parts, and their attempts are counted from the half on.
#[tokio::test(start_paused = true)]
async fn members_of_a_half_are_tried_again() {
    let api = ScriptedApi::new(|call| {
        refused(call, &[6], 422)?;
        let outcome = |id, again: bool| MemberAnswer {
            error: again.then(|| "busy".to_owned()),
            ..MemberAnswer::new(id, if again { MemberOutcome::Retry } else { MemberOutcome::Succeeded })
        };
        let numbers = call.members.iter().map(|member| (member.id, member.content.get().contains("ORD-1\"")));
        Ok(Answer::Members(numbers.map(|(id, busy)| outcome(id, busy && call.attempt < 6)).collect()))
    });
    let stack = TestStack::new(policy(json!({"max_batch": 8, "max_attempts": 3})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..8).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 8).await.remove(&tasks[0]).unwrap();
    assert_eq!(failures(&stack, &batch).await.into_keys().collect::<Vec<_>>(), [6]);
}

/// The parts follow each other in one invocation, for ten seconds. Then the message is sent again, so that others have their turn.
#[tokio::test(start_paused = true)]
async fn parts_follow_each_other_in_one_invocation() {
    let bad: Vec<usize> = (0..16).collect();
    for (takes, invocations) in [(0, 1), (5, 16), (40, 31)] {
        let poison = bad.clone();
        let api = ScriptedApi::slow(move |_| Duration::from_secs(takes), move |call| refused(call, &poison, 400));
        let changes = json!({"max_batch": 16, "batch_api": {"command": ["truck"], "timeout": 45}});
        let stack = TestStack::new(policy(changes), api, Crash::never()).await;
        let tasks = stack.register_orders("117", 0..16).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        let mut delivered = 0;
        while stack.backlog().await > 0 && delivered < 100 {
            delivered += stack.deliver(QueueName::Handle).await;
            stack.deliver(QueueName::Ack).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 16).await.remove(&tasks[0]).unwrap();
        assert_eq!((stack.api.seen().len(), batch.failed.count()), (31, 16));
        assert!(delivered >= invocations, "{takes}: {delivered}");
        assert!(takes > 0 || delivered == 1, "{delivered}");
    }
}

/// A pause holds a batch between its parts. What succeeded before is acked.
#[tokio::test(start_paused = true)]
async fn a_pause_holds_the_parts_that_are_left() {
    let api = ScriptedApi::slow(|_| Duration::from_secs(8), |call| refused(call, &[9], 400));
    let stack = Arc::new(TestStack::new(policy(json!({"max_batch": 10})), api, Crash::never()).await);
    let (_, ids) = stack.open(10, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let messages = stack.take(QueueName::Handle).await;
    let (of, scope) = (Arc::clone(&stack), Scope::Kind("parcel".to_owned()));
    let handling = tokio::spawn(async move { of.hand(QueueName::Handle, messages).await });
    tokio::time::sleep(Duration::from_secs(12)).await;
    stack.control.pause(&scope).await.unwrap();
    let paused_at = tokio::time::Instant::now();
    assert!(handling.await.unwrap().is_empty());
    assert!(stack.api.seen().iter().all(|seen| seen.at < paused_at + Duration::from_secs(7)));
    let calls = stack.api.seen().len();
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), calls);
    let batch = stack.all_batches().await.remove(0);
    assert!(!batch.succeeded.is_zero() && !batch.unsettled().is_empty());
    for slot in batch.succeeded.iter() {
        let TaskId::Item(item) = batch.members.ids()[slot] else { panic!("{batch:?}") };
        assert_eq!(stack.item(&item).await, ItemState::Succeeded);
    }
    stack.control.resume(&scope).await.unwrap();
    for _ in 0..5 {
        stack.minutes(1).await;
    }
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!(failures(&stack, &batch).await.into_keys().collect::<Vec<_>>(), [9]);
}

/// Each call of a part takes a time of the rate.
#[tokio::test(start_paused = true)]
async fn parts_are_called_no_faster_than_the_rate() {
    let changes = json!({"max_batch": 8, "kind_rate": {"calls": 1, "per": "second", "burst": 1}});
    let stack = TestStack::new(policy(changes), refuses(&[0, 7], 400), Crash::never()).await;
    let tasks = stack.register_orders("117", 0..8).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
    let seen = stack.api.seen();
    assert!(seen.len() > 6);
    for pair in seen.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(900), "{:?}", pair[1].at - pair[0].at);
    }
}

/// A batch whose calls work costs no more than it did: nothing of parts is written.
#[tokio::test(start_paused = true)]
async fn a_batch_that_works_has_no_parts() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..8).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    let records = stack.scan("BatchesTable").await;
    assert!(records.iter().all(|record| !record.contains_key("parts")), "{records:?}");
    assert_eq!(stack.api.seen().len(), 1);
}
