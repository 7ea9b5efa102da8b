//! A worker dies at each request of a pause, its end, a drain and a cancellation, or its answer is lost.

use std::collections::BTreeSet;

use fanfold::control::Scope;
use fanfold::ids::TaskId;
use fanfold::store::fanouts::FanoutState;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, deaths, order, policy};
use serde_json::json;

use super::{drain, kind, lane, pause, resume};

/// Pauses a lane in the middle of its work, and resumes or drains it.
async fn switched(crash: Crash, scope: Scope, drains: bool) -> Option<String> {
    let changes = json!({"max_batch": 2, "max_in_flight": 2, "linger": 3});
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let tasks = stack.register_items_of_nobody(5).await;
    stack.deliver(QueueName::Elect).await;
    stack.deliver(QueueName::Group).await;
    pause(&stack, &scope).await;
    stack.drain().await;
    let calls = stack.api.seen().len();
    stack.sweep().await;
    stack.drain().await;
    assert_eq!((stack.api.seen().len(), stack.backlog().await), (calls, 0), "nothing happens while it is paused");
    if drains {
        drain(&stack, &scope).await
    } else {
        resume(&stack, &scope).await
    };
    stack.drain().await;
    for _ in 0..2 {
        stack.sweep().await;
        stack.drain().await;
    }
    stack.assert_settled(&tasks, 2).await;
    stack.sweep().await;
    let switches = stack.insist(async || stack.control.switchboard().await).await;
    assert_eq!(switches.iter().count(), 0);
    stack.crash.struck()
}

/// Cancels some tasks of a fan-out while a batch may take them.
async fn cancelled(crash: Crash) -> Option<String> {
    let changes = json!({"max_batch": 3, "max_in_flight": 1, "key": "content.order"});
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let (fanout, ids) = stack.open(6, true).await;
    stack.register(ids[..5].iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
    stack.register(vec![order(Some(ids[5]), "118", 5)]).await;
    let all: Vec<TaskId> = ids.iter().map(|id| TaskId::Item(*id)).collect();
    stack.deliver(QueueName::Elect).await;
    stack.deliver(QueueName::Group).await;
    let wanted: Vec<TaskId> = [1, 3, 4, 5].map(|at| all[at]).into();
    stack.insist(async || stack.cancelling.cancel(wanted.iter().copied()).await).await;
    stack.drain().await;
    for _ in 0..2 {
        stack.sweep().await;
        stack.drain().await;
    }
    let called: BTreeSet<TaskId> =
        stack.api.seen().iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect();
    for id in &all {
        let task = stack.tasks.get(id).await.unwrap().unwrap();
        assert_eq!((called.contains(id), task.batch.is_some()), (!task.cancelled, !task.cancelled), "{task:?}");
    }
    let header = stack.header(fanout).await;
    assert_eq!((header.state, header.ended()), (FanoutState::Completed, true));
    let ended = stack.completions().await;
    assert_eq!((ended.len(), ended[0].succeeded, ended[0].failed), (1, called.len() as u64, 6 - called.len() as u64));
    stack.assert_locks_free().await;
    assert_eq!(stack.sweep().await.cancelled, 0);
    stack.crash.struck()
}

trait Alone {
    async fn register_items_of_nobody(&self, number: usize) -> Vec<TaskId>;
}

impl Alone for TestStack {
    /// Tasks of no fan-out, under ids of their own, so that a repetition finds them.
    async fn register_items_of_nobody(&self, number: usize) -> Vec<TaskId> {
        let ids: Vec<TaskId> = (1..=number as u128).map(|id| TaskId::Single(uuid::Uuid::from_u128(id))).collect();
        let task =
            |(n, id): (usize, &TaskId)| fanfold::messages::TaskRequest { id: Some(*id), ..order(None, "117", n) };
        self.register(ids.iter().enumerate().map(task).collect()).await;
        ids
    }
}

async fn switches_at(moment: Moment, scope: Scope, drains: bool) {
    let struck = at_every_request(moment, async |crash| switched(crash, scope.clone(), drains).await).await;
    assert!(struck.len() > 40, "{struck:?}");
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    switches_at(Moment::Before, kind(), false).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    switches_at(Moment::After, Scope::Lane(lane("117")), true).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    switches_at(Moment::AnswerLost, Scope::All, true).await;
}

deaths!(
    cancelled,
    30,
    a_cancellation_dies_before_a_request: Before,
    a_cancellation_dies_after_a_request: After,
    a_cancellation_loses_an_answer: AnswerLost,
);
