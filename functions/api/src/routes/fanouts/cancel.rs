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
            "No batch API is called any more for its tasks. A call that was begun before ends, and its outcomes count; everything \
             else that is not done is missing. Cancelling a fan-out again changes nothing.",
        )
        .path::<Uuid>("id", "The fan-out.")
        .returns::<FanoutView>("The fan-out as it stands then: it ended, unless some of it is in progress.")
        .problem(Code::UnknownFanout)
        .problem(Code::FanoutCompleted)
        .problem(Code::FanoutFailed)
        .problem(Code::FanoutExpired)
        .end();
}

async fn cancel(State(api): State<Arc<Api>>, Path(id): Path<Uuid>) -> Result<Json<FanoutView>, Problem> {
    Ok(Json(FanoutView::of_header(api.tracking.cancel(id).await?)))
}
