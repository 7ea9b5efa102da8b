//! `DELETE /policies/{kind}`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::aws::{Looked, StoreError};
use fanfold::limits::POLICY_USE_PAGES_MAX;
use fanfold::policy::Policy;
use fanfold_http::{Choice, Code, Json, Kind, Parameter, Path, Problem};

use super::stored;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/policies/{kind}", routing::delete(delete))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("DELETE", "/policies/{kind}", "deletePolicy", "Deletes the policy of a kind")
        .says(
            "Refuses while tasks of the kind wait or are in a batch that has not ended, unless it is forced. It may \
             miss tasks that were registered in the last seconds. Tasks of a kind without a policy are not lost: they \
             wait, and are handled within minutes after the kind has a policy again. What is paused stays paused until \
             it is resumed. Workers may use the deleted policy for some more seconds.",
        )
        .path::<Kind>("kind", "The kind of task.")
        .query::<Force>()
        .returns::<Policy>("The policy as it was.")
        .problem(Code::UnknownPolicy)
        .problem(Code::PolicyInUse)
        .end();
}

/// `?force=true` deletes a policy even if tasks of the kind wait.
struct Force;

impl Choice for Force {
    const NAME: &str = "force";
    const ALLOWED: &[&str] = &["true", "false"];
    const ABOUT: &str =
        "`true` deletes it even if tasks of the kind wait; they are handled when the kind has a policy again.";
}

/// Checks, then deletes. A task that is registered in between waits for the next policy.
async fn delete(
    State(api): State<Arc<Api>>,
    Path(Kind(kind)): Path<Kind>,
    force: Parameter<Force>,
) -> Result<Json<Policy>, Problem> {
    let policy = stored(&api, &kind).await?;
    if force.value != Some("true")
        && let Some(used) = used(&api, &kind).await?
    {
        let rest = "`?force=true` deletes it nevertheless, and its tasks then wait until the kind has a policy again";
        return Err(Problem::new(Code::PolicyInUse, format!("the policy of kind `{kind}` is in use: {used}; {rest}")));
    }
    api.policies.delete(&kind).await?;
    Ok(Json(policy))
}

/// Where a policy is in use, if it is. Looks for waiting tasks first: those that are claimed meanwhile are then in a batch.
async fn used(api: &Api, kind: &str) -> Result<Option<String>, StoreError> {
    let pending = api.tasks.pending_of(kind, POLICY_USE_PAGES_MAX).await?;
    if let Looked::Found(lane) = &pending {
        return Ok(Some(format!("tasks wait in lane `{lane}`")));
    }
    let busy = api.locks.busy_of(kind, POLICY_USE_PAGES_MAX).await?;
    Ok(match (busy, pending) {
        (Looked::Found(lane), _) => Some(format!("lane `{lane}` has a batch that has not ended")),
        (Looked::TooMany, _) | (_, Looked::TooMany) => {
            Some("so many tasks of other kinds wait that those of this kind cannot be looked for".to_owned())
        }
        _ => None,
    })
}
