//! `POST /tasks`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use fanfold::json;
use fanfold::messages::{RegisterRequest, TaskRequest};
use fanfold::registering::{Streamed, check_count};
use fanfold_http::{IdempotencyKey, Json, JsonOrLines, Problem};
use serde::Serialize;

use crate::lines::{LineAnswer, RefusedLine, answer};
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
             with ids of your own: Fanfold stores the rest, and no task twice. \
             A stream (application/x-ndjson) has one task per line, and the response has a line for each: Fanfold refuses only \
             the tasks that it cannot accept, and stores the others. The status says only that the stream was read.",
        )
        .idempotent()
        .body::<RegisterRequest>()
        .or_lines::<TaskRequest>()
        .accepts::<Answer>(
            "The tasks are stored, and will be handled in batches. For a stream: the result of each line.",
        )
        .answered_by_lines::<LineAnswer>()
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
    body: JsonOrLines<RegisterRequest>,
) -> Result<Response, Problem> {
    let key = key.as_ref().map(IdempotencyKey::as_str);
    match body {
        JsonOrLines::Json(request) => together(&register, key, request).await,
        JsonOrLines::Lines(body) => each(&register, key, &body).await,
    }
}

/// Registers all tasks, or none.
async fn together(register: &Register, key: Option<&str>, request: RegisterRequest) -> Result<Response, Problem> {
    check_count(request.tasks.len())?;
    let tasks = match key {
        None => register.register(request.tasks, &register.new_request_id()).await?,
        Some(key) => register.register_once(request.tasks, key).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(Answer { tasks })).into_response())
}

/// Registers the tasks of a stream, each by itself.
async fn each(register: &Register, key: Option<&str>, body: &[u8]) -> Result<Response, Problem> {
    // Counted first, so that a stream with too many lines is not read.
    check_count(json::lines(body).count())?;
    let (mut numbers, mut streamed, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for (number, line) in json::lines(body) {
        let read = json::read_line::<TaskRequest>(line);
        let (task, error): (Streamed, _) = match read {
            Ok(task) => (Ok(task), None),
            Err(error) => (Err(line.to_vec()), Some(RefusedLine::from(error))),
        };
        numbers.push(number);
        streamed.push(task);
        unread.push(error);
    }
    let outcomes = register.register_stream(streamed, key).await?;
    let lines = numbers.into_iter().zip(unread).zip(outcomes);
    let answers = lines.filter_map(|((number, unread), outcome)| {
        let outcome = outcome.map(|outcome| outcome.map_err(RefusedLine::from)).or(unread.map(Err))?;
        Some(LineAnswer::new(number, outcome))
    });
    Ok((StatusCode::ACCEPTED, answer(&answers.collect::<Vec<_>>())?).into_response())
}
