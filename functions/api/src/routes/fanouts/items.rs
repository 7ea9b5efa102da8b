//! `POST /fanouts/{id}/items`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing};
use fanfold::ids::ItemGroup;
use fanfold_http::{IdempotencyKey, Json, Path, Problem};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/items", routing::post(add))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;
    describer
        .operation("POST", "/fanouts/{id}/items", "addItems", "Adds items to an open fan-out")
        .path::<Uuid>("id", "The fan-out.")
        .idempotent()
        .body::<AddRequest>()
        .creates::<Added>("The groups of the new items.")
        .problem(Code::UnknownFanout)
        .problem(Code::FanoutNotOpen)
        .problem(Code::WrongMode)
        .problem(Code::OutOfRange)
        .end();
}

/// Items to add to a fan-out.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AddRequest {
    /// How many to add.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = fanfold::limits::ITEMS_PER_ADD_MAX)))]
    #[serde(deserialize_with = "fanfold::whole::u32")]
    items: u32,
}

/// Items that were added.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "AddedItems"))]
struct Added {
    /// The fan-out.
    fanout: Uuid,
    /// The groups of the new items.
    groups: Vec<ItemGroup>,
}

async fn add(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    key: Option<IdempotencyKey>,
    Json(request): Json<AddRequest>,
) -> Result<(StatusCode, Json<Added>), Problem> {
    let groups = api.tracking.add(id, request.items, key.as_ref().map(IdempotencyKey::as_str)).await?;
    Ok((StatusCode::CREATED, Json(Added { fanout: id, groups })))
}
