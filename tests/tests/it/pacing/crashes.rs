//! Workers that die, and two at once: no rate is exceeded, no task is lost, and a time that a worker took is lost at most once.

use std::sync::Arc;
use std::time::Duration;

use fanfold::limits::PLACES_PER_RECORD;
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{
    Counted, Crash, Moment, QueueName, ScriptedApi, Seen, TestStack, at_every_request, deaths, members, order, policy,
};
use serde_json::{Value, json};

use super::taking;

fn rates() -> Value {
    policy(json!({
        "max_batch": 2, "max_in_flight": 2, "max_calls": 2, "key": "content.order",
        "lane_rate": {"tasks": 2, "per": "second", "burst": 2}, "kind_rate": {"tasks": 3, "per": "second", "burst": 3},
    }))
}

fn assert_kept(stack: &TestStack) {
    let seen = stack.api.seen();
    Counted { a_second: 3.0, burst: 3.0 }.assert_kept(&seen, members);
    for lane in ["117", "900"] {
        let seen: Vec<Seen> = seen.iter().filter(|seen| seen.call.target == lane).cloned().collect();
        Counted { a_second: 2.0, burst: 2.0 }.assert_kept(&seen, members);
    }
    assert!(stack.api.most_at_once(|_| true) <= 2);
}

async fn run(crash: Crash) -> Option<String> {
    run_with(crash, PLACES_PER_RECORD).await
}

/// The same with a record for each of the kind's two places.
async fn run_in_two_records(crash: Crash) -> Option<String> {
    run_with(crash, 1).await
}

async fn run_with(crash: Crash, per_record: u32) -> Option<String> {
    let api = ScriptedApi::slow(
        |_| Duration::from_millis(200),
        |call| match call.attempt {
            1 if call.target == "900" => Err(CallError::again("500")),
            _ => Ok(Answer::AllSucceeded),
        },
    );
    let stack = TestStack::with_places_per_record(rates(), api, crash, per_record).await;
    let tasks: Vec<_> = (0..12).map(|n| order(None, if n % 3 == 0 { "900" } else { "117" }, n)).collect();
    let registered = stack.insist(async || stack.register.register(tasks.clone(), "a").await).await;
    let tasks: Vec<_> = registered.into_iter().map(|task| task.id).collect();
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert_kept(&stack);
    stack.assert_settled(&tasks, 2).await;
    stack.crash.struck()
}

deaths!(
    run,
    40,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);

deaths!(
    run_in_two_records,
    40,
    dies_before_a_request_with_two_records: Before,
    dies_after_a_request_with_two_records: After,
    loses_an_answer_with_two_records: AnswerLost,
);

/// A worker that gets to its call late misses its time, and asks for another.
#[tokio::test(start_paused = true)]
async fn a_request_is_late() {
    for late in [Duration::from_millis(180), Duration::from_millis(900), Duration::from_secs(4)] {
        assert!(at_every_request(Moment::Late(late), run).await.len() > 40);
    }
}

/// Two workers with one message: one calls, and the other's time is not lost.
#[tokio::test(start_paused = true)]
async fn of_two_workers_with_one_message_one_calls() {
    let rate = json!({"kind_rate": {"calls": 1, "per": "minute", "burst": 2}, "max_in_flight": 1});
    let stack = TestStack::new(policy(rate), taking(Duration::ZERO), Crash::never()).await;
    let stack = Arc::new(stack);
    let tasks = stack.register_orders("117", 0..1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stack.deliver(QueueName::Group).await;
    let messages = stack.take(QueueName::Handle).await;
    assert_eq!(messages.len(), 1);
    let hand = || stack.hand(QueueName::Handle, messages.clone());
    let (one, other) = tokio::join!(hand(), hand());
    assert!(one.is_empty() && other.is_empty());
    assert_eq!(stack.api.seen().len(), 1);
    let gate = stack.gates.get("parcel").await.unwrap().unwrap();
    let full = fanfold::pacing::timestamp(gate.pace.full.unwrap()).since(stack.world.now());
    assert!(full < Duration::from_secs(66), "one call was charged: {full:?}");
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}
