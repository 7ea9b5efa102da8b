//! `POST /fanouts/{id}/seal`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold_http::{Json, Path, Problem};
use serde::Deserialize;
use uuid::Uuid;

use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/seal", routing::post(seal))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/fanouts/{id}/seal", "sealFanout", "Seals a fan-out: no more items can be added")
        .says("Sealing again changes nothing.")
        .path::<Uuid>("id", "The fan-out.")
        .optional_body::<SealRequest>()
        .returns::<FanoutView>("The fan-out, which may be complete now.")
        .problem(fanfold_http::Code::UnknownFanout)
        .problem(fanfold_http::Code::FanoutProduced)
        .end();
}

/// The optional body of `POST /fanouts/{id}/seal`: an empty object.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct SealRequest {}

async fn seal(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    _: Option<Json<SealRequest>>,
) -> Result<Json<FanoutView>, Problem> {
    let fanout = api.tracking.seal(id).await?;
    Ok(Json(FanoutView::of_header(fanout)))
}
