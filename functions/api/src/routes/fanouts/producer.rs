//! `POST /fanouts/{id}/producer/resume`, and a fan-out's producer as the API shows it.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::producing::BadRow;
use fanfold::store::producers::{Partition, PartitionState};
use fanfold_http::{Json, Path, Problem};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::find;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/producer/resume", routing::post(resume))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;
    describer
        .operation(
            "POST",
            "/fanouts/{id}/producer/resume",
            "resumeProducer",
            "Lets failed partitions of a producer go on",
        )
        .says("Each goes on where it stopped. Partitions that have not failed are left as they are.")
        .path::<Uuid>("id", "The fan-out.")
        .returns::<ProducerView>("The partitions as they stand then.")
        .problem(Code::UnknownFanout)
        .problem(Code::NoProducer)
        .problem(Code::FanoutNotOpen)
        .end();
}

/// How far a fan-out's producer has come.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ProducerProgress"))]
pub(super) struct ProducerView {
    /// Its partitions, in their order.
    partitions: Vec<PartitionView>,
}

/// How far a partition has come.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Partition"))]
struct PartitionView {
    /// Which, from 0.
    partition: u32,
    /// How far it has come.
    state: PartitionState,
    /// Where its next page begins, as its source said; `null`: at the beginning, or there is none.
    cursor: Value,
    /// Rows of the pages that are registered.
    rows: u64,
    /// Those of them that are in other partitions.
    dropped: u64,
    /// Those of them that are no tasks that can be accepted.
    bad: u64,
    /// Those of them whose tasks were dropped, because another task has their key.
    duplicates: u64,
    /// What is wrong with the first bad rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad_rows: Vec<BadRow>,
    /// Times in a row that its source failed.
    tries: u32,
    /// When the source is asked again after that, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    /// Why it failed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// When it last changed, in milliseconds since 1970.
    updated_at: u64,
}

impl ProducerView {
    pub(super) fn new(partitions: Vec<Partition>) -> Self {
        let view = |partition: Partition| PartitionView {
            partition: partition.number,
            state: partition.state,
            cursor: partition.cursor.and_then(|cursor| serde_json::from_str(&cursor).ok()).unwrap_or_default(),
            rows: partition.rows,
            dropped: partition.dropped,
            bad: partition.bad,
            duplicates: partition.duplicates,
            bad_rows: partition.bad_rows,
            tries: partition.tries,
            next_at: partition.due.map(|due| due.0),
            error: partition.error,
            updated_at: partition.updated_at.0,
        };
        Self { partitions: partitions.into_iter().map(view).collect() }
    }
}

async fn resume(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<ProducerView>, Problem> {
    let fanout = find(&api, id).await?;
    Ok(Json(ProducerView::new(api.producing.resume(&fanout).await?)))
}
