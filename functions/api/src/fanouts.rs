//! Fan-outs: opened, added to, sealed, told.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use fanfold::ids::ItemGroup;
use fanfold::policy::PolicyError;
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_http::{IdempotencyKey, Json, Path, Problem};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Api;
use crate::view::FanoutView;

/// Items to add to a fan-out.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct AddRequest {
    /// How many.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = fanfold::limits::ITEMS_PER_ADD)))]
    #[serde(deserialize_with = "fanfold::whole::u32")]
    items: u32,
}

/// The body of `POST /fanouts/{id}/seal`, if there is one: an empty object.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SealRequest {}

/// An opened fan-out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(crate) struct Opened {
    #[serde(flatten)]
    fanout: FanoutView,
    /// The groups of the items it was opened with.
    groups: Vec<ItemGroup>,
}

/// Items that were added.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(crate) struct Added {
    /// The fan-out.
    fanout: Uuid,
    /// The groups of these items.
    groups: Vec<ItemGroup>,
}

type Created<T> = (StatusCode, [(HeaderName, String); 1], Json<T>);

pub(crate) async fn open(
    State(api): State<Arc<Api>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<OpenRequest>,
) -> Result<Created<Opened>, Problem> {
    if let Some(notify) = &request.notify {
        notify.check("notify").map_err(|PolicyError(errors)| Problem::fields("invalid_destination", errors))?;
    }
    let key = key.as_ref().map(|IdempotencyKey(key)| key.as_str());
    let opened = api.tracking.open(request, key).await?;
    let location = format!("/fanouts/{}", opened.fanout.id);
    // The index shows new groups late, so it is not asked.
    let body = Opened { fanout: FanoutView::of_header(opened.fanout), groups: opened.groups };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

pub(crate) async fn get(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<FanoutView>, Problem> {
    let fanout = api.tracking.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
    view(&api, fanout).await
}

pub(crate) async fn add(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    key: Option<IdempotencyKey>,
    Json(request): Json<AddRequest>,
) -> Result<(StatusCode, Json<Added>), Problem> {
    let key = key.as_ref().map(|IdempotencyKey(key)| key.as_str());
    let groups = api.tracking.add(id, request.items, key).await?;
    Ok((StatusCode::CREATED, Json(Added { fanout: id, groups })))
}

pub(crate) async fn seal(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    _: Option<Json<SealRequest>>,
) -> Result<Json<FanoutView>, Problem> {
    let fanout = api.tracking.seal(id).await?;
    view(&api, fanout).await
}

async fn view(api: &Api, fanout: Fanout) -> Result<Json<FanoutView>, Problem> {
    let progress = api.tracking.progress(&fanout).await?;
    Ok(Json(FanoutView::new(fanout, progress)))
}
