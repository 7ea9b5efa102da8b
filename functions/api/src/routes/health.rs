//! `GET /health`: whether the function can serve, and which kinds stand still.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::clock::Timestamp;
use fanfold::store::gates::{Gate, Stopped};
use fanfold_http::{Json, Problem};
use serde::Serialize;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/health", routing::get(get))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation(
            "GET",
            "/health",
            "health",
            "Reports whether the API can read its tables, and which kinds stand still",
        )
        .returns::<Health>("The API can read its tables.")
        .end();
}

/// The health of the API.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Health {
    /// `ok`.
    status: &'static str,
    /// Fanfold's version.
    version: &'static str,
    /// Kinds that stand still, because their batch API refuses every call. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    standing_still: Vec<StandingStill>,
}

/// A kind that stands still: its tasks wait, and use up no attempts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct StandingStill {
    /// The kind.
    kind: String,
    /// Since when it stands still, in milliseconds since 1970.
    since: u64,
    /// What its batch API returned last.
    answer: String,
    /// When the batch API is probed next, in milliseconds since 1970.
    next_probe: u64,
}

impl StandingStill {
    fn of(gate: Gate) -> Option<Self> {
        let Stopped { since: Timestamp(since), answer, probe_at: Timestamp(next_probe), .. } = gate.stopped?;
        Some(Self { kind: gate.kind, since, answer, next_probe })
    }
}

/// Two reads find out whether the tables can be reached.
async fn get(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    let kinds = api.policies.kinds().await?;
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut standing_still: Vec<StandingStill> =
        api.gates.get_many(&kinds).await?.into_iter().filter_map(StandingStill::of).collect();
    standing_still.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), standing_still }))
}
