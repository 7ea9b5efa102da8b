//! What went wrong in other systems of this sort, each once more, here. docs/RELIABILITY.md has the list.

mod carlyle;
mod libraries;
mod plain_algorithm;

use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::GroupMessage;
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, Call, CallError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, done};
use serde_json::json;

async fn stack(script: impl Fn(&Call) -> Result<Answer, CallError> + Send + Sync + 'static) -> TestStack {
    let policy = json!({
        "kind": "parcel", "target": "content.depot", "max_batch": 10, "linger": 1, "max_attempts": 5,
        "backoff": {"base": 1, "max": 4}, "batch_api": {"command": ["truck"]}
    });
    TestStack::new(policy, ScriptedApi::new(script), Crash::never()).await
}

/// Has a leader elected over `ids`. Returns its message, which is not delivered yet.
async fn elected(stack: &TestStack, ids: &[ItemId]) -> GroupMessage {
    stack.register_items(ids).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = stack.take(QueueName::Group).await.remove(0);
    serde_json::from_str(&message.body).unwrap()
}

/// Checks that every item's task is settled in one batch; answers these batches.
async fn settled(stack: &TestStack, ids: &[ItemId]) -> Vec<Batch> {
    let tasks: Vec<TaskId> = ids.iter().copied().map(TaskId::Item).collect();
    stack.assert_settled(&tasks, 10).await.into_values().collect()
}
