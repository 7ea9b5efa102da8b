//! `GET /batches/{id}`, and the results of its members.

mod results;

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::store::batches::{Batch, BatchStatus, MemberState};
#[cfg(feature = "openapi")]
use fanfold_http::Code;
use fanfold_http::{Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::Api;
use crate::notice::NoticeView;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/batches/{id}", routing::get(get)).merge(results::router())
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/batches/{id}", "getBatch", "Returns a batch's members and their outcomes")
        .path::<Uuid>("id", "The batch.")
        .returns::<BatchView>("The batch.")
        .problem(Code::UnknownBatch)
        .end();
    results::describe(describer);
}

/// A batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Batch"))]
struct BatchView {
    /// Its id.
    id: Uuid,
    /// The lane of all its members.
    lane: Lane,
    /// The lane's kind.
    kind: String,
    /// The lane's target.
    target: String,
    /// The lane's partition.
    partition: u32,
    /// Its status.
    status: BatchStatus,
    /// How many attempts have begun.
    attempts: u32,
    /// How many of them do not count, because the batch API refuses every call.
    refused: u32,
    /// When the latest attempt began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    begun_at: Option<u64>,
    /// When the next attempt is due, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_at: Option<u64>,
    /// While its latest call is to be answered later: the deadline for its outcomes, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers_until: Option<u64>,
    /// The dev session that its latest call was sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    dev_session: Option<Uuid>,
    /// While members wait for another attempt: the last error of one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Once a call failed for all of its members: in how many parts those without an outcome are still to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    /// Its members.
    members: Vec<MemberView>,
    /// The notice of its failed tasks, once its delivery has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<NoticeView>,
    /// When it was formed, in milliseconds since 1970.
    created_at: u64,
    /// When it last changed, in milliseconds since 1970.
    updated_at: u64,
}

/// A member of a batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Member"))]
struct MemberView {
    /// The task.
    id: TaskId,
    /// Its outcome.
    outcome: MemberState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as a short name or number, if the batch API returned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// What became of the member in one slot, with its error if it failed.
pub(super) fn outcome(batch: &Batch, slot: usize) -> (MemberState, Option<String>) {
    let outcome = batch.outcome(slot);
    let error = batch.error(slot).filter(|_| outcome == MemberState::Failed);
    (outcome, error.map(str::to_owned))
}

async fn find(api: &Api, id: Uuid) -> Result<Batch, Problem> {
    api.batches.get(id).await?.ok_or_else(|| Problem::unknown_batch(id))
}

async fn get(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<BatchView>, Problem> {
    let batch = find(&api, id).await?;
    let member = |(slot, id): (usize, &TaskId)| {
        let (outcome, error) = outcome(&batch, slot);
        let code = batch.code(slot).filter(|_| outcome == MemberState::Failed);
        MemberView { id: *id, outcome, error, code: code.map(str::to_owned) }
    };
    let members = batch.members.ids().iter().enumerate().map(member).collect();
    Ok(Json(BatchView {
        id,
        kind: batch.lane.kind.clone(),
        target: batch.lane.target.clone(),
        partition: batch.lane.partition,
        status: batch.status,
        attempts: batch.attempts,
        refused: batch.refused,
        begun_at: batch.begun_at.map(|at| at.0),
        retry_at: batch.retry_at.map(|at| at.0),
        answers_until: batch.later.as_ref().map(|later| later.until.0),
        dev_session: batch.dev_session,
        last_error: batch.last_error.clone(),
        parts: (!batch.parts.is_empty()).then(|| batch.parts.count(&batch.unsettled())),
        members,
        notice: batch.notice.begun().then(|| NoticeView::of(&batch.notice)),
        created_at: batch.created_at.0,
        updated_at: batch.updated_at.0,
        lane: batch.lane,
    }))
}
