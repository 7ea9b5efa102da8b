//! The routes.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::{Api, batches, fanouts, health, index, policies, tasks};

/// The routes of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/", get(index::get))
        .route("/openapi.json", get(index::description))
        .route("/fanouts", post(fanouts::open))
        .route("/fanouts/{id}", get(fanouts::get))
        .route("/fanouts/{id}/groups", get(fanouts::groups))
        .route("/fanouts/{id}/items", post(fanouts::add))
        .route("/fanouts/{id}/seal", post(fanouts::seal))
        .route("/tasks/{id}", get(tasks::get))
        .route("/batches/{id}", get(batches::get))
        .route("/policies", get(policies::list))
        .route("/policies/{kind}", get(policies::get).put(policies::put))
        .route("/health", get(health::get))
        .with_state(api)
}
