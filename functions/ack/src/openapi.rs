//! What the route takes and answers.

use axum::http::StatusCode;
use fanfold::messages::AckRequest;
use fanfold_http::openapi::Describer;

use crate::AckAnswer;

/// Describes the route of this function.
pub fn describe(describer: &mut Describer) {
    describer
        .operation("POST", "/acks", "ackItems", "Tells that items are done")
        .says(
            "An item may be acked more than once. Each fan-out is answered as it stands then; groups that were refused \
             are named. A request of which everything was refused is answered with a problem.",
        )
        .body::<AckRequest>()
        .answers::<AckAnswer>(StatusCode::OK, "The acks were applied, but for those of the refused groups.")
        .problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_acks", "none of the items exists")
        .end();
}
