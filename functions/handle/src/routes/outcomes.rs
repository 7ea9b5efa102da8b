//! `POST /batches/{id}/outcomes`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Router, routing};
use fanfold::headers::TOKEN;
use fanfold::limits::BATCH_MEMBERS_MAX;
use fanfold::messages::OutcomesRequest;
use fanfold::policy::FieldError;
use fanfold_http::{Code, Json, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::Handle;
use crate::posts::{PostError, Taken};

pub(super) fn router() -> Router<Arc<Handle>> {
    Router::new().route("/batches/{id}/outcomes", routing::post(post))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/batches/{id}/outcomes", "postOutcomes", "Posts outcomes of a call that is answered later")
        .says(
            "For batch APIs that answered a call with 202, under a policy with `answers_within`. It needs no \
             signature, but the token that came with the call. Outcomes may come in parts, and repeating them does no \
             harm. The first outcome of a member counts. A `retry` counts only while the call's outcomes are \
             awaited.",
        )
        .path::<Uuid>("id", "The batch.")
        .header(TOKEN, "The value of the header `Fanfold-Token` of the call.")
        .body::<OutcomesRequest>()
        .returns::<OutcomesAnswer>("The outcomes are recorded, except for entries that change nothing.")
        .problem(Code::UnknownBatch)
        .problem(Code::WrongToken)
        .problem(Code::InvalidOutcomes)
        .end();
}

/// What became of posted outcomes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct OutcomesAnswer {
    /// How many entries say what holds now.
    recorded: usize,
    /// How many entries changed nothing: their member has another outcome, or may have been called again since.
    ignored: usize,
    /// How many members of the batch have no outcome yet.
    open: usize,
}

async fn post(
    State(handle): State<Arc<Handle>>,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    Json(request): Json<OutcomesRequest>,
) -> Result<Json<OutcomesAnswer>, Problem> {
    check(&request)?;
    let token = headers.get(TOKEN).and_then(|token| token.to_str().ok()).unwrap_or_default();
    let Taken { recorded, ignored, open } = handle.post(id, token, &request).await?;
    Ok(Json(OutcomesAnswer { recorded, ignored, open }))
}

/// Checks what does not depend on the batch.
fn check(request: &OutcomesRequest) -> Result<(), Problem> {
    let members = request.members.len();
    let refused =
        |field: String, problem: String| Err(Problem::fields(Code::InvalidBody, vec![FieldError { field, problem }]));
    if members > BATCH_MEMBERS_MAX as usize {
        let problem = format!("has {members} entries, at most {BATCH_MEMBERS_MAX} are allowed");
        return refused("members".to_owned(), problem);
    }
    for (at, member) in request.members.iter().enumerate() {
        if let Some(seconds) = member.retry_after.filter(|seconds| *seconds < 0.0) {
            let problem = format!("is {seconds}, seconds from 0 on are allowed");
            return refused(format!("members[{at}].retry_after"), problem);
        }
    }
    Ok(())
}

impl From<PostError> for Problem {
    fn from(error: PostError) -> Self {
        match error {
            PostError::WrongToken(_) => Self::new(Code::WrongToken, error),
            PostError::Refused(faults) => Self::fields(Code::InvalidOutcomes, faults),
            PostError::Handle(error) => error.into(),
        }
    }
}
