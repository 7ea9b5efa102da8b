//! Notices of kinds that stop and go on: each change is reported once, where the policy says, and the latest one counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use fanfold::limits::KIND_NOTICES;
use fanfold::notice::{Event, KindResumed, KindStopped, Notice};
use fanfold::store::gates::Gate;
use fanfold_tests::{QueueName, WebhookAnswer, order, policy};
use serde_json::Value;

use super::*;

/// A stack with a kind of three lanes that is reported to a URL, or as `notify` says; its batch API refuses all calls.
async fn refused(notify: Value) -> (Arc<AtomicU16>, TestStack) {
    let (status, api) = ScriptedApi::answering(401);
    let stack = TestStack::new(policy(json!({ "notify": notify })), api, Crash::never()).await;
    stack.register((0..3).map(|n| order(None, &n.to_string(), n)).collect()).await;
    (status, stack)
}

async fn gate(stack: &TestStack) -> Gate {
    stack.gates.get("parcel").await.unwrap().unwrap_or_default()
}

/// Lets everything work until the kind stands still, or goes on again; the notice of it is not delivered yet.
async fn changes(stack: &TestStack, stops: bool) -> Gate {
    for _ in 0..200 {
        for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
            stack.deliver(queue).await;
        }
        let gate = gate(stack).await;
        if gate.stopped.is_some() == stops {
            return gate;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.unwrap();
    }
    panic!("it does not come to it");
}

/// What was delivered, in order.
fn delivered(stack: &TestStack) -> Vec<Notice> {
    stack.webhooks.posted().into_iter().map(|posted| posted.notice).collect()
}

fn stopped(gate: &Gate) -> Event {
    let since = gate.stopped.as_ref().unwrap().since.0;
    Event::KindStopped(KindStopped {
        kind: "parcel".to_owned(),
        since,
        answer: "the batch API answered 401".to_owned(),
    })
}

