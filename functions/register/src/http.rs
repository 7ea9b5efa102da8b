//! `POST /tasks`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use fanfold::ids::TaskId;
use fanfold::messages::{RegisterRequest, TaskRequest};
use fanfold::policy::FieldError;
use fanfold_http::{IdempotencyKey, Json, Problem};
use serde::Serialize;

use crate::{Outcome, Placed, Register, RegisterError, Registered, TaskFault};

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

impl Register {
    /// Registers tasks under an idempotency key, from which tasks without an id get theirs. A repetition is told from
    /// another request under the same key by what is stored: a task must not be called known that never was.
    async fn register_once(&self, tasks: Vec<TaskRequest>, key: &str) -> Result<Vec<Registered>, Problem> {
        // SQS message ids and Fanfold's own request ids are UUIDs, so no key can be one of those.
        let request_id = format!("http:{key}");
        let keyed: Vec<bool> = tasks.iter().map(|task| task.id.is_none()).collect();
        let placed = self.place(tasks, &request_id).await?;
        let content = |(task, keyed): (&Placed, &bool)| keyed.then(|| (task.id, task.content.clone()));
        let mut contents: HashMap<TaskId, String> = placed.iter().zip(&keyed).filter_map(content).collect();
        // One read tells of nearly every repetition before anything is stored.
        let first = placed.iter().map(|task| task.id).find(|id| contents.contains_key(id));
        let repeated = !self.tasks.contents(first.as_slice()).await?.is_empty();
        if repeated {
            self.compare(&contents).await?;
        }
        let registered = self.store(placed).await?;
        if !repeated {
            let new = registered.iter().filter(|task| task.outcome != Outcome::Known);
            new.for_each(|task| drop(contents.remove(&task.id)));
            self.compare(&contents).await?;
        }
        Ok(registered)
    }

    /// Refuses tasks that are stored with another content.
    async fn compare(&self, contents: &HashMap<TaskId, String>) -> Result<(), Problem> {
        let ids: Vec<TaskId> = contents.keys().copied().collect();
        let stored = self.tasks.contents(&ids).await?;
        match contents.iter().find(|(id, content)| stored.get(id).is_some_and(|stored| stored != *content)) {
            None => Ok(()),
            Some((id, _)) => Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused",
                format!("the idempotency key was used before with other values: `content` of task {id} differs"),
            )),
        }
    }
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Refused(faults) => {
                let field_error = |fault: TaskFault| FieldError { field: fault.path(), problem: fault.problem };
                Self::fields("invalid_tasks", faults.into_iter().map(field_error).collect())
            }
            RegisterError::Store(error) => error.into(),
            RegisterError::Queue(error) => error.into(),
            RegisterError::Tracking(error) => error.into(),
        }
    }
}
