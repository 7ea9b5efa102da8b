//! `/policies`: stored, shown, listed.

#[cfg(feature = "openapi")]
mod body;

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::json::{self, Unique};
use fanfold::policy::{FieldError, Policy};
use fanfold_http::{Code, Json, Kind, Path, Problem};
use serde::Serialize;
use serde_json::Value;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/policies", routing::get(list)).route("/policies/{kind}", routing::get(get).put(put))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/policies", "listPolicies", "Lists all policies")
        .returns::<List>("The policies.")
        .end();
    describer
        .operation("GET", "/policies/{kind}", "getPolicy", "Returns the policy of a kind")
        .path::<Kind>("kind", "The kind of task.")
        .returns::<Policy>("The policy, with its defaults.")
        .problem(Code::UnknownPolicy)
        .end();
    describer
        .operation("PUT", "/policies/{kind}", "putPolicy", "Stores the policy of a kind")
        .says("Replaces the kind's policy. Workers may use the previous one for some more seconds.")
        .path::<Kind>("kind", "The kind of task.")
        .body::<body::PolicyBody>()
        .returns::<Policy>("The policy as it is stored.")
        .leads_to("getPolicy", "kind", "/kind")
        .problem(Code::InvalidPolicy)
        .end();
}

/// All policies.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Policies"))]
struct List {
    /// The policies, one per kind.
    policies: Vec<Policy>,
}

async fn list(State(api): State<Arc<Api>>) -> Result<Json<List>, Problem> {
    Ok(Json(List { policies: api.policies.list().await? }))
}

async fn get(State(api): State<Arc<Api>>, Path(Kind(kind)): Path<Kind>) -> Result<Json<Policy>, Problem> {
    let policy = api.policies.read(&kind).await?;
    let unknown = || Problem::new(Code::UnknownPolicy, format!("there is no policy of kind `{kind}`"));
    policy.map(Json).ok_or_else(unknown)
}

/// The path names the kind, so the body need not.
async fn put(
    State(api): State<Arc<Api>>,
    Path(Kind(kind)): Path<Kind>,
    Json(Unique(mut body)): Json<Unique>,
) -> Result<Json<Policy>, Problem> {
    body.entry("kind").or_insert_with(|| kind.clone().into());
    let policy: Policy = json::shape(Value::Object(body))?;
    let mut errors = policy.check().map_or_else(|error| error.0, |()| Vec::new());
    if policy.kind != kind {
        let problem = format!("is `{}`, but the path names `{kind}`; it may be left out", policy.kind);
        errors.push(FieldError { field: "kind".to_owned(), problem });
    }
    let way = &policy.batch_api.way;
    if way.only_local() && !api.allow_commands {
        let problem = "is allowed only in the local runner; `batch_api.url` is allowed here".to_owned();
        errors.push(FieldError { field: format!("batch_api.{}", way.field()), problem });
    }
    if !errors.is_empty() {
        return Err(Problem::fields(Code::InvalidPolicy, errors));
    }
    api.policies.put(&policy).await?;
    Ok(Json(policy))
}
