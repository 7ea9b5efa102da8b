//! What the route takes and returns.

use axum::http::StatusCode;
use fanfold::messages::RegisterRequest;
use fanfold_http::Code;
use fanfold_http::openapi::Describer;

use crate::http::Answer;

/// Describes the route of this function.
pub fn describe(describer: &mut Describer) {
    describer
        .operation("POST", "/tasks", "registerTasks", "Registers tasks")
        .says(
            "All are checked before the first is stored. Tasks that come without an id are given one. A request that got no \
             answer, or 500 or 503, may have stored some of its tasks, and these are handled: repeated under its \
             Idempotency-Key, or with ids that the client chose, it is completed, and no task is stored twice.",
        )
        .idempotent()
        .body::<RegisterRequest>()
        .answers::<Answer>(StatusCode::ACCEPTED, "The tasks are stored and will be batched.")
        .leads_to("getTask", "id", "/tasks/0/id")
        .problem(Code::InvalidTasks)
        .end();
}
