//! `GET /fanouts/{id}`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::ids::ItemGroup;
use fanfold_http::{Choice, Json, Parameter, Path, Problem};
use serde::Serialize;
use uuid::Uuid;

use super::find;
use super::producer::ProducerView;
use super::view::FanoutView;
use super::wait::{self, Wait};
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}", routing::get(show))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts/{id}", "getFanout", "Returns a fan-out's state and progress")
        .path::<Uuid>("id", "The fan-out.")
        .query::<Counted>()
        .query::<Wait>()
        .returns::<Shown>("The fan-out.")
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

/// `?progress=exact`: also counts in open groups.
struct Counted;

impl Choice for Counted {
    const NAME: &str = "progress";
    const ALLOWED: &[&str] = &["exact"];
    const ABOUT: &str = "`exact` also counts in groups that have not ended: one more read per hundred of them.";
}

/// A fan-out, and the group of a small one. `GET /fanouts/{id}/groups` lists the groups of others.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "FanoutWithGroups"))]
struct Shown {
    #[serde(flatten)]
    fanout: FanoutView,
    /// Its only group, if it was opened sealed with at most 7,168 items.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<ItemGroup>>,
    /// Its producer, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    producer: Option<ProducerView>,
}

async fn show(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    counted: Parameter<Counted>,
    wait: Parameter<Wait>,
) -> Result<Json<Shown>, Problem> {
    let fanout = wait::ended(&api, find(&api, id).await?, wait.value.unwrap_or_default()).await?;
    let groups = fanout.inline.is_some().then(|| fanout.inline_groups());
    let partitions = api.producing.partitions(&fanout).await?;
    let producer = fanout.producer.is_some().then(|| ProducerView::new(partitions));
    let fanout = match counted.value {
        None => FanoutView::of_header(fanout),
        Some(_) => {
            let (fanout, progress) = api.tracking.progress(fanout).await?;
            FanoutView::new(fanout, progress)
        }
    };
    Ok(Json(Shown { fanout, groups, producer }))
}
