//! `GET /batches/{id}/results`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Router, routing};
use fanfold::limits::RESULTS_PER_PAGE_MAX;
use fanfold_http::{Parameter, Path, Problem, WantsLines};
use uuid::Uuid;

use super::find;
use crate::Api;
use crate::routes::results::{AfterMember, Page};

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/batches/{id}/results", routing::get(results))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    let summary = "Lists the results of a batch's members, page by page";
    let operation = describer.operation("GET", "/batches/{id}/results", "listBatchResults", summary);
    let operation = operation.path::<Uuid>("id", "The batch.").problem(fanfold_http::Code::UnknownBatch);
    crate::routes::results::returned_by(operation, "A page of the members with an outcome.").end();
}

async fn results(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    after: Parameter<AfterMember>,
    lines: WantsLines,
) -> Result<Response, Problem> {
    let batch = find(&api, id).await?;
    let ids = batch.members.ids();
    let first = match &after.value {
        Some(after) => batch.members.slot(after).ok_or_else(|| AfterMember::stranger(after, "the batch"))? + 1,
        None => 0,
    };
    let slots = first..first + RESULTS_PER_PAGE_MAX;
    let (mut page, mut reader) = (Page::default(), api.batches.results(&batch, slots));
    for (slot, id) in ids.iter().enumerate().skip(first) {
        if page.is_full() {
            page.more = true;
            break;
        }
        page.look(*id, &mut reader, slot).await?;
    }
    Ok(page.answer(&format!("/batches/{id}/results"), lines))
}
