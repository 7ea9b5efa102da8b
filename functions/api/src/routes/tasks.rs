//! `/tasks`: shows a task, finds one by its key, cancels tasks that wait, and resets tasks that failed.

mod by_key;
mod cancel;
mod reset;

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::{TaskId, derived};
use fanfold::lane::Lane;
use fanfold::results::Kept;
use fanfold::store::batches::{Batch, MemberState};
use fanfold::store::tasks::{Task, TaskStatus};
use fanfold::tracking::ItemState;
#[cfg(feature = "openapi")]
use fanfold_http::Code;
use fanfold_http::{Json, Path, Problem};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::batches::outcome;
use super::results::shown;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/tasks/{id}", routing::get(get))
        .merge(by_key::router())
        .merge(cancel::router())
        .merge(reset::router())
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/tasks/{id}", "getTask", "Returns a task and its status")
        .path::<TaskId>("id", "The task.")
        .returns::<TaskView>("The task.")
        .leads_to("getBatch", "id", "/batch")
        .problem(Code::UnknownTask)
        .end();
    by_key::describe(describer);
    cancel::describe(describer);
    reset::describe(describer);
}

/// A task.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Task"))]
struct TaskView {
    /// Its id.
    id: TaskId,
    /// Its lane.
    lane: Lane,
    /// The lane's kind.
    kind: String,
    /// The lane's target.
    target: String,
    /// The lane's partition.
    partition: u32,
    /// Its status.
    status: TaskStatus,
    /// What the batch API receives for it; absent for a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    /// For a duplicate: the task that has its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<TaskId>,
    /// The batch that claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<Uuid>,
    /// What the batch API returned for it, if it succeeded and results are kept.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<Value>"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    /// Why its result was not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_left_out: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as a short name or number, if the batch API returned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// If it was reset after it had failed: the new task.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_as: Option<TaskId>,
    /// For an item of a fan-out: the item's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<ItemState>,
    /// When it was registered, in milliseconds since 1970.
    created_at: u64,
}

async fn get(State(api): State<Arc<Api>>, Path(id): Path<TaskId>) -> Result<Json<TaskView>, Problem> {
    let task = api.tasks.get(&id).await?.ok_or_else(|| Problem::unknown_task(&id))?;
    Ok(Json(view(&api, task).await?))
}

/// A task as it stands.
async fn view(api: &Api, task: Task) -> Result<TaskView, Problem> {
    let id = task.id;
    let batch = match task.batch {
        Some(batch) => api.batches.get(batch).await?,
        None => None,
    };
    let status = task.status(batch.as_ref());
    let BatchSays { error, code, kept } = match batch.as_ref().and_then(|batch| Some((batch, batch.members.slot(&id)?)))
    {
        Some((batch, slot)) => in_batch(api, batch, slot).await?,
        None => BatchSays::default(),
    };
    let (result, result_left_out) = shown(kept)?;
    let item = match id.item() {
        Some(item) => Some(api.tracking.item(&item).await?),
        None => None,
    };
    let reset_as = match (&id, status) {
        (TaskId::Single(single), TaskStatus::Failed | TaskStatus::Cancelled) => Some(derived::reset_task(*single)),
        _ => None,
    };
    let reset_as = match reset_as {
        Some(again) if api.tasks.is_stored(&again).await? => Some(again),
        _ => None,
    };
    let content = task.content.as_deref().map(serde_json::from_str).transpose();
    let content = content.map_err(|error: serde_json::Error| Problem::internal(&error))?;
    Ok(TaskView {
        id,
        kind: task.lane.kind.clone(),
        target: task.lane.target.clone(),
        partition: task.lane.partition,
        lane: task.lane,
        status,
        content,
        duplicate_of: task.duplicate_of,
        batch: task.batch,
        result,
        result_left_out,
        error,
        code,
        reset_as,
        item,
        created_at: task.created_at.0,
    })
}

/// What a batch says of a task, beside its status.
#[derive(Default)]
struct BatchSays {
    error: Option<String>,
    code: Option<String>,
    kept: Option<Kept>,
}

/// What a batch says of its member.
async fn in_batch(api: &Api, batch: &Batch, slot: usize) -> Result<BatchSays, Problem> {
    Ok(match outcome(batch, slot) {
        (MemberState::Failed, error) => {
            BatchSays { error, code: batch.code(slot).map(str::to_owned), ..BatchSays::default() }
        }
        (MemberState::Succeeded, _) => {
            BatchSays { kept: api.batches.results(batch, [slot]).of(slot).await?, ..BatchSays::default() }
        }
        (MemberState::Dropped | MemberState::Pending, _) => BatchSays::default(),
    })
}
