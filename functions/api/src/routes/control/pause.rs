//! `POST /pause`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold_http::{Json, Problem};

use super::view::SwitchedView;
use super::{ScopeBody, response};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/pause", routing::post(pause))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;

    describer
        .operation("POST", "/pause", "pause", "Pauses a lane, a target, a kind, or everything")
        .says(
            "No call of a batch API begins there later than 7 seconds after the response. Calls that had begun run to their end, and \
             their outcomes count. Tasks are registered as usual, and wait. Pausing again changes nothing.",
        )
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .problem(Code::TooManySwitches)
        .end();
}

async fn pause(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    response(&scope, api.control.pause(&scope).await)
}
