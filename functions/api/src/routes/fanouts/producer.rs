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
            "Resumes the failed partitions of a producer",
        )
        .says("Each resumes where it stopped. The other partitions do not change.")
        .path::<Uuid>("id", "The fan-out.")
        .returns::<ProducerView>("All partitions.")
        .problem(Code::UnknownFanout)
        .problem(Code::NoProducer)
        .problem(Code::FanoutNotOpen)
        .end();
}

/// The progress of a fan-out's producer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ProducerProgress"))]
pub(super) struct ProducerView {
    /// Its partitions, by number.
    partitions: Vec<PartitionView>,
}

/// The progress of a partition.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Partition"))]
struct PartitionView {
    /// Its number, from 0.
    partition: u32,
    /// Its state.
    state: PartitionState,
    /// The cursor of its next page, from its source. `null`: it is at the beginning, or there is no next page.
    cursor: Value,
    /// Rows of the pages that are registered.
    rows: u64,
    /// Those of them that belong to other partitions.
    dropped: u64,
    /// Those of them that are not acceptable tasks.
    bad: u64,
    /// Those of them whose tasks are duplicates: another task has their key.
    duplicates: u64,
    /// The first bad rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad_rows: Vec<BadRow>,
    /// How many requests to its source have failed in a row.
    tries: u32,
    /// When the source is asked again, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    /// The last error.
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
