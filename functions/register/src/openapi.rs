//! What the route takes and answers.

use axum::http::StatusCode;
use fanfold::messages::RegisterRequest;
use fanfold_http::openapi::Describer;

use crate::http::Answer;

/// Describes the route of this function.
pub fn describe(describer: &mut Describer) {
    describer
        .operation("POST", "/tasks", "registerTasks", "Registers tasks")
        .says("All are registered, or none. Tasks that come without an id are given one.")
        .idempotent()
        .body::<RegisterRequest>()
        .answers::<Answer>(StatusCode::ACCEPTED, "The tasks are stored and will be batched.")
        .leads_to("getTask", "id", "/tasks/0/id")
        .problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_tasks",
            "some tasks can not be accepted: `errors` names them; none was stored",
        )
        .end();
}
