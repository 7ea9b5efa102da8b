//! `POST /fanouts`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::{Router, routing};
use fanfold::ids::ItemGroup;
use fanfold::policy::PolicyError;
use fanfold::tracking::OpenRequest;
use fanfold_http::{Code, IdempotencyKey, Json, Problem};
use serde::Serialize;

use super::then;
use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts", routing::post(open))
}

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
        .problem(Code::OutOfRange)
        .problem(Code::InvalidDestination)
        .problem(Code::InvalidFollow)
        .problem(Code::InvalidProducer)
        .end();
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

async fn open(
    State(api): State<Arc<Api>>,
    key: Option<IdempotencyKey>,
    Json(request): Json<OpenRequest>,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Opened>), Problem> {
    destination(&request).map_err(|PolicyError(errors)| Problem::fields(Code::InvalidDestination, errors))?;
    if let Some(error) = request.producer.as_ref().and_then(|producer| producer.refused(api.allow_commands)) {
        return Err(Problem::fields(Code::InvalidProducer, vec![error]));
    }
    let key = key.as_ref().map(IdempotencyKey::as_str);
    if let Some(error) = then::refusal(&api, &request).await?
        && !api.tracking.opened_before(key).await?
    {
        return Err(Problem::fields(Code::InvalidFollow, vec![error]));
    }
    let opened = api.producing.open(&api.tracking, request, key).await?;
    let location = format!("/fanouts/{}", opened.fanout.id);
    // The index shows new groups late, so it is not asked.
    let body = Opened { fanout: FanoutView::of_header(opened.fanout), groups: opened.groups };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(body)))
}

/// Whether the destination can take what is to be reported.
fn destination(request: &OpenRequest) -> Result<(), PolicyError> {
    request.notify.as_ref().map_or(Ok(()), |notify| notify.check("notify"))?;
    request.notify_on.as_ref().map_or(Ok(()), |on| on.check(request.notify.as_ref()))
}
