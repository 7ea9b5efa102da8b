//! `DELETE /fanouts/{id}`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold_http::{Json, Path, Problem};
use uuid::Uuid;

use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}", routing::delete(cancel))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use fanfold_http::Code;
    describer
        .operation("DELETE", "/fanouts/{id}", "cancelFanout", "Cancels a fan-out")
        .says(
            "No call of a batch API begins for its tasks any more. Calls in progress run to their end, and their outcomes count; \
             every other item that is not done counts as missing. Cancelling again changes nothing.",
        )
        .path::<Uuid>("id", "The fan-out.")
        .returns::<FanoutView>("The fan-out. It has `ended` unless calls are in progress.")
        .problem(Code::UnknownFanout)
        .problem(Code::FanoutCompleted)
        .problem(Code::FanoutFailed)
        .problem(Code::FanoutExpired)
        .end();
}

async fn cancel(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<FanoutView>, Problem> {
    Ok(Json(FanoutView::of_header(api.tracking.cancel(id).await?)))
}
