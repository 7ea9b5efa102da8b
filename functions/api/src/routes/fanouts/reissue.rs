//! `POST /fanouts/{id}/reissue`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Router, routing};
use fanfold::control::Woken;
use fanfold::limits::REISSUE_PAGE_ITEMS;
use fanfold::producing::{ReissueRequest, ReissuedItems};
use fanfold::tracking::{ItemCursor, ItemState};
use fanfold_http::{IdempotencyKey, Json, Parameter, Path, Problem, QueryParameter, decoded};
use serde::Serialize;
use uuid::Uuid;

use super::find;
use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/reissue", routing::post(reissue))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;
    describer
        .operation("POST", "/fanouts/{id}/reissue", "reissueFanout", "Reissues the failed items of a fan-out, or wakes outstanding ones")
        .says(
            "The failed items of a fan-out that has ended become the items of a new fan-out, which a producer fills and seals. Nothing \
             that succeeded is called again. With `items` `outstanding`, a page of the items that are not done is looked at, and what \
             they wait for is woken: follow `next` with the same body until there is none.",
        )
        .path::<Uuid>("id", "The fan-out.")
        .query::<AfterItem>()
        .idempotent()
        .optional_body::<ReissueRequest>()
        .creates::<Reissued>("The new fan-out.")
        .or_returns("With `items` `outstanding`: the fan-out, and what its items wait for.")
        .problem(Code::UnknownFanout)
        .problem(Code::WrongMode)
        .problem(Code::FanoutNotEnded)
        .problem(Code::NothingToReissue)
        .problem(Code::FanoutReissued)
        .problem(Code::InvalidReissue)
        .end();
}

/// `?after=…`, as in `next`.
struct AfterItem;

impl QueryParameter for AfterItem {
    const NAME: &str = "after";
    const ABOUT: &str = "With `items` `outstanding`: where the previous page ended, the value in its `next`.";
    type Value = ItemCursor;

    fn read(text: &str) -> Option<ItemCursor> {
        decoded(text)?.parse().ok()
    }

    fn allowed() -> String {
        "the text in the `next` of the page before".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        fanfold::openapi::item_cursor().to_value()
    }
}

/// A reissue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ReissuedFanout"))]
struct Reissued {
    #[serde(flatten)]
    fanout: FanoutView,
    /// What the items of this page wait for, if outstanding items are woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    woken: Option<Woken>,
    /// The path of the next page, if there may be more outstanding items.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn reissue(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    after: Parameter<AfterItem>,
    key: Option<IdempotencyKey>,
    body: Option<Json<ReissueRequest>>,
) -> Result<(StatusCode, Json<Reissued>), Problem> {
    let request = body.map(|Json(request)| request).unwrap_or_default();
    if request.items == ReissuedItems::Outstanding {
        request.only_wakes()?;
        return Ok((StatusCode::OK, Json(outstanding(&api, id, after.value).await?)));
    }
    let from = (&api.tracking, &api.registrar, &api.tasks);
    let opened = api.producing.reissue(from, id, &request, key.as_ref().map(IdempotencyKey::as_str)).await?;
    let fanout = FanoutView::of_header(opened.fanout);
    Ok((StatusCode::CREATED, Json(Reissued { fanout, woken: None, next: None })))
}

/// Wakes what a page of the outstanding items waits for.
async fn outstanding(api: &Api, id: Uuid, after: Option<ItemCursor>) -> Result<Reissued, Problem> {
    let fanout = find(api, id).await?;
    if fanout.estimated() {
        return Err(fanfold::tracking::TrackingError::Estimated(id).into());
    }
    let page = api.tracking.items_in(&fanout, after, &[ItemState::Pending], REISSUE_PAGE_ITEMS).await?;
    let woken = api.control.wake_items(&api.tracking, &page.items).await.map_err(crate::routes::control::problem)?;
    let path = |next: ItemCursor| format!("/fanouts/{id}/reissue?after={next}");
    Ok(Reissued { fanout: FanoutView::of_header(fanout), woken: Some(woken), next: page.next.map(path) })
}
