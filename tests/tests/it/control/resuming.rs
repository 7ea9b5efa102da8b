//! The end of a pause wakes what waits, whatever is lost.

use std::time::Duration;

use fanfold::control::Scope;
use fanfold_tests::{QueueName, TestStack, policy};
use serde_json::json;

use super::{kind, lane, lock, lose_all, pause, resume, settled, target};

#[tokio::test(start_paused = true)]
async fn what_waits_is_woken_at_once() {
    for scope in [Scope::All, kind(), target("117"), Scope::Lane(lane("117"))] {
        let stack = TestStack::with(json!({"max_batch": 4, "max_in_flight": 1})).await;
        let tasks = stack.register_orders("117", 0..10).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        pause(&stack, &scope).await;
        stack.drain().await;
        assert_eq!(lock(&stack, "117").await.in_flight.len(), 1);
        let begun = stack.world.now();
        resume(&stack, &scope).await;
        stack.drain().await;
        stack.assert_settled(&tasks, 4).await;
        assert!(stack.world.now().since(begun) < Duration::from_secs(30), "{scope}: no sweep is waited for");
    }
}

/// The process that resumes it dies right after the write, or all its messages are lost.
#[tokio::test(start_paused = true)]
async fn a_resume_that_dies_is_finished_by_a_sweep() {
    for in_flight in [false, true] {
        let stack = TestStack::with(json!({"max_batch": 4, "max_in_flight": 1})).await;
        let tasks = stack.register_orders("117", 0..10).await;
        if in_flight {
            stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        }
        pause(&stack, &kind()).await;
        stack.drain().await;
        // Younger than what a sweep takes for lost.
        let young = stack.register_orders("118", 0..3).await;
        resume(&stack, &kind()).await;
        lose_all(&stack).await;
        tokio::time::sleep(Duration::from_secs(11)).await;
        let report = stack.sweep_now().await;
        assert_eq!((report.lanes, report.batches, report.switches), (2, u64::from(in_flight), 1), "{report:?}");
        settled(&stack, &[tasks, young].concat()).await;
    }
}

/// The switch stays until a sweep that began some time later. A pause meanwhile changes it again.
#[tokio::test(start_paused = true)]
async fn a_sweep_takes_no_switch_away_that_was_used_again() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    pause(&stack, &kind()).await;
    lose_all(&stack).await;
    resume(&stack, &kind()).await;
    lose_all(&stack).await;
    assert_eq!(stack.sweep_now().await.switches, 0, "an index may not show everything yet");
    stack.drain().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (scope, request) = (kind(), fanfold_sweep::SweepRequest::default());
    let (_, paused) = futures::join!(stack.sweeper.sweep(request), stack.control.pause(&scope));
    paused.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let board = stack.control.switchboard().await.unwrap();
    assert!(board.hold(&lane("117")).paused);
    let more = stack.register_orders("117", 10..13).await;
    stack.drain().await;
    assert_eq!(stack.claimed(&more).await, 0);
    resume(&stack, &kind()).await;
    settled(&stack, &[tasks, more].concat()).await;
}

/// A registrant that has the pause cached reads the switches again before it leaves a lane unwoken.
#[tokio::test(start_paused = true)]
async fn tasks_that_come_right_after_it_have_their_message() {
    let stack = TestStack::with(json!({"linger": 0})).await;
    pause(&stack, &kind()).await;
    let held = stack.register_orders("117", 0..1).await;
    assert_eq!(stack.backlog().await, 0);
    resume(&stack, &kind()).await;
    lose_all(&stack).await;
    let tasks = stack.register_orders("118", 0..1).await;
    assert!(stack.backlog().await > 0);
    stack.drain().await;
    assert_eq!(stack.claimed(&tasks).await, 1);
    stack.sweep().await;
    settled(&stack, &[held, tasks].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_paused_stays_as_it_is() {
    let stack = TestStack::with(json!({})).await;
    let switched = resume(&stack, &kind()).await;
    assert_eq!((switched.switch, switched.paused_by.len(), stack.backlog().await), (None, 0, 0));
    pause(&stack, &kind()).await;
    assert_eq!(resume(&stack, &target("117")).await.paused_by, [kind()]);
    let tasks = stack.register_orders("117", 0..2).await;
    stack.put_policy(policy(json!({}))).await;
    stack.drain().await;
    assert!(stack.api.seen().is_empty());
    resume(&stack, &kind()).await;
    settled(&stack, &tasks).await;
}
