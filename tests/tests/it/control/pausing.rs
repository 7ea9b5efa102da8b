//! A paused scope: nothing is called, no message is sent for it, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanfold::control::Scope;
use fanfold::limits::{BUNDLED_RETENTION, CALL_WITHIN, POLICY_CACHE_MAX, RETENTION};
use fanfold::policy::Weight;
use fanfold_batch_api::{Answer, CallError, RetryAfter};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use serde_json::json;

use super::{kind, lane, lock, pause, resume, settled, target};

/// Messages that were sent to steps so far.
fn sent(stack: &TestStack) -> u64 {
    let usage = stack.usage();
    let sends = usage.by_operation.iter().filter(|(operation, _)| operation.contains("SendMessage"));
    sends.map(|(_, usage)| usage.requests).sum()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_lingers_ends() {
    let stack = TestStack::with(json!({"linger": 60})).await;
    let mut tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect]).await;
    assert!(lock(&stack, "117").await.holder.is_some());
    pause(&stack, &kind()).await;
    tasks.extend(stack.register_orders("117", 3..6).await);
    stack.drain().await;
    assert_eq!((lock(&stack, "117").await.holder, stack.all_batches().await.len()), (None, 1), "its batch is empty");
    assert!(stack.api.seen().is_empty());
    resume(&stack, &kind()).await;
    settled(&stack, &tasks).await;
}

/// A pause that is shorter than the linger changes nothing.
#[tokio::test(start_paused = true)]
async fn a_leader_that_lingers_goes_on_if_it_was_resumed() {
    let stack = TestStack::with(json!({"linger": 60})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect]).await;
    pause(&stack, &kind()).await;
    resume(&stack, &kind()).await;
    settled(&stack, &tasks).await;
    assert_eq!(stack.api.seen().len(), 1);
}

