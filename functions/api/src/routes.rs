//! The routes: one file per path or resource, with what it takes, does and returns, and its part of the API's description.

mod batches;
mod control;
mod dead_letters;
mod fanouts;
mod health;
mod index;
mod lanes;
mod policies;
mod results;
mod tasks;

use std::sync::Arc;

use axum::Router;

use crate::Api;

/// The routes of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(api: Arc<Api>) -> Router {
    let routers = [
        index::router(),
        fanouts::router(),
        tasks::router(),
        batches::router(),
        policies::router(),
        lanes::router(),
        control::router(),
        dead_letters::router(),
        health::router(),
    ];
    routers.into_iter().fold(Router::new(), Router::merge).with_state(api)
}

/// Describes the routes of this function.
#[cfg(feature = "openapi")]
pub fn describe(describer: &mut fanfold_http::openapi::Describer) {
    index::describe(describer);
    fanouts::describe(describer);
    tasks::describe(describer);
    batches::describe(describer);
    policies::describe(describer);
    lanes::describe(describer);
    control::describe(describer);
    dead_letters::describe(describer);
    health::describe(describer);
}
