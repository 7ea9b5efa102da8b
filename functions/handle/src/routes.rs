//! The routes of this function.

mod outcomes;
mod request;

use std::sync::Arc;

use axum::Router;

use crate::Handle;

/// The routes of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(handle: Arc<Handle>) -> Router {
    outcomes::router().merge(request::router()).with_state(handle)
}

/// Describes the routes of this function.
#[cfg(feature = "openapi")]
pub fn describe(describer: &mut fanfold_http::openapi::Describer) {
    request::describe(describer);
    outcomes::describe(describer);
}
