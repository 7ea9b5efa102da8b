//! Whether the function can serve.

use std::sync::Arc;

use axum::extract::State;
use fanfold_http::{Json, Problem};
use serde::Serialize;

use crate::Api;

/// Holds what no kind does, so that there is never such a policy.
const NO_KIND: &str = ":health";

/// The tables can be reached.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
    /// Fanfold's version.
    version: &'static str,
}

/// One read of the smallest table tells whether tables can be reached at all.
pub(crate) async fn get(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    api.policies.read(NO_KIND).await?;
    Ok(Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }))
}