/// Whatever step a batch has come to, its workflow ends there, and goes on from there.
#[tokio::test(start_paused = true)]
async fn in_every_step_the_workflow_ends() {
    use QueueName::{Elect, Group, Handle};
    let steps: [&[QueueName]; 4] = [&[], &[Elect], &[Elect, Group], &[Elect, Group, Handle]];
    for passed in steps {
        for scope in [Scope::All, kind(), target("117"), Scope::Lane(lane("117"))] {
            let works = Arc::new(AtomicBool::new(false));
            let answers = Arc::clone(&works);
            let script = move |_: &_| match answers.load(Ordering::Relaxed) {
                true => Ok(Answer::AllSucceeded),
                false => Err(CallError::again("500")),
            };
            let changes = json!({"max_batch": 5, "max_in_flight": 2, "max_attempts": 9});
            let stack = TestStack::new(policy(changes), ScriptedApi::new(script), Crash::never()).await;
            let tasks = stack.register_orders("117", 0..17).await;
            stack.pass(passed).await;
            let calls = stack.api.seen().len();
            pause(&stack, &scope).await;
            stack.drain().await;
            assert_eq!((stack.api.seen().len(), stack.backlog().await), (calls, 0), "{passed:?} {scope}");
            let before = sent(&stack);
            for _ in 0..3 {
                stack.sweep().await;
            }
            assert_eq!((sent(&stack), stack.backlog().await), (before, 0), "{passed:?} {scope}");
            works.store(true, Ordering::Relaxed);
            resume(&stack, &scope).await;
            settled(&stack, &tasks).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_costs_no_message_for_hours() {
    let changes = json!({"max_batch": 2, "max_in_flight": 1, "max_attempts": 50});
    let api = ScriptedApi::new(|_| Err(CallError::again("500")));
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    for depot in ["117", "118", "119"] {
        stack.register_orders(depot, 0..9).await;
    }
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    pause(&stack, &kind()).await;
    stack.drain().await;
    let (calls, before) = (stack.api.seen().len(), sent(&stack));
    for hour in 0..6 {
        stack.register_orders("120", hour * 10..hour * 10 + 9).await;
        for _ in 0..12 {
            let report = stack.sweep().await;
            assert_eq!((report.lanes, report.leaders, report.batches), (0, 0, 0));
        }
    }
    assert_eq!((sent(&stack) - before, stack.backlog().await, stack.api.seen().len()), (0, 0, calls));
}

#[tokio::test(start_paused = true)]
async fn other_scopes_go_on() {
    let stack = TestStack::with(json!({})).await;
    pause(&stack, &target("117")).await;
    let held = stack.register_orders("117", 0..3).await;
    let others = stack.register_orders("118", 0..3).await;
    stack.drain().await;
    assert_eq!((stack.claimed(&held).await, stack.claimed(&others).await), (0, 3));
    resume(&stack, &target("117")).await;
    settled(&stack, &[held, others].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn every_partition_of_a_target_is_paused_however_many_there_are() {
    let keyed = json!({"key": "content.order"});
    let stack = TestStack::with(keyed.clone()).await;
    let switched = pause(&stack, &target("117")).await;
    assert_eq!(switched.paused_by, [target("117")]);
    stack.put_policy(policy(json!({"key": "content.order", "partitions": 4}))).await;
    let tasks = stack.register_orders("117", 0..40).await;
    stack.drain().await;
    stack.sweep().await;
    assert!(stack.api.seen().is_empty() && stack.backlog().await == 0);
    resume(&stack, &target("117")).await;
    settled(&stack, &tasks).await;
    let mut lanes: Vec<u32> = stack.all_batches().await.iter().map(|batch| batch.lane.partition).collect();
    lanes.dedup();
    assert!(lanes.len() >= 4, "{lanes:?}");
}

/// A lane is paused as long as any scope that it is in is.
#[tokio::test(start_paused = true)]
async fn scopes_are_switched_on_their_own() {
    let stack = TestStack::with(json!({})).await;
    let scopes = [Scope::All, kind(), target("117"), Scope::Lane(lane("117"))];
    for scope in &scopes {
        pause(&stack, scope).await;
    }
    let tasks = stack.register_orders("117", 0..3).await;
    for scope in &scopes {
        assert!(stack.api.seen().is_empty());
        assert_eq!(resume(&stack, scope).await.paused_by.len(), 0, "nothing wider pauses it: {scope}");
        stack.drain().await;
    }
    settled(&stack, &tasks).await;
}

/// Workers cache switches for some seconds, and a call begins soon after they were read.
#[tokio::test(start_paused = true)]
async fn some_seconds_later_no_call_begins() {
    let api = ScriptedApi::slow(|_| Duration::from_secs(3), |_| Ok(Answer::AllSucceeded));
    let changes =
        json!({"max_batch": 2, "linger": 0, "max_in_flight": 2, "batch_api": {"command": ["truck"], "timeout": 30}});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let mut tasks = Vec::new();
    for depot in 0..12 {
        tasks.extend(stack.register_orders(&depot.to_string(), 0..40).await);
    }
    let pumps = stack.pumps();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (paused_at, before) = (tokio::time::Instant::now(), stack.api.seen().len());
    stack.control.pause(&kind()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let last = stack.api.seen().iter().map(|seen| seen.at).max().unwrap();
    let calls = stack.api.seen().len();
    assert!(before > 0 && calls < tasks.len() / 2, "{before} {calls}");
    assert!(last <= paused_at + POLICY_CACHE_MAX + CALL_WITHIN, "{:?}", last - paused_at);
    for pump in pumps {
        pump.stop().await;
    }
    resume(&stack, &kind()).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 2).await;
}

/// Elections, hand-overs and ends of batches at the moment of the pause, and at that of its end.
#[tokio::test(start_paused = true)]
async fn it_races_with_every_step() {
    for seed in 0..12_u64 {
        let stack = TestStack::with(json!({"max_batch": 2, "max_in_flight": 1 + seed as u32 % 3, "linger": 0})).await;
        let tasks = stack.register_orders("117", 0..20).await;
        let scope = kind();
        for n in 0..8 {
            let queue = QueueName::STEPS[(seed as usize + n) % QueueName::STEPS.len()];
            let switch = async {
                if n % 2 == 0 { stack.control.pause(&scope).await } else { stack.control.resume(&scope).await }
            };
            let (switched, _, ()) = futures::join!(switch, stack.deliver(queue), stack.seconds(3));
            switched.unwrap();
        }
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        stack.assert_settled(&tasks, 2).await;
    }
}

/// The intent of a leader is written down when its lane is paused: its batch is formed, and waits.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_intent_is_written_down_is_formed_and_waits() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect]).await;
    let leader = lock(&stack, "117").await.holder.unwrap();
    let members = tasks.iter().copied().collect();
    let bundle = *stack.waiting(&tasks).await.bundles.keys().next().unwrap();
    let slots = [(bundle, fanfold::bits::Bits::ones(3))].into_iter().collect();
    stack.batches.intend(leader, &lane("117"), &members, &slots, Weight::default()).await.unwrap();
    pause(&stack, &kind()).await;
    stack.drain().await;
    assert_eq!(lock(&stack, "117").await.in_flight, [leader]);
    assert_eq!((stack.claimed(&tasks).await, stack.api.seen().len()), (3, 0));
    resume(&stack, &kind()).await;
    settled(&stack, &tasks).await;
}

/// Tasks that wait, and those of batches in flight, are kept for as long as it takes, with the bundles that say which batch has them.
#[tokio::test(start_paused = true)]
async fn what_is_paused_for_months_is_not_lost() {
    for orders in [3, 7] {
        let stack = TestStack::with(json!({"max_batch": 3, "max_in_flight": 1})).await;
        let tasks = stack.register_orders("117", 0..orders).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        pause(&stack, &kind()).await;
        stack.drain().await;
        stack.days(60).await;
        assert!(60 * 24 * 3_600 > 2 * BUNDLED_RETENTION.as_secs() && BUNDLED_RETENTION > RETENTION);
        assert_eq!(stack.claimed(&tasks).await, 3, "of {orders}");
        let records = stack.scan("TasksTable").await;
        let mut waiting = records.iter().filter(|record| record.contains_key("pending"));
        assert!(waiting.all(|record| !record.contains_key("ttl")), "what waits does not expire: {records:?}");
        resume(&stack, &kind()).await;
        stack.drain().await;
        stack.assert_settled(&tasks, 3).await;
    }
}

/// The batch API refuses every call after a pause of a week: its batches wait, and do not fail at once.
#[tokio::test(start_paused = true)]
async fn a_long_pause_uses_up_no_patience() {
    let (status, api) = ScriptedApi::answering(503);
    let stack = TestStack::new(policy(json!({"max_attempts": 2})), api, Crash::never()).await;
    let mut tasks = Vec::new();
    for depot in ["117", "118", "119", "120"] {
        tasks.extend(stack.register_orders(depot, 0..2).await);
    }
    stack.seconds(60).await;
    pause(&stack, &kind()).await;
    for _ in 0..7 {
        stack.clock.skip(Duration::from_secs(24 * 3_600));
        stack.sweep().await;
        stack.seconds(30).await;
    }
    let calls = stack.api.seen().len();
    resume(&stack, &kind()).await;
    stack.minutes(15).await;
    assert!(stack.api.seen().len() > calls, "it is probed");
    status.store(200, Ordering::Relaxed);
    stack.minutes(15).await;
    let batches = stack.assert_settled(&tasks, 10).await;
    assert!(batches.values().all(|batch| batch.failed.is_zero()));
}

/// A batch whose next attempt is due after the pause is called in time: its message, which comes every 15 minutes, is not discarded.
#[tokio::test(start_paused = true)]
async fn what_is_due_after_the_pause_is_called_in_time() {
    let hour = Duration::from_secs(3_600);
    let api = ScriptedApi::new(move |call| match call.attempt {
        1 => Err(CallError { retry_after: Some(RetryAfter::Delay(hour)), ..CallError::again("500") }),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(json!({})), api.clone(), Crash::never()).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass_time(Duration::from_secs(30)).await;
    pause(&stack, &kind()).await;
    stack.pass_time(hour / 2).await;
    resume(&stack, &kind()).await;
    stack.pass_time(hour).await;
    stack.assert_settled(&tasks, 10).await;
    let seen = api.seen();
    let waited = seen[1].at - seen[0].at;
    assert!((hour..hour + Duration::from_secs(30)).contains(&waited), "{waited:?}");
}
