//! `POST /fanouts`, and `POST /fanouts/open`, which opens several.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::{Router, routing};
use fanfold::ids::ItemGroup;
use fanfold::tracking::{OpenRequest, Opened as OpenedFanout};
#[cfg(feature = "openapi")]
use fanfold_http::Code;
use fanfold_http::{IdempotencyKey, Json, Problem};
use serde::{Deserialize, Serialize};

use super::opening;
use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts", routing::post(open)).route("/fanouts/open", routing::post(open_several))
}

/// What a fan-out that is to be opened may be refused for.
#[cfg(feature = "openapi")]
const REFUSALS: [Code; 5] =
    [Code::OutOfRange, Code::InvalidDestination, Code::InvalidFollow, Code::InvalidProducer, Code::InvalidTasks];

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/fanouts", "openFanout", "Opens a fan-out")
        .idempotent()
        .body::<OpenRequest>()
        .creates::<Opened>("The fan-out, and the groups of its items.")
        .with_header("Location", "The fan-out's path.")
        .leads_to("getFanout", "id", "/id")
        .leads_to("addItems", "id", "/id")
        .leads_to("sealFanout", "id", "/id")
        .problems(REFUSALS)
        .end();
    describer
        .operation("POST", "/fanouts/open", "openFanouts", "Opens several fan-outs")
        .says(
            "Fanfold checks all fan-outs before it opens the first. A request that got no response, or 500 or 503, may have opened some \
             of them. Repeat it under its Idempotency-Key: Fanfold opens the rest, and none twice.",
        )
        .idempotent()
        .body::<OpenSeveral>()
        .creates::<OpenedSeveral>("The fan-outs, in the order of the request.")
        .leads_to("getFanout", "id", "/fanouts/0/id")
        .problems(REFUSALS)
        .end();
}

/// Fan-outs to open.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "OpenFanoutsRequest"))]
#[serde(deny_unknown_fields)]
struct OpenSeveral {
    /// The fan-outs, each as for `POST /fanouts`. Together they have at most 10,000 tasks.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = fanfold::limits::FANOUTS_PER_REQUEST_MAX)))]
    fanouts: Vec<OpenRequest>,
}

/// Fan-outs that were opened.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "OpenedFanouts"))]
struct OpenedSeveral {
    /// The fan-outs, in the order of the request.
    fanouts: Vec<Opened>,
}

/// A fan-out that was opened.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "OpenedFanout"))]
struct Opened {
    #[serde(flatten)]
    fanout: FanoutView,
    /// The groups of its items.
    groups: Vec<ItemGroup>,
}

impl From<OpenedFanout> for Opened {
    fn from(opened: OpenedFanout) -> Self {
        // The index shows new groups late, so it is not asked.
        Self { fanout: FanoutView::of_header(opened.fanout), groups: opened.groups }
    }
}

async fn open(
    State(api): State<Arc<Api>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<OpenRequest>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Opened>), Problem> {
    let new = api.tracking.new_fanout(key.as_ref().map(IdempotencyKey::as_str));
    let opened = opening::open(&api, (new, request)).await?;
    let location = format!("/fanouts/{}", opened.fanout.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(opened.into())))
}

async fn open_several(
    State(api): State<Arc<Api>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<OpenSeveral>,
) -> Result<(StatusCode, Json<OpenedSeveral>), Problem> {
    let key = key.as_ref().map(IdempotencyKey::as_str);
    let at = |(at, request)| (api.tracking.new_fanout_at(key, at), request);
    let opened = opening::open_several(&api, request.fanouts.into_iter().enumerate().map(at).collect(), key).await?;
    Ok((StatusCode::CREATED, Json(OpenedSeveral { fanouts: opened.into_iter().map(Opened::from).collect() })))
}
