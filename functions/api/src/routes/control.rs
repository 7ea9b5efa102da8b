//! What is paused, resumed and drained, and the switches that say so.

mod drain;
mod parameters;
mod pause;
mod resume;
mod scope;
mod switches;
mod view;

use std::sync::Arc;

use axum::Router;
use fanfold::control::{ControlError, Scope, Switched};
use fanfold::store::policies::SwitchError;
use fanfold_http::{Code, Json, Problem};

pub(super) use self::parameters::{AfterLane, AfterTask, LaneLimit, OfKind, OfPartition, OfTarget, OnlyPaused};
pub(super) use self::scope::ScopeBody;
pub(super) use self::view::ScopeView;
use self::view::SwitchedView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    let routers = [pause::router(), resume::router(), drain::router(), switches::router()];
    routers.into_iter().fold(Router::new(), Router::merge)
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    pause::describe(describer);
    resume::describe(describer);
    drain::describe(describer);
    switches::describe(describer);
}

/// The response to a request that changes the switch of a scope.
fn response(scope: &Scope, switched: Result<Switched, ControlError>) -> Result<Json<SwitchedView>, Problem> {
    Ok(Json(SwitchedView::new(scope, switched.map_err(problem)?)))
}

pub(super) fn problem(error: ControlError) -> Problem {
    match error {
        ControlError::Switch(SwitchError::UnknownKind(kind)) => Problem::unknown_policy(&kind),
        ControlError::Switch(SwitchError::TooMany(_)) => Problem::new(Code::TooManySwitches, error),
        ControlError::Switch(SwitchError::Store(error)) | ControlError::Store(error) => error.into(),
        ControlError::Queue(error) => error.into(),
        ControlError::Tracking(error) => error.into(),
    }
}
