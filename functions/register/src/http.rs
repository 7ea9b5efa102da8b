//! `POST /tasks`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use fanfold::messages::RegisterRequest;
use fanfold::policy::FieldError;
use fanfold_http::{Code, IdempotencyKey, Json, Problem};
use serde::Serialize;

use crate::{Register, RegisterError, Registered, TaskFault};

/// What became of the tasks of a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "RegisterAnswer"))]
pub(crate) struct Answer {
    /// The tasks, in the order of the request.
    tasks: Vec<Registered>,
}

/// The route of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(register: Arc<Register>) -> Router {
    Router::new().route("/tasks", post(tasks)).with_state(register)
}

async fn tasks(
    State(register): State<Arc<Register>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<RegisterRequest>,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let tasks = match key {
        None => register.register(request.tasks, &register.new_request_id()).await?,
        Some(IdempotencyKey(key)) => register.register_once(request.tasks, &key).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(Answer { tasks })))
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Refused(faults) => {
                let field_error = |fault: TaskFault| FieldError { field: fault.path(), problem: fault.problem };
                Self::fields(Code::InvalidTasks, faults.into_iter().map(field_error).collect())
            }
            RegisterError::KeyReused { .. } => Self::new(Code::IdempotencyKeyReused, error),
            RegisterError::Store(error) => error.into(),
            RegisterError::Queue(error) => error.into(),
            RegisterError::Tracking(error) => error.into(),
        }
    }
}
