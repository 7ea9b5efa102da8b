//! Calls of batch APIs at once: in all, of one kind, and after a kill.

use std::sync::Arc;
use std::time::Duration;

use fanfold::aws::Write;
use fanfold::ids::TaskId;
use fanfold::limits::{ATTEMPT_MARGIN, CALL_WITHIN, DEAD_PLACES_MAX, PLACES_PER_RECORD};
use fanfold::messages::TaskRequest;
use fanfold::store::gates::Denied;
use fanfold::store::places::{Party, Place};
use fanfold_batch_api::{Answer, Call};
use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, changed, order, until};
use serde_json::{Value, json};
use uuid::Uuid;

/// `BatchApiConcurrency` in template.yaml.
const CONCURRENCY: usize = 20;

/// What one kind may hold of them.
const SHARE: usize = 15;

const TIMEOUT: Duration = Duration::from_secs(10);

const DEAD: SweepRequest = SweepRequest { min_age: Duration::ZERO, workers_dead: true };

fn policy(changes: Value) -> Value {
    let policy =
        fanfold_tests::policy(json!({"max_in_flight": 2, "batch_api": {"command": ["truck"], "timeout": "10s"}}));
    changed(policy, changes)
}

/// Registers tasks of a kind, each for a target of its own, so that each is a batch.
async fn register(stack: &TestStack, kind: &str, tasks: usize) {
    let task = |n| TaskRequest { kind: kind.to_owned(), ..order(None, &format!("D{n}"), n) };
    stack.register.register((0..tasks).map(task).collect(), kind).await.unwrap();
}

fn slow(takes: Duration) -> Arc<ScriptedApi> {
    ScriptedApi::slow(move |_| takes, |_| Ok(Answer::AllSucceeded))
}

/// Elects, groups: two batches of one lane are formed.
async fn formed(stack: &TestStack) -> Vec<TaskId> {
    let tasks = (0..20).map(|n| order(None, "117", n)).collect();
    let tasks = stack.register.register(tasks, "a").await.unwrap().into_iter().map(|task| task.id).collect();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
    }
    tasks
}

