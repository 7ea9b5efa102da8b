//! `GET /fanouts/{id}/masks`: a page of groups with their bitfields, from which a picture can be made.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::bits::Bits;
use fanfold::limits::MASKS_PER_PAGE_MAX;
use fanfold::messages::mask;
use fanfold::store::groups::GroupRecord;
use fanfold_http::{After, Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use super::find;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/masks", routing::get(masks))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation(
            "GET",
            "/fanouts/{id}/masks",
            "listMasks",
            "Lists the bitfields of a fan-out's item groups, page by page",
        )
        .path::<Uuid>("id", "The fan-out.")
        .paged("group")
        .returns::<Masks>("A page of bitfields.")
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

/// Bitfields of a fan-out's groups, in the order in which `GET /fanouts/{id}/groups` lists them. A group that ended long ago is
/// left out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Masks {
    /// The groups.
    groups: Vec<GroupMasks>,
    /// The path of the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The states of a group's items: those in none of the bitfields have succeeded. A bitfield is base64: item `i` is bit `i % 8` of
/// byte `i / 8`, the least significant bit first. Bytes missing at the end are zero, and a bitfield without a bit is left out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct GroupMasks {
    /// The group.
    id: Uuid,
    /// How many items it has.
    upto: u32,
    /// Items that are not done.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<String>"))]
    #[serde(serialize_with = "mask::serialize", skip_serializing_if = "Bits::is_zero")]
    pending: Bits,
    /// Items that failed.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<String>"))]
    #[serde(serialize_with = "mask::serialize", skip_serializing_if = "Bits::is_zero")]
    failed: Bits,
    /// Items that are duplicates.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<String>"))]
    #[serde(serialize_with = "mask::serialize", skip_serializing_if = "Bits::is_zero")]
    duplicates: Bits,
    /// Items that were not done when the fan-out ended.
    #[cfg_attr(feature = "openapi", schemars(with = "Option<String>"))]
    #[serde(serialize_with = "mask::serialize", skip_serializing_if = "Bits::is_zero")]
    missing: Bits,
}

impl From<GroupRecord> for GroupMasks {
    fn from(group: GroupRecord) -> Self {
        let GroupRecord { id, size: upto, pending, failed, duplicates, missing, .. } = group;
        Self { id, upto, pending, failed, duplicates, missing }
    }
}

async fn masks(State(api): State<Arc<Api>>, Path(id): Path<Uuid>, After(after): After) -> Result<Json<Masks>, Problem> {
    let fanout = find(&api, id).await?;
    let page = api.tracking.groups_of(&fanout, after, MASKS_PER_PAGE_MAX).await?;
    let last = page.groups.last().filter(|_| page.more);
    let next = last.map(|last| format!("/fanouts/{}/masks?after={}", fanout.id, last.id));
    let states = api.tracking.group_states(&fanout, &page.groups).await?;
    Ok(Json(Masks { groups: states.into_iter().map(GroupMasks::from).collect(), next }))
}
