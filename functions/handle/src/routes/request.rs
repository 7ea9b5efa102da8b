//! `GET /batches/{id}/request`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::TaskId;
use fanfold::limits::SHOWN_BODY_BYTES_MAX;
use fanfold::policy::{BatchApi, no_policy};
use fanfold::store::batches::{Batch, BatchStatus, MemberState};
use fanfold_batch_api::{Call, Request, ShownRequest};
use fanfold_http::{Code, Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::call::call_of;
use crate::{Handle, HandleError};

/// Why a member is left out whose task has expired.
const GONE: &str = "its task is no longer kept";

pub(super) fn router() -> Router<Arc<Handle>> {
    Router::new().route("/batches/{id}/request", routing::get(get))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    let summary = "Returns the request that a batch's batch API is called with";
    describer
        .operation("GET", "/batches/{id}/request", "getBatchRequest", summary)
        .says(
            "The request is not stored. It is written again, from the contents of the tasks and the policy as it is now. \
             While members have no outcome, it is that of the call that runs or comes next. Once all have one, it is that \
             of a call for all members that were not dropped.",
        )
        .path::<Uuid>("id", "The batch.")
        .returns::<RequestView>("The request.")
        .problem(Code::UnknownBatch)
        .problem(Code::UnknownPolicy)
        .end();
}

/// The request of a batch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "BatchRequest"))]
struct RequestView {
    /// The members in it, in their order there.
    members: Vec<TaskId>,
    /// The members that it is for, but that cannot be in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// The request.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<ShownRequest>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A member that is not in a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct LeftOut {
    /// The task.
    id: TaskId,
    /// Why it is left out.
    problem: String,
}

async fn get(State(handle): State<Arc<Handle>>, Path(id): Path<Uuid>) -> Result<Json<RequestView>, Problem> {
    let batch = handle.batches.get(id).await?.ok_or(HandleError::UnknownBatch(id))?;
    let kind = &batch.lane.kind;
    let policy = handle.policies.read(kind).await?;
    let policy = policy.ok_or_else(|| Problem::new(Code::UnknownPolicy, no_policy(kind)))?;
    let (members, gone) = handle.members_at(&batch, slots(&batch)).await?;
    let id = |slot: usize| batch.members.ids().get(slot).copied();
    let gone = gone.into_iter().filter_map(id).map(|id| LeftOut { id, problem: GONE.to_owned() }).collect();
    Ok(Json(view(&call_of(&batch, members), gone, &policy.batch_api)))
}

/// The slots that a request is shown for.
fn slots(batch: &Batch) -> Vec<usize> {
    match batch.status {
        BatchStatus::Done => {
            (0..batch.members.len()).filter(|slot| batch.outcome(*slot) != MemberState::Dropped).collect()
        }
        BatchStatus::Grouping | BatchStatus::Formed | BatchStatus::InProgress => batch.asked(),
    }
}

fn view(call: &Call, mut left_out: Vec<LeftOut>, batch_api: &BatchApi) -> RequestView {
    let none = |left_out, problem: String| RequestView {
        members: Vec::new(),
        left_out,
        request: None,
        problem: Some(problem),
    };
    let request = match Request::new(batch_api, call) {
        Ok(request) => request,
        Err(error) => return none(left_out, error.message),
    };
    let unsent = request.unsent();
    let unfit = request.mapping.iter().flat_map(|mapping| &mapping.unfit);
    let unfit = unfit.filter_map(|(at, problem)| Some((call.members.get(*at)?.id, problem)));
    left_out.extend(unfit.map(|(id, problem)| LeftOut { id, problem: problem.clone() }));
    let members: Vec<TaskId> = call.members.iter().map(|member| member.id).filter(|id| !unsent.contains(id)).collect();
    if members.is_empty() {
        return none(left_out, "no member can be in it, so there is no call".to_owned());
    }
    match request.shown(batch_api, SHOWN_BODY_BYTES_MAX) {
        Ok(request) => RequestView { members, left_out, request: Some(request), problem: None },
        Err(error) => none(left_out, error.message),
    }
}

impl From<HandleError> for Problem {
    fn from(error: HandleError) -> Self {
        match error {
            HandleError::Store(error) => error.into(),
            HandleError::Queue(error) => error.into(),
            HandleError::UnknownBatch(_) => Self::new(Code::UnknownBatch, error),
            HandleError::NotFormed(_) => Self::internal(&error),
        }
    }
}
