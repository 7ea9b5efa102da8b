//! Filling a batch: what it takes, and when it goes.

mod changes;
mod distinct;
mod enough;
mod flush;
mod limits;
mod priority;
mod quiet;
mod short;

use fanfold::ids::TaskId;
use fanfold::messages::TaskRequest;
use fanfold_batch_api::Call;
use fanfold_register::Registration;
use fanfold_tests::TestStack;
use serde_json::{Value, json};

/// A task of the depot `117` with more fields.
fn parcel(fields: Value) -> TaskRequest {
    let content = fanfold_tests::changed(json!({"depot": "117"}), fields);
    TaskRequest { id: None, kind: "parcel".to_owned(), content }
}

/// Registers tasks in one request.
async fn register(stack: &TestStack, request: &str, tasks: Vec<TaskRequest>) -> Vec<TaskId> {
    let registered = stack.insist(async || stack.register.register(tasks.clone(), request).await).await;
    assert!(registered.iter().all(|task| !matches!(task.outcome, Registration::Duplicate { .. })));
    registered.into_iter().map(|task| task.id).collect()
}

/// Registers each task in a request of its own.
async fn register_each(stack: &TestStack, request: &str, tasks: Vec<TaskRequest>) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for (n, task) in tasks.into_iter().enumerate() {
        ids.extend(register(stack, &format!("{request}-{n}"), vec![task]).await);
    }
    ids
}

/// Checks that batches have claimed all of these tasks. Messages that find nothing to do may still come.
async fn assert_batched(stack: &TestStack, tasks: &[TaskId]) {
    assert_eq!(stack.claimed(tasks).await, tasks.len());
}

/// Lets everything be done, and what a worker that died has left be healed. Each task ends in one batch.
async fn heal(stack: &TestStack, tasks: &[TaskId], max_batch: usize) {
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(tasks, max_batch).await;
}

/// A field of each member of a call.
fn members(call: &Call, field: &str) -> Vec<Value> {
    let content = |content: &str| serde_json::from_str::<Value>(content).unwrap()[field].take();
    call.members.iter().map(|member| content(member.content.get())).collect()
}

/// A field of the members of every call, in the order of the calls.
fn calls(stack: &TestStack, field: &str) -> Vec<Vec<Value>> {
    stack.api.seen().iter().map(|seen| members(&seen.call, field)).collect()
}
