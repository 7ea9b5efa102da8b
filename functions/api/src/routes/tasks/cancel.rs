//! `DELETE /tasks/{id}`, and `POST /tasks/cancel`: tasks that no batch has claimed are cancelled.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::TaskId;
use fanfold_http::{Code, Json, Parameter, Path, Problem, encoded};
use serde::Serialize;

use super::{TaskView, view};
use crate::Api;
use crate::routes::control::{AfterTask, ScopeBody};

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/tasks/{id}", routing::delete(cancel)).route("/tasks/cancel", routing::post(select))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("DELETE", "/tasks/{id}", "cancelTask", "Cancels a task that no batch has claimed")
        .says(
            "The task is never called. If it is an item of a fan-out, the item counts as failed. Another task may have \
             its key. Cancelling it again changes nothing.",
        )
        .path::<TaskId>("id", "The task.")
        .returns::<TaskView>("The task: it is cancelled.")
        .problem(Code::UnknownTask)
        .problem(Code::TaskNotWaiting)
        .end();
    describer
        .operation("POST", "/tasks/cancel", "cancelTasks", "Cancels the tasks of a kind, a target or a lane that no batch has claimed")
        .says("Cancels one page of them: follow `next` with the same body until there is none. Tasks that are registered meanwhile may be \
             cancelled, too.")
        .query::<AfterTask>()
        .body::<ScopeBody>()
        .returns::<Cancelled>("The number of tasks of this page that are cancelled.")
        .problem(Code::InvalidScope)
        .end();
}

/// A page of the tasks of a scope that wait.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "CancelledTasks"))]
struct Cancelled {
    /// How many are cancelled.
    cancelled: u64,
    /// The path of the next page, if there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn cancel(State(api): State<Arc<Api>>, Path(id): Path<TaskId>) -> Result<Json<TaskView>, Problem> {
    let unknown = || Problem::unknown_task(&id);
    let mut task = api.tasks.get(&id).await?.ok_or_else(unknown)?;
    // If it is cancelled already, that request may have died before it released the key and acked the item.
    if task.waits() || task.cancelled {
        api.cancelling.cancel([id]).await?;
        task = api.tasks.get(&id).await?.ok_or_else(unknown)?;
    }
    if task.cancelled {
        return Ok(Json(view(&api, task).await?));
    }
    let why = match (task.batch, task.duplicate_of) {
        (Some(batch), _) => format!("batch {batch} has claimed it"),
        (None, Some(of)) => format!("it is a duplicate of {of}"),
        (None, None) => "it is being registered; repeat the request later".to_owned(),
    };
    Err(Problem::new(Code::TaskNotWaiting, format!("task {id} cannot be cancelled: {why}")))
}

async fn select(
    State(api): State<Arc<Api>>,
    after: Parameter<AfterTask>,
    Json(body): Json<ScopeBody>,
) -> Result<Json<Cancelled>, Problem> {
    let scope = body.scope_of_kind()?;
    let page = api.cancelling.cancel_page(&scope, after.value.as_ref()).await?;
    let path = |next| format!("/tasks/cancel?after={}", encoded(&serde_json::to_string(&next).unwrap_or_default()));
    Ok(Json(Cancelled { cancelled: page.cancelled, next: page.next.map(path) }))
}
