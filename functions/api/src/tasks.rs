//! Tasks as they are told.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold_http::{Json, Path, Problem};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::Api;
use crate::batches::{MemberOutcome, outcome};

/// The answer of `GET /tasks/{id}`.
#[derive(Debug, Serialize)]
pub(crate) struct TaskView {
    id: TaskId,
    lane: Lane,
    kind: String,
    target: String,
    partition: u32,
    status: TaskStatus,
    content: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    created_at: u64,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Created,
    Batched,
    InProgress,
    Succeeded,
    Failed,
}

pub(crate) async fn get(State(api): State<Arc<Api>>, Path(id): Path<TaskId>) -> Result<Json<TaskView>, Problem> {
    let unknown = || Problem::new(StatusCode::NOT_FOUND, "unknown_task", format!("there is no task {id}"));
    let task = api.tasks.get(&id).await?.ok_or_else(unknown)?;
    // A task's own record says no more than which batch claimed it.
    let (status, error) = match task.batch {
        None => (TaskStatus::Created, None),
        Some(batch) => match api.batches.get(batch).await? {
            None => (TaskStatus::Batched, None),
            Some(batch) => in_batch(&batch, &id),
        },
    };
    let content = serde_json::from_str(&task.content).map_err(|error| Problem::internal(&error))?;
    Ok(Json(TaskView {
        id,
        kind: task.lane.kind.clone(),
        target: task.lane.target.clone(),
        partition: task.lane.partition,
        lane: task.lane,
        status,
        content,
        batch: task.batch,
        error,
        created_at: task.created_at.0,
    }))
}

/// What a batch's record says of one of its tasks.
fn in_batch(batch: &Batch, id: &TaskId) -> (TaskStatus, Option<String>) {
    let Some(slot) = batch.members.slot(id) else { return (TaskStatus::Batched, None) };
    match outcome(batch, slot) {
        (MemberOutcome::Failed, error) => (TaskStatus::Failed, error),
        (MemberOutcome::Succeeded, _) => (TaskStatus::Succeeded, None),
        (MemberOutcome::Pending, _) => match batch.status {
            BatchStatus::Grouping | BatchStatus::Dispatched => (TaskStatus::Batched, None),
            BatchStatus::InProgress | BatchStatus::Done => (TaskStatus::InProgress, None),
        },
    }
}
