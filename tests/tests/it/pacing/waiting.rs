//! Batches that wait for their turn: they cost little, keep their order, and are not forgotten.

use std::time::Duration;

use fanfold::control::Scope;
use fanfold::messages::HandleMessage;
use fanfold_batch_api::CallError;
use fanfold_local::Usage;
use fanfold_tests::{Counted, Crash, QueueName, ScriptedApi, TestStack, policy};
use serde_json::json;

use super::{register, taking, work};

/// Twelve calls, one per ten seconds: no batch asks again and again.
#[tokio::test(start_paused = true)]
async fn a_batch_that_waits_does_not_poll() {
    let rate = json!({"kind_rate": {"calls": 6, "per": "minute", "burst": 1}});
    let stack = TestStack::new(policy(rate), taking(Duration::from_millis(20)), Crash::never()).await;
    let tasks = register(&stack, "parcel", 12, 1).await;
    work(&stack, tasks.len()).await;
    Counted { a_second: 0.1, burst: 1.0 }.assert_kept(&stack.api.seen(), |_| 1.0);
    assert!(Counted { a_second: 0.1, burst: 1.0 }.used(&stack.api.seen(), |_| 1.0) > 0.9);
    let sent = stack.usage().by_operation["sqs.SendMessageBatch"].requests;
    // Each has an election, a leader, a call, and mostly one delay; lanes are woken by the sweep at times.
    assert!(sent <= 5 * 12, "{sent} for 12 calls");
}

/// Pauses the kind for so many minutes, in which batches miss their turns. Returns what was used until it is resumed.
async fn miss_turns(stack: &TestStack, minutes: u32) -> Usage {
    let kind = Scope::Kind("parcel".to_owned());
    stack.control.pause(&kind).await.unwrap();
    stack.minutes(minutes).await;
    let used = stack.usage();
    stack.control.resume(&kind).await.unwrap();
    used
}

/// Sixty batches miss their turns while their kind is paused. They do not all ask for each time there is then.
#[tokio::test(start_paused = true)]
async fn batches_that_missed_their_turns_do_not_poll() {
    let rate = json!({"kind_rate": {"calls": 6, "per": "minute", "burst": 1}});
    let stack = TestStack::new(policy(rate), taking(Duration::from_millis(20)), Crash::never()).await;
    let tasks = register(&stack, "parcel", 60, 1).await;
    stack.seconds(60).await;
    let before = miss_turns(&stack, 15).await;
    assert!(stack.api.seen().len() < 12);
    work(&stack, tasks.len()).await;
    Counted { a_second: 0.1, burst: 1.0 }.assert_kept(&stack.api.seen(), |_| 1.0);
    let sent = |usage: &Usage| usage.by_operation["sqs.SendMessageBatch"].requests;
    let sent = sent(&stack.usage()) - sent(&before);
    assert!(sent < 10 * 60, "{sent} for 60 calls");
}

/// Sixty batches miss their turns for ten hours. They wait for no longer than their rate has them wait.
#[tokio::test(start_paused = true)]
async fn batches_that_missed_their_turns_for_long_use_the_rate() {
    for rate in ["kind_rate", "lane_rate"] {
        let rate = json!({rate: {"calls": 1, "per": "second", "burst": 1}, "max_in_flight": 100, "max_batch": 1});
        let stack = TestStack::new(policy(rate), taking(Duration::from_millis(20)), Crash::never()).await;
        let tasks = register(&stack, "parcel", 1, 60).await;
        stack.seconds(20).await;
        miss_turns(&stack, 600).await;
        assert!(stack.api.seen().len() < 40, "{}", stack.api.seen().len());
        stack.minutes(5).await;
        assert_eq!(stack.api.seen().len(), tasks.len());
        Counted { a_second: 1.0, burst: 1.0 }.assert_kept(&stack.api.seen(), |_| 1.0);
    }
}

/// Some of a hundred batches miss their turns, as their messages are lost. They do not all go behind the others.
#[tokio::test(start_paused = true)]
async fn batches_that_missed_their_turns_do_not_go_to_the_end_of_a_long_line() {
    let rate = json!({"kind_rate": {"calls": 6, "per": "minute", "burst": 1}});
    let stack = TestStack::new(policy(rate), taking(Duration::from_millis(20)), Crash::never()).await;
    let tasks = register(&stack, "parcel", 100, 1).await;
    stack.seconds(60).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lost = stack.take(QueueName::Handle).await;
    let lost: Vec<HandleMessage> = lost.iter().map(|message| serde_json::from_str(&message.body).unwrap()).collect();
    assert!((2..12).contains(&lost.len()), "{}", lost.len());
    work(&stack, tasks.len()).await;
    Counted { a_second: 0.1, burst: 1.0 }.assert_kept(&stack.api.seen(), |_| 1.0);
    let seen = stack.api.seen();
    let at = |batch| seen.iter().position(|seen| seen.call.batch_id == batch).unwrap();
    let places: Vec<usize> = lost.iter().map(|message| at(message.batch)).collect();
    // Each asks for the same time as a batch that is in time: some are unlucky again and again.
    assert!(places.iter().filter(|place| **place < 75).count() * 2 > places.len(), "{places:?}");
}

