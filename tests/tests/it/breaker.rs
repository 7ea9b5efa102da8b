//! Kinds whose batch API says that the caller is wrong or must wait: they stand still, nothing fails, and they go on.

mod probes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::{PLACES_PER_RECORD, PROBE_PAUSE_MAX, REFUSED_MAX};
use fanfold::messages::{HandleMessage, TaskRequest};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::gates::{Gate, RefusedCall};
use fanfold::store::places::{Party, Place};
use fanfold::tracking::OpenRequest;
use fanfold_batch_api::{Answer, Call, CallError, Cause, RetryAfter};
use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, order, until};
use serde_json::{Value, json};

fn policy(changes: Value) -> Value {
    let policy =
        fanfold_tests::policy(json!({"max_attempts": 2, "batch_api": {"command": ["truck"], "timeout": "10s"}}));
    changed(policy, changes)
}

async fn register(stack: &TestStack, depots: &[&str]) -> Vec<TaskId> {
    let tasks = depots.iter().enumerate().map(|(n, depot)| order(None, depot, n)).collect();
    stack.register.register(tasks, &depots.concat()).await.unwrap().into_iter().map(|task| task.id).collect()
}

async fn gate(stack: &TestStack) -> Gate {
    stack.gates.get_many(&["parcel"]).await.unwrap().pop().unwrap_or_default()
}

const DEPOTS: [&str; 6] = ["117", "200", "300", "400", "500", "600"];

/// How many places are in a record: all of a kind's, or one.
const PER_RECORD: [u32; 2] = [PLACES_PER_RECORD, 1];

#[tokio::test(start_paused = true)]
async fn a_wrong_path_fails_nothing_and_the_kind_goes_on_when_it_is_mended() {
    for per_record in PER_RECORD {
        is_mended(per_record).await;
    }
}

async fn is_mended(per_record: u32) {
    let (status, api) = ScriptedApi::answering(404);
    let stack = TestStack::with_places_per_record(policy(json!({})), api.clone(), Crash::never(), per_record).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(60).await;
    let stopped = gate(&stack).await.stopped.unwrap();
    assert_eq!(stopped.answer, "the batch API answered 404");
    let calls = api.seen().len();
    assert!((10..100).contains(&calls), "{calls} calls in an hour");
    assert!(stack.all_batches().await.iter().all(|batch| batch.status != BatchStatus::Done));
    status.store(200, Ordering::Relaxed);
    stack.minutes(10).await;
    assert_eq!(gate(&stack).await.stopped, None);
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!((batch.succeeded.count(), batch.ended - batch.refused), (1, 1));
    }
}

/// A call that is too large is not sent. So it shows nothing of the batch API, although its task fails.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_not_made_lets_no_kind_go_on() {
    let (status, api) = ScriptedApi::answering(404);
    let request = json!({"body": {"${members}": "${content}"}, "max_bytes": 200});
    let batch_api = json!({"url": "https://example.com/", "request": request, "response": {"match": "none"}});
    let changes = fanfold_tests::policy(json!({"max_attempts": 2, "batch_api": batch_api}));
    let stack = TestStack::new(changes, api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS[..3]).await;
    stack.minutes(5).await;
    assert!(gate(&stack).await.stopped.is_some());
    let content = json!({"depot": "900", "order": "ORD-9", "x": "x".repeat(300)});
    let large = TaskRequest { content, ..order(None, "900", 9) };
    let large = stack.register.register(vec![large], "large").await.unwrap()[0].id;
    stack.minutes(5).await;
    let of_large = |batch: &Batch| batch.members.slot(&large).is_some();
    let batch = async || stack.all_batches().await.into_iter().find(of_large).unwrap();
    // It probes as soon as a probe is due.
    let due = gate(&stack).await.stopped.unwrap().probe_at.since(stack.world.now());
    tokio::time::sleep(due + Duration::from_millis(1)).await;
    let attempt = batch().await.attempts + 1;
    stack.handle_message(HandleMessage { batch: batch().await.id, attempt, more: false }).await;
    stack.minutes(1).await;
    let batch = batch().await;
    assert_eq!((batch.status, batch.failed.count()), (BatchStatus::Done, 1));
    assert!(batch.error(0).unwrap().contains("it was not sent"), "{batch:?}");
    assert!(api.seen().iter().all(|seen| seen.call.target != "900"));
    assert!(gate(&stack).await.stopped.is_some(), "the kind stands still");
    status.store(200, Ordering::Relaxed);
    stack.minutes(10).await;
    assert_eq!(gate(&stack).await.stopped, None);
    let others = stack.all_batches().await.into_iter().filter(|batch| !of_large(batch));
    assert_eq!(others.map(|batch| batch.succeeded.count()).sum::<u64>(), tasks.len() as u64);
}

