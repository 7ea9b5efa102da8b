//! `GET /fanouts/{id}/items?state=…`: which items are in a state, as ranges, page by page.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::{ItemId, ItemRange};
use fanfold::limits::{KEYS_PER_READ_MAX, RANGES_PER_PAGE_MAX};
use fanfold::tracking::ItemState;
use fanfold_http::{After, Choice, Json, Parameter, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use super::find;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/items", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts/{id}/items", "listItems", "Lists a fan-out's items in a state, page by page")
        .says("Items of groups that were added appear within seconds.")
        .path::<Uuid>("id", "The fan-out.")
        .query::<InState>()
        .paged("group")
        .returns::<Items>("A page of the items in this state.")
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

/// `?state=…`
struct InState;

impl Choice for InState {
    const NAME: &str = "state";
    const ALLOWED: &[&str] = &["pending", "succeeded", "failed", "duplicate", "missing"];
    const ABOUT: &str = "The state of the items; by default `pending`.";
}

/// Items of a fan-out that are in one state.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Items {
    /// Ids and ranges that acks take: `<fanout>:<group>:<index>` and `<fanout>:<group>:<first>-<last>`, both ends included.
    items: Vec<String>,
    /// The path of the next page, if there may be one. A page may be empty and still have a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Some groups a page, fewer if their items make many ranges.
async fn list(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    state: Parameter<InState>,
    After(after): After,
) -> Result<Json<Items>, Problem> {
    let (name, state) = match state.value {
        Some("succeeded") => ("succeeded", ItemState::Succeeded),
        Some("failed") => ("failed", ItemState::Failed),
        Some("duplicate") => ("duplicate", ItemState::Duplicate),
        Some("missing") => ("missing", ItemState::Missing),
        _ => ("pending", ItemState::Pending),
    };
    let fanout = find(&api, id).await?;
    let page = api.tracking.groups_of(&fanout, after, KEYS_PER_READ_MAX).await?;
    let (mut items, mut last, mut more) = (Vec::new(), None, page.more);
    for (group, ranges) in api.tracking.in_state(&fanout, &page.groups, state).await? {
        if items.len() >= RANGES_PER_PAGE_MAX {
            more = true;
            break;
        }
        let range = |(first, last)| ItemRange { first: ItemId { fanout: id, group, index: first }, last };
        items.extend(ranges.into_iter().map(|ends| range(ends).shortly()));
        last = Some(group);
    }
    let next = last.filter(|_| more).map(|last| format!("/fanouts/{id}/items?state={name}&after={last}"));
    Ok(Json(Items { items, next }))
}
