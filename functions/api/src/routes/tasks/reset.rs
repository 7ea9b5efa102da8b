//! `POST /tasks/{id}/reset`, and `POST /tasks/reset`: tasks on their own that failed wait again.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::control::ResetError;
use fanfold::ids::TaskId;
use fanfold::store::batches::RecordCursor;
use fanfold_http::{Code, Json, Parameter, Path, Problem, QueryParameter, decoded};
use serde::Serialize;

use super::{TaskView, view};
use crate::Api;
use crate::routes::control::ScopeBody;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/tasks/{id}/reset", routing::post(reset)).route("/tasks/reset", routing::post(select))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/tasks/{id}/reset", "resetTask", "Resets a task on its own that failed or was cancelled")
        .says(
            "Its work is registered once more, as a new task whose id follows from its own. Resetting it again returns \
             the same new task. A task that is an item is reissued with its fan-out instead.",
        )
        .path::<TaskId>("id", "The task.")
        .returns::<TaskView>("The new task.")
        .problem(Code::UnknownTask)
        .problem(Code::TaskNotFailed)
        .problem(Code::TaskIsItem)
        .problem(Code::InvalidTasks)
        .end();
    describer
        .operation(
            "POST",
            "/tasks/reset",
            "resetTasks",
            "Resets the failed tasks of a kind, a target or a lane that are not items",
        )
        .says("Looks at one page of the records of all batches: follow `next` with the same body until there is none.")
        .query::<AfterRecord>()
        .body::<ScopeBody>()
        .returns::<Reset>("How many failed tasks of this page were reset.")
        .problem(Code::InvalidScope)
        .end();
}

/// `?after=…`, as in `next`.
struct AfterRecord;

impl QueryParameter for AfterRecord {
    const NAME: &str = "after";
    const ABOUT: &str = "Where the previous page ended: the value in its `next`.";
    type Value = RecordCursor;

    fn read(text: &str) -> Option<RecordCursor> {
        decoded(text)?.parse().ok()
    }

    fn allowed() -> String {
        "the text in the `next` of the page before".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        fanfold::openapi::record_cursor().to_value()
    }
}

/// A page of a scope whose failed tasks were reset.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ResetTasks"))]
struct Reset {
    /// How many wait again.
    reset: u64,
    /// How many were reset before, or are duplicates by now: another task has their key.
    known: u64,
    /// How many the present policy of their kind does not accept.
    refused: u64,
    /// What is wrong with the first of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The path of the next page, if there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn reset(State(api): State<Arc<Api>>, Path(id): Path<TaskId>) -> Result<Json<TaskView>, Problem> {
    let now = api.resetting.reset(id).await.map_err(problem)?;
    let task = api.tasks.get(&now.id).await?.ok_or_else(|| Problem::unknown_task(&now.id))?;
    Ok(Json(view(&api, task).await?))
}

async fn select(
    State(api): State<Arc<Api>>,
    after: Parameter<AfterRecord>,
    Json(body): Json<ScopeBody>,
) -> Result<Json<Reset>, Problem> {
    let scope = body.scope_of_kind()?;
    let page = api.resetting.reset_page(&scope, after.value.as_ref()).await.map_err(problem)?;
    Ok(Json(Reset {
        reset: page.reset,
        known: page.known,
        refused: page.refused,
        problem: page.problem,
        next: page.next.map(|next| format!("/tasks/reset?after={next}")),
    }))
}

fn problem(error: ResetError) -> Problem {
    match error {
        ResetError::Unknown(id) => Problem::unknown_task(&id),
        ResetError::Item { .. } => Problem::new(Code::TaskIsItem, error),
        ResetError::NotFailed { .. } => Problem::new(Code::TaskNotFailed, error),
        ResetError::Register(error) => error.into(),
        ResetError::Store(error) => error.into(),
    }
}
