//! `GET /lanes`: lanes that are busy, or in which tasks wait, page by page.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::clock::Timestamp;
use fanfold::control::{LaneCursor, LaneStanding, PendingCount};
use fanfold::lane::Lane;
use fanfold::limits::{LANE_BATCHES_NAMED, LOOKED_AT_MAX};
use fanfold_http::{Json, Parameter, Problem, encoded};
use serde::Serialize;
use uuid::Uuid;

use super::control::{AfterLane, LaneLimit, OfKind, OfPartition, OfTarget, OnlyPaused, ScopeBody, ScopeView};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/lanes", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/lanes", "listLanes", "Lists lanes that are busy, or in which tasks wait, page by page")
        .says(
            "First lanes with a leader or batches, then others in which tasks wait. With `target`, the lanes of that target by \
             partition. A lane that changes while the list is read may be missing, or be listed twice.",
        )
        .query::<OfKind>()
        .query::<OfTarget>()
        .query::<OfPartition>()
        .query::<OnlyPaused>()
        .query::<LaneLimit>()
        .query::<AfterLane>()
        .returns::<List>("A page of the lanes.")
        .problem(fanfold_http::Code::InvalidScope)
        .end();
}

/// Lanes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Lanes"))]
struct List {
    /// The lanes.
    lanes: Vec<LaneView>,
    /// The path of the next page, if there may be more. A page may be empty although there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Lane"))]
struct LaneView {
    /// The lane: `<kind>:<partition>:<target>`.
    lane: Lane,
    /// Its kind.
    kind: String,
    /// Its target.
    target: String,
    /// Its partition.
    partition: u32,
    /// Whether it is paused.
    paused: bool,
    /// The scopes that pause it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paused_by: Vec<ScopeView>,
    /// Whether its batches are formed without linger.
    draining: bool,
    /// The batch that is being formed, if there is one: it holds the lane's lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<Uuid>,
    /// When its leader got the lane, or when that leader's message was last sent again, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_since: Option<u64>,
    /// The tasks that wait in it.
    pending: PendingView,
    /// Batches in flight.
    in_flight: usize,
    /// The first ten of them.
    batches: Vec<Uuid>,
    /// Batches that ended, but whose acks or notices are not done yet.
    closing: usize,
}

/// Tasks that wait in a lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "PendingTasks"))]
struct PendingView {
    /// How many.
    tasks: u64,
    /// Bytes that they take in calls.
    bytes: u64,
    /// Whether only the first 100 records were counted, and there are more.
    at_least: bool,
    /// When the oldest of those that were counted was registered, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<u64>,
}

impl LaneView {
    fn new(standing: LaneStanding) -> Self {
        let LaneStanding { lock, pending, hold, paused_by } = standing;
        let PendingCount { tasks, bytes, more, oldest, .. } = pending;
        let time = |at: Option<Timestamp>| at.map(|at| at.0);
        Self {
            kind: lock.lane.kind.clone(),
            target: lock.lane.target.clone(),
            partition: lock.lane.partition,
            lane: lock.lane,
            paused: hold.paused,
            paused_by: paused_by.iter().map(ScopeView::new).collect(),
            draining: hold.draining,
            leader: lock.holder,
            leads_since: time(lock.acquired_at),
            pending: PendingView { tasks, bytes, at_least: more, oldest: time(oldest) },
            in_flight: lock.in_flight.len(),
            batches: lock.in_flight.into_iter().take(LANE_BATCHES_NAMED).collect(),
            closing: lock.closing.len(),
        }
    }
}

async fn list(
    State(api): State<Arc<Api>>,
    (kind, target, partition): (Parameter<OfKind>, Parameter<OfTarget>, Parameter<OfPartition>),
    paused: Parameter<OnlyPaused>,
    limit: Parameter<LaneLimit>,
    after: Parameter<AfterLane>,
) -> Result<Json<List>, Problem> {
    let all = kind.value.is_none().then_some(true);
    let (only, most) = (paused.value.is_some(), limit.value.unwrap_or(LOOKED_AT_MAX));
    let parameters = [
        kind.value.as_deref().map(|kind| format!("kind={}", encoded(kind))),
        target.value.as_deref().map(|target| format!("target={}", encoded(target))),
        partition.value.map(|partition| format!("partition={partition}")),
        only.then(|| "paused=true".to_owned()),
        limit.value.map(|limit| format!("limit={limit}")),
    ];
    let scope = ScopeBody { all, kind: kind.value, target: target.value, partition: partition.value }.scope()?;
    let page = api.control.lanes(&scope, only, after.value, most).await?;
    let next = page.next.as_ref().map(|next| path(&parameters, next));
    Ok(Json(List { lanes: page.lanes.into_iter().map(LaneView::new).collect(), next }))
}

/// The path of the page after this one.
fn path(parameters: &[Option<String>], next: &LaneCursor) -> String {
    let cursor = serde_json::to_string(next).unwrap_or_default();
    let given = parameters.iter().flatten().cloned().chain([format!("after={}", encoded(&cursor))]);
    format!("/lanes?{}", given.collect::<Vec<_>>().join("&"))
}
