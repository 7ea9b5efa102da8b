//! Policies: stored, shown, listed.

use std::sync::Arc;

use axum::extract::State;
use fanfold::json::{self, Unique};
use fanfold::policy::{FieldError, Policy};
use fanfold_http::{Code, Json, Kind, Path, Problem};
use serde::Serialize;
use serde_json::Value;

use crate::Api;

/// All policies.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Policies"))]
pub(crate) struct List {
    /// The policies, one a kind.
    policies: Vec<Policy>,
}

pub(crate) async fn list(State(api): State<Arc<Api>>) -> Result<Json<List>, Problem> {
    Ok(Json(List { policies: api.policies.list().await? }))
}

pub(crate) async fn get(State(api): State<Arc<Api>>, Path(Kind(kind)): Path<Kind>) -> Result<Json<Policy>, Problem> {
    let policy = api.policies.read(&kind).await?;
    let unknown = || Problem::new(Code::UnknownPolicy, format!("there is no policy of kind `{kind}`"));
    policy.map(Json).ok_or_else(unknown)
}

/// The path names the kind, so the body need not.
pub(crate) async fn put(
    State(api): State<Arc<Api>>,
    Path(Kind(kind)): Path<Kind>,
    Json(Unique(mut body)): Json<Unique>,
) -> Result<Json<Policy>, Problem> {
    body.entry("kind").or_insert_with(|| kind.clone().into());
    let policy: Policy = json::shape(Value::Object(body))?;
    let mut errors = policy.check().map_or_else(|error| error.0, |()| Vec::new());
    if policy.kind != kind {
        let problem = format!("is `{}`, the path names `{kind}`; it may be left out", policy.kind);
        errors.push(FieldError { field: "kind".to_owned(), problem });
    }
    if policy.batch_api.command.is_some() && !api.allow_commands {
        let problem = "is for the local runner only, `batch_api.url` is allowed".to_owned();
        errors.push(FieldError { field: "batch_api.command".to_owned(), problem });
    }
    if !errors.is_empty() {
        return Err(Problem::fields(Code::InvalidPolicy, errors));
    }
    api.policies.put(&policy).await?;
    Ok(Json(policy))
}
