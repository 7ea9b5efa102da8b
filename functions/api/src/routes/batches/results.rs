//! `GET /batches/{id}/results`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Router, routing};
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
    use crate::routes::results::{ResultView, Results};
    describer
        .operation(
            "GET",
            "/batches/{id}/results",
            "listBatchResults",
            "Lists the results of a batch's members, page by page",
        )
        .says("With `Accept: application/x-ndjson` a result per line; the header `Link` then has the next page.")
        .path::<Uuid>("id", "The batch.")
        .query::<AfterMember>()
        .returns::<Results>("A page of the members with an outcome.")
        .answered_by_lines::<ResultView>()
        .problem(fanfold_http::Code::UnknownBatch)
        .end();
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
    let (mut page, mut reader) = (Page::default(), api.batches.results(&batch));
    for (slot, id) in ids.iter().enumerate().skip(first) {
        if page.is_full() {
            page.more = true;
            break;
        }
        page.look(*id, &mut reader, slot).await?;
    }
    Ok(page.answer(&format!("/batches/{id}/results"), lines))
}
