//! `POST /tasks`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing};
use fanfold::messages::RegisterRequest;
use fanfold::registering::check_count;
use fanfold_http::{IdempotencyKey, Json, Problem};
use serde::Serialize;

use crate::{Register, Registered};

/// The route of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(register: Arc<Register>) -> Router {
    Router::new().route("/tasks", routing::post(tasks)).with_state(register)
}

/// Describes the route of this function.
#[cfg(feature = "openapi")]
pub fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/tasks", "registerTasks", "Registers tasks")
        .says(
            "Fanfold checks all tasks before it stores the first. Tasks without an id get one. A request that got no response, \
             or 500 or 503, may have stored some of its tasks, and these are handled. Repeat it under its Idempotency-Key, or \
             with ids of your own: Fanfold stores the rest, and no task twice.",
        )
        .idempotent()
        .body::<RegisterRequest>()
        .accepts::<Answer>("The tasks are stored, and will be handled in batches.")
        .leads_to("getTask", "id", "/tasks/0/id")
        .problem(fanfold_http::Code::InvalidTasks)
        .end();
}

/// The result of a registration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "RegisterAnswer"))]
struct Answer {
    /// The tasks, in the order of the request.
    tasks: Vec<Registered>,
}

async fn tasks(
    State(register): State<Arc<Register>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<RegisterRequest>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    check_count(&request.tasks)?;
    let tasks = match key {
        None => register.register(request.tasks, &register.new_request_id()).await?,
        Some(IdempotencyKey(key)) => register.register_once(request.tasks, &key).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(Answer { tasks })))
}