/// The example's batch API was busy for one call in twenty, and its kind stood still.
#[tokio::test(start_paused = true)]
async fn a_call_that_works_ends_a_row_of_refusals_that_began_after_it() {
    for per_record in PER_RECORD {
        ends_a_row(per_record).await;
    }
}

async fn ends_a_row(per_record: u32) {
    let takes = |call: &Call| Duration::from_secs(if call.target == "117" { 5 } else { 0 });
    let api = ScriptedApi::slow(takes, |call| match call.target.as_str() {
        "117" => Ok(Answer::AllSucceeded),
        _ => Err(CallError::new(Cause::Status(503), "busy")),
    });
    let policy = policy(json!({"backoff": {"base": 60, "max": 60}}));
    let stack = TestStack::with_places_per_record(policy, api, Crash::never(), per_record).await;
    let _pumps = stack.pumps();
    register(&stack, &["117"]).await;
    until(async || stack.places("parcel").await == 1).await;
    register(&stack, &["200", "300"]).await;
    until(async || gate(&stack).await.refusals == 2).await;
    until(async || stack.places("parcel").await == 0).await;
    until(async || gate(&stack).await.refusals == 0).await;
}

#[tokio::test(start_paused = true)]
async fn one_tenants_refusals_do_not_stop_a_kind() {
    let api = ScriptedApi::new(|call| match call.target.as_str() {
        "117" => Err(CallError::new(Cause::Status(429), "busy")),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    register(&stack, &["117"]).await;
    stack.seconds(30).await;
    assert!(gate(&stack).await.stopped.is_some());
    register(&stack, &["200"]).await;
    stack.seconds(30).await;
    assert!(api.seen().iter().any(|seen| seen.call.target == "200"), "it was called without a sweep");
    let others = stack.all_batches().await.into_iter().filter(|batch| batch.lane.target == "200");
    assert!(others.map(|batch| batch.status).eq([BatchStatus::Done]));
}

#[tokio::test(start_paused = true)]
async fn probes_wait_as_the_batch_api_asks_and_no_longer_than_a_limit() {
    let day = RetryAfter::Delay(Duration::from_secs(86_400));
    let api = ScriptedApi::new(move |_| {
        Err(CallError { retry_after: Some(day), ..CallError::new(Cause::Status(503), "closed") })
    });
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    register(&stack, &DEPOTS).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stack.deliver(queue).await;
    }
    let stopped = gate(&stack).await.stopped.unwrap();
    assert_eq!((stopped.probe_at, api.seen().len()), (stopped.since.plus(PROBE_PAUSE_MAX), 3));
}

#[tokio::test(start_paused = true)]
async fn a_new_version_of_the_policy_is_tried_at_once() {
    let (status, api) = ScriptedApi::answering(401);
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(20).await;
    assert!(gate(&stack).await.stopped.is_some());
    status.store(200, Ordering::Relaxed);
    stack.put_policy(policy(json!({"batch_api": {"command": ["lorry"], "timeout": "10s"}}))).await;
    // As a local runner does that is started again.
    stack.sweeper.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await.unwrap();
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// The batch API has asked for the next probe to be made in a quarter of an hour.
#[tokio::test(start_paused = true)]
async fn a_sweep_has_a_new_version_of_the_policy_tried() {
    let works = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&works);
    let api = ScriptedApi::new(move |_| match answers.load(Ordering::Relaxed) {
        true => Ok(Answer::AllSucceeded),
        false => {
            let later = Some(RetryAfter::Delay(PROBE_PAUSE_MAX));
            Err(CallError { retry_after: later, ..CallError::new(Cause::Status(503), "closed") })
        }
    });
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(1).await;
    assert!(gate(&stack).await.stopped.is_some() && api.seen().len() == 3);
    works.store(true, Ordering::Relaxed);
    stack.put_policy(policy(json!({"batch_api": {"command": ["lorry"], "timeout": "10s"}}))).await;
    stack.minutes(2).await;
    assert_eq!(gate(&stack).await.stopped, None);
    assert_eq!(api.seen().len(), DEPOTS.len(), "those that were refused wait for as long as they were asked to");
    stack.minutes(15).await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_take_refusals_for_failures() {
    let (_, api) = ScriptedApi::answering(404);
    let stack = TestStack::new(policy(json!({"refusals": "fail"})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.drain().await;
    assert_eq!((api.seen().len(), gate(&stack).await.stopped), (DEPOTS.len(), None));
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!(batch.failed.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_heals_a_kind_whose_probe_was_lost() {
    let (status, api) = ScriptedApi::answering(503);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    for _ in 0..60 {
        for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
            stack.deliver(queue).await;
        }
        if gate(&stack).await.stopped.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(gate(&stack).await.stopped.is_some());
    // Every message is lost.
    for _ in 0..60 {
        stack.take(QueueName::Handle).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    status.store(200, Ordering::Relaxed);
    stack.minutes(5).await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_worker_dies_or_that_is_repeated_is_made_again() {
    let (status, api) = ScriptedApi::answering(503);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(3).await;
    let stopped = gate(&stack).await;
    let place = |n: u128| Place {
        record: 0,
        party: Party::Kind("parcel".to_owned()),
        holder: uuid::Uuid::from_u128(n),
        until: stack.world.now().plus(Duration::from_secs(40)),
    };
    // A worker takes the probe and dies; one that comes late finds it taken.
    let (first, second) = (place(1), place(2));
    let still = stopped.stopped.clone().unwrap();
    assert!(stack.gates.take_probe(&first, &stopped, &still, 10, None).await.unwrap().is_some());
    assert!(stack.gates.take_probe(&first, &stopped, &still, 10, None).await.unwrap().is_some(), "its own");
    assert!(stack.gates.take_probe(&second, &stopped, &still, 10, None).await.unwrap().is_none());
    status.store(200, Ordering::Relaxed);
    stack.minutes(10).await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_that_waited_for_days_fail_with_the_reason() {
    let (_, api) = ScriptedApi::answering(403);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(3).await;
    tokio::time::sleep(REFUSED_MAX).await;
    stack.minutes(5).await;
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        let error = batch.error(0).unwrap();
        assert!(error.starts_with("gave up after 3 days") && error.contains("403"), "{error}");
    }
}

/// A tenant that is always refused, while others work, so that its kind stands still for moments only.
#[tokio::test(start_paused = true)]
async fn a_target_that_is_refused_for_days_fails_alone() {
    let api = ScriptedApi::new(|call: &Call| match call.target.as_str() {
        "117" => Err(CallError::new(Cause::Status(429), "the batch API answered 429")),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let refused = register(&stack, &DEPOTS[..1]).await;
    let status = async || stack.all_batches().await[0].clone();
    stack.pass_time(REFUSED_MAX - Duration::from_secs(24 * 3_600)).await;
    stack.minutes(2).await;
    let waits = status().await;
    assert!(waits.status != BatchStatus::Done && waits.refused_since.is_some() && waits.refused > 10, "{waits:?}");
    let others = register(&stack, &DEPOTS[1..]).await;
    stack.minutes(3).await;
    assert!(stack.gates.get_many(&["parcel"]).await.unwrap()[0].resumed_at.is_some(), "the others let the kind resume");
    stack.pass_time(Duration::from_secs(30 * 3_600)).await;
    stack.minutes(3).await;
    let by_task = stack.assert_settled(&[refused.clone(), others.clone()].concat(), 10).await;
    let failed = &by_task[&refused[0]];
    assert!(failed.error(0).is_some_and(|error| error.starts_with("gave up after 3 days")), "{failed:?}");
    assert!(others.iter().all(|task| by_task[task].succeeded.count() == 1));
}

/// Only the time for which it is refused counts, not what a batch waited for before.
#[tokio::test(start_paused = true)]
async fn an_old_batch_is_not_given_up_for_a_short_outage() {
    let (status, api) = ScriptedApi::answering(503);
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(2).await;
    assert!(stack.all_batches().await.iter().any(|batch| batch.refused_since.is_some()));
    let calls = api.seen().len();
    stack.delete_policy("parcel").await;
    stack.drain().await;
    for _ in 0..5 {
        stack.clock.skip(Duration::from_secs(24 * 3_600));
        stack.sweep().await;
    }
    assert_eq!(api.seen().len(), calls);
    stack.put_policy(policy(json!({}))).await;
    stack.minutes(3).await;
    assert!(api.seen().len() > calls && gate(&stack).await.stopped.is_some());
    status.store(200, Ordering::Relaxed);
    stack.minutes(10).await;
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!((batch.succeeded.count(), batch.failed.count()), (1, 0), "{batch:?}");
    }
}

/// The same after days of other failures, each of which asks to wait for a day.
#[tokio::test(start_paused = true)]
async fn failures_before_a_refusal_do_not_count_as_refusals() {
    let day = Some(RetryAfter::Delay(Duration::from_secs(24 * 3_600)));
    let api = ScriptedApi::new(move |call: &Call| match call.attempt {
        1..=4 => Err(CallError { retry_after: day, ..CallError::again("500") }),
        5 => Err(CallError::new(Cause::Status(503), "the batch API answered 503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(json!({"max_attempts": 9})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS[..1]).await;
    stack.pass_time(REFUSED_MAX * 2).await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, batch.refused), (1, 6, 1));
    assert!(api.seen()[4].at - api.seen()[0].at > REFUSED_MAX);
}

/// Members of a batch that gives up are failed only if their fan-outs still want them.
#[tokio::test(start_paused = true)]
async fn what_was_cancelled_is_missing_when_a_batch_gives_up() {
    let (_, api) = ScriptedApi::answering(403);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let open = |key: &'static str| {
        let request = OpenRequest { items: 1, seal: true, user_key: Some(key.to_owned()), ..OpenRequest::default() };
        let stack = &stack;
        async move { stack.open_as(&request, key).await }
    };
    let ((_, kept), (cancelled, gone)) = (open("kept").await, open("cancelled").await);
    let tasks = stack.register_items(&[kept, gone].concat()).await;
    register(&stack, &DEPOTS).await;
    stack.minutes(3).await;
    stack.tracking.cancel(cancelled).await.unwrap();
    tokio::time::sleep(REFUSED_MAX).await;
    stack.minutes(5).await;
    let batches = stack.all_batches().await;
    let batch = batches.iter().find(|batch| batch.members.slot(&tasks[0]).is_some()).unwrap();
    let slots = [0, 1].map(|at| batch.members.slot(&tasks[at]).unwrap());
    assert_eq!(slots.map(|slot| batch.failed.get(slot)), [true, false]);
    assert_eq!(slots.map(|slot| batch.dropped.get(slot)), [false, true]);
}

/// Plain failures between refusals end no row of them, but neither do they stop a kind.
#[tokio::test(start_paused = true)]
async fn other_failures_stop_no_kind() {
    let (_, api) = ScriptedApi::answering(500);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(3).await;
    assert_eq!(gate(&stack).await.stopped, None);
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!((batch.failed.count(), batch.ended, batch.refused), (1, 2, 0));
    }
}

/// A call that began before the policy was changed says nothing of what the kind stands still by since.
#[tokio::test(start_paused = true)]
async fn a_late_refusal_by_another_version_does_not_let_a_kind_go_on() {
    for per_record in PER_RECORD {
        is_refused_late(per_record).await;
    }
}

async fn is_refused_late(per_record: u32) {
    let (_, api) = ScriptedApi::answering(503);
    let stack = TestStack::with_places_per_record(policy(json!({})), api, Crash::never(), per_record).await;
    let place = |n: u128| Place {
        record: n as u32 / per_record,
        party: Party::Kind("parcel".to_owned()),
        holder: uuid::Uuid::from_u128(n),
        until: stack.world.now().plus(Duration::from_secs(40)),
    };
    let now = stack.world.now();
    let refusal = |version: u128| RefusedCall { target: "117", version: uuid::Uuid::from_u128(version), answer: "no" };
    for n in 0..4 {
        assert!(stack.gates.take(&place(n), 10, now).await.unwrap().is_done());
    }
    stack.gates.refuse(&place(0), refusal(1)).await.unwrap().unwrap();
    let stands = stack.gates.refuse(&place(1), refusal(2)).await.unwrap().unwrap();
    assert_eq!(stands.refusals, 1, "those of another version do not count");
    assert!(stack.gates.stop(&stands, "no", now, None).await.unwrap());
    assert_eq!(stack.gates.refuse(&place(2), refusal(1)).await.unwrap(), None);
    let after = gate(&stack).await;
    assert!(after.stopped.is_some() && after.notice.change == Some(1), "{after:?}");
    assert_eq!(stack.places("parcel").await, 1);
}

/// A wrong path that redirects is a wrong path.
#[tokio::test(start_paused = true)]
async fn redirects_fail_nothing() {
    let (status, api) = ScriptedApi::answering(308);
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(5).await;
    assert!(gate(&stack).await.stopped.is_some());
    status.store(200, Ordering::Relaxed);
    stack.minutes(5).await;
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!((batch.succeeded.count(), batch.ended - batch.refused), (1, 1));
    }
}

/// 408: the request did not arrive in time. That is tried again, stops no kind, and lets none go on.
#[tokio::test(start_paused = true)]
async fn a_request_that_did_not_arrive_is_tried_again() {
    let (status, api) = ScriptedApi::answering(503);
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, &DEPOTS).await;
    stack.minutes(3).await;
    status.store(408, Ordering::Relaxed);
    stack.minutes(5).await;
    assert!(gate(&stack).await.stopped.is_some(), "a probe that did not arrive does not work");
    status.store(200, Ordering::Relaxed);
    stack.minutes(5).await;
    for batch in stack.assert_settled(&tasks, 10).await.into_values() {
        assert_eq!((batch.succeeded.count(), batch.ended - batch.refused), (1, 1), "probes use up no attempts");
    }
    status.store(408, Ordering::Relaxed);
    let tasks = [tasks, register(&stack, &["700"]).await].concat();
    stack.minutes(2).await;
    assert_eq!(gate(&stack).await.stopped, None);
    let batches = stack.assert_settled(&tasks, 10).await;
    let batch = batches.values().find(|batch| batch.lane.target == "700").unwrap();
    assert_eq!((batch.failed.count(), batch.ended, batch.silent.is_zero()), (1, 2, true), "answered, and tried twice");
}
