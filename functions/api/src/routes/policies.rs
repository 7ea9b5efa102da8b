//! `/policies`: stored, shown, listed, deleted, and which dev session has the calls of a kind.

#[cfg(feature = "openapi")]
mod body;
mod delete;
mod dev;

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
    let router = Router::new().route("/policies", routing::get(list));
    router.route("/policies/{kind}", routing::get(get).put(put)).merge(delete::router()).merge(dev::router())
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
    delete::describe(describer);
    dev::describe(describer);
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
    stored(&api, &kind).await.map(Json)
}

/// The policy of a kind as it is stored now.
async fn stored(api: &Api, kind: &str) -> Result<Policy, Problem> {
    let policy = api.policies.read(kind).await?;
    policy.ok_or_else(|| Problem::unknown_policy(kind))
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
    errors.extend(policy.needs_commands().filter(|_| !api.allow_commands));
    if !errors.is_empty() {
        return Err(Problem::fields(Code::InvalidPolicy, errors));
    }
    api.policies.put(&policy).await?;
    Ok(Json(policy))
}
