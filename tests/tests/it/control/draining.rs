//! A scope that drains forms its batches without linger, until what waited is gone.

use std::time::Duration;

use fanfold::control::{Scope, SwitchState};
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold_tests::{QueueName, TestStack};
use serde_json::json;

use super::{drain, kind, lane, lose_all, pause, resume, settled, target};

#[tokio::test(start_paused = true)]
async fn leaders_that_linger_form_their_batches_at_once() {
    for scope in [Scope::All, kind(), target("117"), Scope::Lane(lane("117"))] {
        let stack = TestStack::with(json!({"linger": 600})).await;
        let tasks = stack.register_orders("117", 0..3).await;
        stack.pass(&[QueueName::Elect]).await;
        let begun = stack.world.now();
        drain(&stack, &scope).await;
        stack.seconds(12).await;
        assert_eq!(stack.claimed(&tasks).await, 3, "{scope}");
        assert!(stack.world.now().since(begun) < Duration::from_secs(30));
        settled(&stack, &tasks).await;
        assert_eq!(stack.api.seen().len(), 1, "the message for which the leader lingered finds its batch formed");
    }
}

/// A sweep takes a leader for silent that would still linger elsewhere.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_message_is_lost_is_woken_by_the_next_sweep() {
    let stack = TestStack::with(json!({"linger": 600})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect]).await;
    drain(&stack, &kind()).await;
    lose_all(&stack).await;
    assert_eq!(stack.sweep().await.leaders, 1);
    stack.deliver(QueueName::Group).await;
    assert_eq!(stack.claimed(&tasks).await, 3);
    settled(&stack, &tasks).await;
}

/// Nor does a worker wait for them, where the request makes the leader itself.
#[tokio::test(start_paused = true)]
async fn what_comes_meanwhile_waits_in_no_worker() {
    let stack = TestStack::with(json!({"linger": "900ms"})).await;
    drain(&stack, &kind()).await;
    tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    let begun = stack.world.now();
    let tasks = stack.register_orders("117", 0..3).await;
    assert_eq!(stack.deliver(QueueName::Group).await, 1, "the request makes the leader");
    assert_eq!((stack.claimed(&tasks).await, stack.world.now().since(begun)), (3, Duration::ZERO));
    settled(&stack, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_what_waited_is_gone() {
    let stack = TestStack::with(json!({"linger": 600})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    drain(&stack, &kind()).await;
    let board = stack.control.switchboard().await.unwrap();
    assert_eq!(board.iter().map(|(_, switch)| switch.state).collect::<Vec<_>>(), [SwitchState::Draining]);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(stack.sweep_now().await.switches, 0, "they wait");
    stack.seconds(12).await;
    assert_eq!(stack.claimed(&tasks).await, 3);
    assert_eq!(stack.sweep_now().await.switches, 1);
    // From then on batches linger as usual.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let more = stack.register_orders("117", 10..13).await;
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&more).await, 0);
    settled(&stack, &[tasks, more].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_paused_goes_on_and_what_was_lost_is_found() {
    let stack = TestStack::with(json!({"linger": 600, "max_batch": 2, "max_in_flight": 1})).await;
    let tasks = stack.register_orders("117", 0..5).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    pause(&stack, &kind()).await;
    stack.drain().await;
    drain(&stack, &kind()).await;
    lose_all(&stack).await;
    for _ in 0..8 {
        stack.sweep().await;
        stack.seconds(12).await;
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 2).await;
}

/// A target that is paused by itself keeps its tasks for long. The kind does not drain until then.
#[tokio::test(start_paused = true)]
async fn what_is_paused_by_itself_is_not_waited_for() {
    let stack = TestStack::with(json!({"linger": 600})).await;
    pause(&stack, &target("117")).await;
    let held = stack.register_orders("117", 0..3).await;
    let tasks = stack.register_orders("118", 0..3).await;
    drain(&stack, &kind()).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(stack.sweep_now().await.switches, 0, "tasks of another target wait");
    stack.seconds(12).await;
    assert_eq!((stack.claimed(&tasks).await, stack.claimed(&held).await), (3, 0));
    assert_eq!(stack.sweep_now().await.switches, 1);
    resume(&stack, &target("117")).await;
    stack.minutes(15).await;
    settled(&stack, &[held, tasks].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_it_is_resumed() {
    let stack = TestStack::with(json!({"linger": 600})).await;
    drain(&stack, &kind()).await;
    resume(&stack, &kind()).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.seconds(60).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    settled(&stack, &tasks).await;
}