/// Begins all calls that are due, and dies over them after a second.
async fn killed(stack: &TestStack) {
    let messages = stack.take(QueueName::Handle).await;
    let calls = messages.into_iter().map(|message| stack.hand(QueueName::Handle, vec![message]));
    let calls = futures::future::join_all(calls);
    assert!(tokio::time::timeout(Duration::from_secs(1), calls).await.is_err(), "the calls still work");
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_are_as_many_as_the_template_says() {
    for per_record in [PLACES_PER_RECORD, 4] {
        are_as_many(per_record).await;
    }
}

async fn are_as_many(per_record: u32) {
    let api = slow(Duration::from_secs(3));
    let stack = TestStack::with_places_per_record(policy(json!({})), api.clone(), Crash::never(), per_record).await;
    stack.put_policy(policy(json!({"kind": "letter"}))).await;
    let pumps = stack.pumps();
    register(&stack, "parcel", 100).await;
    register(&stack, "letter", 100).await;
    until(async || stack.backlog().await == 0 && api.seen().len() == 200).await;
    for pump in pumps {
        pump.stop().await;
    }
    let share = |kind: &'static str| api.most_at_once(move |call: &Call| call.kind == kind);
    assert!(share("parcel") <= SHARE && share("letter") <= SHARE);
    assert!(share("parcel") + share("letter") >= CONCURRENCY);
    assert_eq!(api.most_at_once(|_| true), CONCURRENCY);
    stack.assert_locks_free().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_hangs_leaves_the_rest_to_others() {
    let takes = |call: &Call| Duration::from_secs(if call.kind == "parcel" { 60 } else { 1 });
    let api = ScriptedApi::slow(takes, |_| Ok(Answer::AllSucceeded));
    let hanging = json!({"batch_api": {"command": ["truck"], "timeout": "60s"}});
    let stack = TestStack::new(policy(hanging), api.clone(), Crash::never()).await;
    stack.put_policy(policy(json!({"kind": "letter"}))).await;
    let pumps = stack.pumps();
    register(&stack, "parcel", 300).await;
    until(async || api.seen().len() == SHARE).await;
    register(&stack, "letter", 30).await;
    let called = || api.seen().into_iter().filter(|seen| seen.call.kind == "letter").count();
    until(async || called() == 30).await;
    assert_eq!(api.seen().len(), 30 + SHARE, "not one of the parcels that hang has ended by then");
    drop(pumps);
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_a_call_begins_again_when_its_timeout_is_over_and_not_before() {
    for per_record in [PLACES_PER_RECORD, 1] {
        begins_again(per_record).await;
    }
}

async fn begins_again(per_record: u32) {
    let api = slow(Duration::from_secs(8));
    let stack = TestStack::with_places_per_record(policy(json!({})), api.clone(), Crash::never(), per_record).await;
    let tasks = formed(&stack).await;
    killed(&stack).await;
    assert_eq!((api.seen().len(), stack.places("parcel").await), (2, 2));
    stack.sweeper.sweep(DEAD).await.unwrap();
    assert_eq!(stack.places("parcel").await, 2, "the calls still work");
    stack.drain().await;
    let seen = api.seen();
    assert_eq!(seen.len(), 4);
    for again in &seen[2..] {
        let first = seen[..2].iter().find(|seen| seen.key == again.key).unwrap();
        assert!(again.at >= first.at + TIMEOUT);
    }
    let lease = TIMEOUT + CALL_WITHIN + Duration::from_secs(3);
    assert!(seen[2].at <= seen[0].at + lease, "its lease of 40 s was shortened");
    assert_eq!(api.most_at_once(|_| true), 2);
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn two_restarts_within_one_call_shorten_its_lease_once() {
    let stack = TestStack::new(policy(json!({})), slow(Duration::from_secs(8)), Crash::never()).await;
    formed(&stack).await;
    let lease = async || stack.all_batches().await[0].lease_until.unwrap();
    killed(&stack).await;
    let written = lease().await;
    stack.sweeper.sweep(DEAD).await.unwrap();
    let shortened = lease().await;
    assert!(shortened < written && shortened > stack.world.now().plus(TIMEOUT - Duration::from_secs(2)));
    stack.sweeper.sweep(DEAD).await.unwrap();
    assert_eq!((lease().await, stack.places("parcel").await), (shortened, 2));
}

/// The deployed sweep ends no lease, and does not take a place from a call.
#[tokio::test(start_paused = true)]
async fn a_sweep_leaves_leases_and_places_alone() {
    let stack = TestStack::new(policy(json!({})), slow(Duration::from_secs(8)), Crash::never()).await;
    formed(&stack).await;
    killed(&stack).await;
    let leases = async || stack.all_batches().await.into_iter().map(|batch| batch.lease_until).collect::<Vec<_>>();
    let before = leases().await;
    stack.sweeper.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: false }).await.unwrap();
    assert_eq!((leases().await, stack.places("parcel").await), (before, 2));
}

#[tokio::test(start_paused = true)]
async fn places_of_the_dead_are_taken_when_their_leases_end() {
    let api = ScriptedApi::always_succeeds();
    let stack = TestStack::with_places_per_record(policy(json!({})), api, Crash::never(), 100).await;
    let place = |n: usize| Place {
        record: 0,
        party: Party::Kind("parcel".to_owned()),
        holder: Uuid::from_u128(n as u128),
        until: stack.world.now().plus(TIMEOUT),
    };
    let dead = DEAD_PLACES_MAX + 8;
    for n in 0..dead {
        assert!(stack.gates.take(&place(n), dead as u32, stack.world.now()).await.unwrap().is_done());
    }
    let late = place(dead);
    let taken = stack.gates.take(&late, dead as u32, stack.world.now()).await.unwrap();
    let Write::Refused(Denied::Full(held)) = taken else { panic!("all are taken") };
    assert_eq!(held.len(), dead);
    tokio::time::sleep(TIMEOUT * 2).await;
    let now = stack.world.now();
    // Of few places all are to be cleared before there is room.
    let late = Place { until: now.plus(TIMEOUT), ..late };
    assert!(stack.gates.take(&late, 1, now).await.unwrap().is_done());
    assert!(stack.gates.take(&late, 1, now).await.unwrap().is_done(), "it is one's own");
    assert!(stack.gates.take(&place(0), 1, now).await.unwrap().done().is_none());
    stack.gates.release(&late).await.unwrap();
    stack.gates.release(&late).await.unwrap();
    assert!(stack.gates.take(&place(0), 1, now).await.unwrap().is_done());
}

/// Others count on it that a call has ended when its lease ends, and after a restart already `timeout` after its beginning.
#[tokio::test(start_paused = true)]
async fn a_call_that_would_begin_too_late_is_not_made() {
    let late = Moment::Late(CALL_WITHIN + Duration::from_secs(1));
    let looked = at_every_request(late, async |crash| {
        let stack = TestStack::new(policy(json!({})), slow(Duration::from_secs(8)), crash).await;
        let tasks = stack.register.register(vec![order(None, "117", 1)], "a").await.unwrap();
        let look = async {
            until(async || !stack.api.seen().is_empty()).await;
            let call = stack.api.seen().remove(0);
            let at = stack.world.now().minus(call.at.elapsed());
            let lease_until = stack.batches.get(call.call.batch_id).await.unwrap().unwrap().lease_until.unwrap();
            assert!(at.plus(TIMEOUT + ATTEMPT_MARGIN) <= lease_until.plus(CALL_WITHIN), "{:?}", stack.crash.struck());
        };
        tokio::join!(stack.drain(), look);
        stack.assert_settled(&[tasks[0].id], 1).await;
        assert_eq!(stack.api.seen().len(), 1, "{:?}", stack.crash.struck());
        stack.crash.struck()
    })
    .await;
    assert!(looked.len() > 10, "{looked:?}");
}
