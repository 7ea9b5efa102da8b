//! `POST /resume`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold_http::{Json, Problem};

use super::view::SwitchedView;
use super::{ScopeBody, response};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/resume", routing::post(resume))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;

    describer
        .operation("POST", "/resume", "resume", "Resumes a scope that is paused, or that drains")
        .says(
            "What waits there is woken within seconds, in a very large scope within two minutes. Only this scope's own switch is \
             changed: a target that was paused on its own stays paused when its kind is resumed.",
        )
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .end();
}

async fn resume(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    response(&scope, api.control.resume(&scope).await)
}