fn resumed(gate: &Gate) -> Event {
    let [stopped_at, since] = [gate.stood_since, gate.resumed_at].map(|at| at.unwrap().0);
    Event::KindResumed(KindResumed { kind: "parcel".to_owned(), stopped_at, since })
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_stops_and_goes_on_is_reported_once_each() {
    let (status, stack) = refused(json!({"url": URL})).await;
    let stands = changes(&stack, true).await;
    status.store(403, Ordering::Relaxed);
    stack.minutes(20).await;
    let notices = delivered(&stack);
    assert_eq!(notices.iter().map(|notice| &notice.event).collect::<Vec<_>>(), [&stopped(&stands)]);
    assert_eq!(gate(&stack).await.stopped.unwrap().answer, "the batch API answered 403", "what it answers now");
    status.store(200, Ordering::Relaxed);
    stack.minutes(20).await;
    let goes_on = gate(&stack).await;
    let notices = delivered(&stack);
    assert_eq!(notices[1..].iter().map(|notice| &notice.event).collect::<Vec<_>>(), [&resumed(&goes_on)]);
    assert_ne!(notices[0].id, notices[1].id);
    assert_eq!(goes_on.stood_since, Some(stands.stopped.unwrap().since));
    assert_eq!(stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_gets_the_notices_of_a_kind_as_well() {
    let (_, stack) = refused(json!({"queue": "notices"})).await;
    let stands = changes(&stack, true).await;
    stack.minutes(5).await;
    let notices = stack.take(QueueName::Notices).await;
    assert_eq!(notices.len(), 1);
    let delivered: Value = serde_json::from_str(&notices[0].body).unwrap();
    let answer = "the batch API answered 401";
    let since = stands.stopped.unwrap().since.0;
    let time = fanfold::clock::Timestamp(since).rfc3339();
    let event = json!({"specversion": "1.0", "id": delivered["id"], "source": "/kinds/parcel", "time": time,
        "type": "kind.stopped", "data": {"kind": "parcel", "since": since, "answer": answer}});
    assert_eq!(delivered, event);
}

/// The worker that stopped the kind, or let it go on, dies before it sent the message; so does the one that was to deliver.
#[tokio::test(start_paused = true)]
async fn a_sweep_has_the_notice_of_a_dead_worker_sent() {
    let (status, stack) = refused(json!({"url": URL})).await;
    for (n, stops) in [true, false].into_iter().enumerate() {
        status.store(if stops { 401 } else { 200 }, Ordering::Relaxed);
        let changed = changes(&stack, stops).await;
        assert!(changed.to_notify());
        assert_eq!(stack.take(QueueName::Notify).await.len(), 1, "one message a change");
        stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.unwrap();
        assert_eq!(stack.take(QueueName::Notify).await.len(), 0, "it may only be late");
        stack.minutes(5).await;
        assert_eq!(delivered(&stack).len(), n + 1);
        assert!(!gate(&stack).await.to_notify());
    }
    assert_eq!(stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_local_runner_goes_on_with_it() {
    let (_, stack) = refused(json!({"url": URL})).await;
    changes(&stack, true).await;
    stack.take(QueueName::Notify).await;
    let request = fanfold_sweep::SweepRequest { min_age: Duration::ZERO, workers_dead: true };
    stack.sweeper.sweep(request).await.unwrap();
    run_for(&stack, MINUTE, Duration::from_secs(1)).await;
    assert_eq!(delivered(&stack).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_receiver_there_is_no_notice_of_a_kind() {
    for removed in [false, true] {
        let (status, stack) = refused(if removed { json!({"url": URL}) } else { Value::Null }).await;
        assert_eq!(changes(&stack, true).await.to_notify(), removed);
        stack.put_policy(policy(json!({}))).await;
        stack.minutes(10).await;
        status.store(200, Ordering::Relaxed);
        stack.minutes(10).await;
        assert_eq!((delivered(&stack).len(), gate(&stack).await.to_notify(), stack.backlog().await), (0, false, 0));
    }
}

/// A notice that was not delivered before the next change is not sent any more; the next one is, by a chain of its own.
#[tokio::test(start_paused = true)]
async fn the_latest_change_counts() {
    let (status, stack) = refused(json!({"url": URL})).await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(503));
    changes(&stack, true).await;
    stack.minutes(15).await;
    let calls = delivered(&stack).len();
    assert!((4..12).contains(&calls), "{calls} calls in a quarter of an hour");
    assert_eq!(stack.webhooks.by_notice().len(), 1);
    status.store(200, Ordering::Relaxed);
    let goes_on = changes(&stack, false).await;
    stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
    stack.minutes(90).await;
    let notices = delivered(&stack);
    assert_eq!(notices[calls..].iter().map(|notice| &notice.event).collect::<Vec<_>>(), [&resumed(&goes_on); 2]);
    let notice = gate(&stack).await.notice;
    assert_eq!((notice.tries, notice.delivered.is_some(), stack.backlog().await), (2, true, 0));
}

/// A try that runs while the kind changes delivers the change before; the new one is still to be delivered.
#[tokio::test(start_paused = true)]
async fn a_try_that_is_overtaken_does_not_count_for_the_next_change() {
    let (status, stack) = refused(json!({"url": URL})).await;
    let before = changes(&stack, true).await;
    let notices = stack.gates.notices();
    let key = fanfold::store::places::Party::Kind("parcel".to_owned()).key();
    let running = notices.begin(&key, &before.notice).await.unwrap().unwrap();
    status.store(200, Ordering::Relaxed);
    let after = changes(&stack, false).await;
    notices.delivered(&running).await.unwrap();
    assert!(!notices.again(&running, stack.world.now(), 0, Some("late")).await.unwrap());
    assert!(!notices.give_up(&running, 0, "late").await.unwrap());
    assert!(notices.begin(&key, &before.notice).await.unwrap().is_none());
    assert_eq!(gate(&stack).await.notice, after.notice);
    stack.minutes(5).await;
    assert_eq!(delivered(&stack).iter().map(|notice| &notice.event).collect::<Vec<_>>(), [&resumed(&after)]);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_no_receiver_takes_is_given_up_with_one_dead_letter() {
    let (_, stack) = refused(json!({"url": URL})).await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(410));
    changes(&stack, true).await;
    stack.minutes(10).await;
    assert_eq!(delivered(&stack).len(), 1);
    let dead = stack.dead(QueueName::Notify).await;
    assert_eq!(dead.len(), 1);
    stack.webhooks.answer(|_, _| WebhookAnswer::Takes);
    stack.send(QueueName::Notify, &dead[0]).await;
    stack.minutes(2).await;
    assert_eq!((delivered(&stack).len(), stack.webhooks.by_notice().len()), (2, 1));
    assert!(gate(&stack).await.notice.delivered.is_some());
}

/// A batch API that works once in a while: notices come no faster than the limit says, and the last one says how it stands.
#[tokio::test(start_paused = true)]
async fn a_kind_that_flaps_is_reported_within_the_limit() {
    let (status, stack) = refused(json!({"url": URL})).await;
    let mut changed = 0;
    for n in 0..40 {
        let stops = n % 2 == 0;
        status.store(if stops { 401 } else { 200 }, Ordering::Relaxed);
        let task = |lane: usize| order(None, &lane.to_string(), 10 * n + lane);
        stack.register.register((0..3).map(task).collect(), &n.to_string()).await.unwrap();
        changes(&stack, stops).await;
        while stack.deliver(QueueName::Notify).await > 0 {}
        changed += 1;
    }
    stack.minutes(5).await;
    let posted = stack.webhooks.posted();
    for pair in posted.windows(2) {
        assert!(pair[1].at.since(pair[0].at) >= KIND_NOTICES);
    }
    assert!(posted.len() > 1 && posted.len() < changed, "{} notices of {changed} changes", posted.len());
    assert_eq!(posted.last().unwrap().notice.event, resumed(&gate(&stack).await));
}
