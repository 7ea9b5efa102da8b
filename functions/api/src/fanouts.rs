//! Fan-outs: opened, added to, sealed, shown.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use fanfold::ids::ItemGroup;
use fanfold::limits::{GROUPS_AT_ONCE, GROUPS_PER_PAGE};
use fanfold::policy::PolicyError;
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_http::{After, Code, IdempotencyKey, Json, Path, Problem};
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

/// A fan-out, and which groups its items are in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(crate) struct Told {
    #[serde(flatten)]
    fanout: FanoutView,
    #[serde(flatten)]
    groups: Page,
}

/// Groups of a fan-out, those it was opened with first. Groups that were added show up within seconds: all are there once the
/// sum of `upto` over all pages is the fan-out's `total`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Groups"))]
pub(crate) struct Page {
    /// The groups.
    groups: Vec<ItemGroup>,
    /// The path of the next page, if there may be more groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
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
        notify.check("notify").map_err(|PolicyError(errors)| Problem::fields(Code::InvalidDestination, errors))?;
    }
    let key = key.as_ref().map(|IdempotencyKey(key)| key.as_str());
    let opened = api.tracking.open(request, key).await?;
    let location = format!("/fanouts/{}", opened.fanout.id);
    // The index shows new groups late, so it is not asked.
    let body = Opened { fanout: FanoutView::of_header(opened.fanout), groups: opened.groups };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

pub(crate) async fn get(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<Told>, Problem> {
    let fanout = find(&api, id).await?;
    let groups = page(&api, &fanout, None, GROUPS_AT_ONCE).await?;
    let Json(fanout) = view(&api, fanout).await?;
    Ok(Json(Told { fanout, groups }))
}

/// A page of groups, with nothing else, so that it costs little.
pub(crate) async fn groups(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    After(after): After,
) -> Result<Json<Page>, Problem> {
    let fanout = find(&api, id).await?;
    Ok(Json(page(&api, &fanout, after, GROUPS_PER_PAGE).await?))
}

async fn find(api: &Api, id: Uuid) -> Result<Fanout, Problem> {
    Ok(api.tracking.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?)
}

async fn page(api: &Api, fanout: &Fanout, after: Option<Uuid>, limit: usize) -> Result<Page, Problem> {
    let page = api.tracking.groups_of(fanout, after, limit).await?;
    let last = page.groups.last().filter(|_| page.more);
    let next = last.map(|last| format!("/fanouts/{}/groups?after={}", fanout.id, last.id));
    Ok(Page { groups: page.groups, next })
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