/// Batches that wait go in the order in which they came.
#[tokio::test(start_paused = true)]
async fn turns_are_taken_in_order() {
    let rate = json!({"kind_rate": {"calls": 1, "per": "second", "burst": 1}, "linger": 0});
    let stack = TestStack::new(policy(rate), taking(Duration::ZERO), Crash::never()).await;
    let pumps = stack.pumps();
    for n in 0..8 {
        let task = fanfold_tests::order(None, &format!("D{n}"), n);
        stack.register.register(vec![task], &n.to_string()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    fanfold_tests::until(async || stack.api.seen().len() == 8).await;
    let targets: Vec<String> = stack.api.seen().into_iter().map(|seen| seen.call.target).collect();
    let wanted: Vec<String> = (0..8).map(|n| format!("D{n}")).collect();
    assert_eq!(targets, wanted);
    drop(pumps);
}

/// A message that is lost while its batch waits is sent again once the turn has come, and not before.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_message_is_lost_while_it_waits_is_found() {
    let rate = json!({"kind_rate": {"calls": 6, "per": "hour", "burst": 1}});
    let stack = TestStack::new(policy(rate), taking(Duration::ZERO), Crash::never()).await;
    let tasks = register(&stack, "parcel", 2, 1).await;
    stack.seconds(20).await;
    assert_eq!(stack.api.seen().len(), 1);
    let waiting = stack.all_batches().await.into_iter().find(|batch| batch.attempts == 0).unwrap();
    let turn = waiting.turns.at().unwrap();
    assert!(turn > stack.world.now().plus(Duration::from_secs(500)));
    for _ in 0..9 {
        assert_eq!(stack.sweeper.sweep(Default::default()).await.unwrap().batches, 0, "it waits for its turn");
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // Its turn comes, and its message is lost.
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(stack.take(QueueName::Handle).await.len(), 1);
    stack.minutes(6).await;
    assert_eq!(stack.api.seen().len(), 2);
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// The policy has another rate since, and the batch's message is lost.
#[tokio::test(start_paused = true)]
async fn a_batch_is_found_although_a_rate_of_the_past_gave_it_a_late_turn() {
    for rate in ["kind_rate", "lane_rate"] {
        let slow = json!({rate: {"calls": 1, "per": "hour", "burst": 1}, "max_batch": 1});
        let stack = TestStack::new(policy(slow), taking(Duration::ZERO), Crash::never()).await;
        let tasks = register(&stack, "parcel", 1, 2).await;
        stack.seconds(20).await;
        assert_eq!(stack.api.seen().len(), 1);
        stack.put_policy(policy(json!({rate: {"calls": 10, "per": "second"}, "max_batch": 1}))).await;
        // As late as a message can come.
        tokio::time::sleep(Duration::from_secs(900)).await;
        assert_eq!(stack.take(QueueName::Handle).await.len(), 1);
        stack.minutes(6).await;
        assert_eq!(stack.api.seen().len(), 2, "{rate}");
        stack.drain().await;
        stack.assert_settled(&tasks, 1).await;
    }
}

/// A turn is for one attempt: with it, the next one would overtake batches that wait.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_to_be_called_again_has_no_turn_any_more() {
    for rate in ["kind_rate", "lane_rate"] {
        let pauses = json!({"base": "10m", "max": "10m"});
        let rate = json!({rate: {"calls": 1, "per": "minute", "burst": 1}, "max_batch": 1, "backoff": pauses});
        let api = ScriptedApi::new(|_| Err(CallError::again("500")));
        let stack = TestStack::new(policy(rate), api, Crash::never()).await;
        register(&stack, "parcel", 1, 2).await;
        stack.seconds(20).await;
        assert!(stack.all_batches().await.iter().any(|batch| batch.turns.at().is_some()), "one waits for its turn");
        stack.seconds(120).await;
        let batches = stack.all_batches().await;
        assert!(batches.iter().all(|batch| batch.retry_at.is_some() && batch.turns.at().is_none()), "{batches:?}");
    }
}
