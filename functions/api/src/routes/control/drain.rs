//! `POST /drain`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold_http::{Json, Problem};

use super::view::SwitchedView;
use super::{ScopeBody, response};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/drain", routing::post(drain))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;

    describer
        .operation(
            "POST",
            "/drain",
            "drain",
            "Forms the batches of a scope at once, until all that waits now is in a batch",
        )
        .says(
            "Until then leaders do not linger. The draining ends by itself, or by `POST /resume`. If the scope is \
             paused, the pause ends.",
        )
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .problem(Code::TooManySwitches)
        .end();
}

async fn drain(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    response(&scope, api.control.drain(&scope).await)
}
