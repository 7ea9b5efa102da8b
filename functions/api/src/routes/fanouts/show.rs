//! `GET /fanouts/{id}`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::limits::GROUPS_PER_ANSWER_MAX;
use fanfold_http::{Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use super::groups::{Groups, page};
use super::view::FanoutView;
use super::{find, view};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}", routing::get(show))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts/{id}", "getFanout", "Returns how far a fan-out has come")
        .path::<Uuid>("id", "The fan-out.")
        .returns::<Shown>("The fan-out as it stands, and its groups, or the first of them.")
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

/// A fan-out, and which groups its items are in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "FanoutWithGroups"))]
struct Shown {
    #[serde(flatten)]
    fanout: FanoutView,
    #[serde(flatten)]
    groups: Groups,
}

async fn show(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<Shown>, Problem> {
    let fanout = find(&api, id).await?;
    let groups = page(&api, &fanout, None, GROUPS_PER_ANSWER_MAX).await?;
    Ok(Json(Shown { fanout: view(&api, fanout).await?, groups }))
}
