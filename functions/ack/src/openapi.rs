//! What the route takes and returns.

use axum::http::StatusCode;
use fanfold::messages::AckRequest;
use fanfold_http::Code;
use fanfold_http::openapi::Describer;

use crate::AckAnswer;

/// Describes the route of this function.
pub fn describe(describer: &mut Describer) {
    describer
        .operation("POST", "/acks", "ackItems", "Acks items: they are done")
        .says(
            "An item may be acked more than once. The answer shows each fan-out as it stands then, and the groups of \
             which acks were refused. If everything was refused, it is a problem.",
        )
        .body::<AckRequest>()
        .answers::<AckAnswer>(StatusCode::OK, "The acks were applied, but for those of the refused groups.")
        .problem(Code::InvalidAcks)
        .end();
}
