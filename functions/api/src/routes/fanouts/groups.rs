//! `GET /fanouts/{id}/groups`: a page of groups, with nothing else, so that it costs little.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::ItemGroup;
use fanfold::limits::GROUPS_PER_PAGE_MAX;
use fanfold_http::{After, Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use super::find;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/groups", routing::get(groups))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts/{id}/groups", "listGroups", "Lists a fan-out's item groups, page by page")
        .path::<Uuid>("id", "The fan-out.")
        .paged("group")
        .returns::<Groups>("A page of item groups.")
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

/// Groups of a fan-out, first those of its opening. Groups that were added appear within seconds: the list is complete when the
/// sum of `upto` over all pages is the fan-out's `total`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Groups {
    /// The groups.
    groups: Vec<ItemGroup>,
    /// The path of the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn groups(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    After(after): After,
) -> Result<Json<Groups>, Problem> {
    let fanout = find(&api, id).await?;
    let page = api.tracking.groups_of(&fanout, after, GROUPS_PER_PAGE_MAX).await?;
    let last = page.groups.last().filter(|_| page.more);
    let next = last.map(|last| format!("/fanouts/{}/groups?after={}", fanout.id, last.id));
    Ok(Json(Groups { groups: page.groups, next }))
}
