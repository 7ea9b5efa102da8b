//! `GET /health`: whether the function can serve, and what is stale or in error, since when, and how to fix it.

mod findings;

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::clock::Timestamp;
use fanfold::store::gates::{Gate, Stopped};
use fanfold_http::{Json, Problem};
use serde::Serialize;

use self::findings::{Finding, Level, of_dead_letters, of_kinds, of_sweep};
use super::dead_letters;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/health", routing::get(get))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/health", "health", "Reports what is stale or in error, since when, and how to fix it")
        .says(
            "Takes three reads of tables (with up to 100 kinds) and one request per dead-letter queue, however much there \
             is: the rest is what the latest sweep recorded, once a minute. As a check of liveness, look at the HTTP \
             status only.",
        )
        .returns::<Health>("The API can reach its tables and queues.")
        .end();
}

/// How a stack does.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Health {
    /// The worst level of the findings; `ok` if there are none.
    status: Level,
    /// Fanfold's version.
    version: &'static str,
    /// When the latest sweep ended that went through everything, in milliseconds since 1970. Absent if none did yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    swept_at: Option<u64>,
    /// What is in error, then what is stale. Absent if there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
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

async fn get(State(api): State<Arc<Api>>) -> Result<Json<Health>, Problem> {
    let kinds = api.policies.kinds().await?;
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut standing_still: Vec<StandingStill> =
        api.gates.get_many(&kinds).await?.into_iter().filter_map(StandingStill::of).collect();
    standing_still.sort_by(|a, b| a.kind.cmp(&b.kind));
    let sweep = api.sweep.get().await?;
    let mut findings = of_kinds(&standing_still);
    findings.extend(of_dead_letters(&api.dead_letters.list().await.map_err(dead_letters::problem)?));
    findings.extend(of_sweep(&sweep, api.world.now()));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let status = findings.first().map_or(Level::Ok, |worst| worst.level);
    let swept_at = sweep.swept_at.map(|at| at.0);
    Ok(Json(Health { status, version: env!("CARGO_PKG_VERSION"), swept_at, findings, standing_still }))
}
