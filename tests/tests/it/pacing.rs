//! Pacing: rates and concurrent calls, as a batch API that counts sees them.

mod calls;
mod crashes;
mod fair;
mod fairness;
mod rates;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::messages::TaskRequest;
use fanfold_batch_api::Answer;
use fanfold_tests::{ScriptedApi, TestStack, order, until};

/// A batch API whose calls take this long.
fn taking(takes: Duration) -> Arc<ScriptedApi> {
    ScriptedApi::slow(move |_| takes, |_| Ok(Answer::AllSucceeded))
}

/// Registers `each` tasks for each of `lanes` lanes.
async fn register(stack: &TestStack, kind: &str, lanes: usize, each: usize) -> Vec<TaskId> {
    let task = |n: usize| TaskRequest { kind: kind.to_owned(), ..order(None, &format!("D{}", n % lanes), n) };
    let tasks: Vec<TaskRequest> = (0..lanes * each).map(task).collect();
    let mut ids = Vec::new();
    for (n, tasks) in tasks.chunks(1_000).enumerate() {
        let registered = stack.register.register(tasks.to_vec(), &format!("{kind}{n}")).await.unwrap();
        ids.extend(registered.into_iter().map(|task| task.id));
    }
    ids
}

/// Lets pumps work until this many tasks were handled, with a sweep each minute, as in a deployed stack.
async fn work(stack: &TestStack, tasks: usize) {
    let pumps = stack.pumps();
    let minute = std::cell::Cell::new(tokio::time::Instant::now());
    let handled = || stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>();
    until(async || {
        if minute.get().elapsed() > Duration::from_secs(60) {
            minute.set(tokio::time::Instant::now());
            stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.unwrap();
        }
        handled() >= tasks
    })
    .await;
    until(async || stack.backlog().await == 0).await;
    for pump in pumps {
        pump.stop().await;
    }
}
