//! `GET /` and `GET /openapi.json`: an index of the API, and its description.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use axum::{Router, routing};
use fanfold_http::Json;
use serde::Serialize;

use crate::Api;

/// The description of the API, made from the code.
const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// The index as a page, for browsers.
const PAGE: &str = include_str!("index.html");

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/", routing::get(get)).route("/openapi.json", routing::get(description))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/", "index", "Returns an index of the API")
        .says("A page for browsers (`Accept: text/html`), JSON for others.")
        .returns::<Index>("Paths to start from.")
        .end();
    describer
        .operation("GET", "/openapi.json", "getDescription", "Describes every route")
        .returns::<Description>("This description.")
        .end();
}

/// The index of the API.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Index {
    /// `fanfold`.
    name: &'static str,
    /// Fanfold's version.
    version: &'static str,
    /// Paths to start from.
    links: Links,
}

/// Paths to start from.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
struct Links {
    /// The description of every route (OpenAPI 3.1).
    description: &'static str,
    /// Whether the API can read its tables.
    health: &'static str,
    /// All policies.
    policies: &'static str,
    /// POST opens a fan-out, GET lists them.
    fanouts: &'static str,
    /// POST registers tasks.
    tasks: &'static str,
    /// POST acks items.
    acks: &'static str,
}

/// An OpenAPI document.
#[cfg(feature = "openapi")]
#[derive(Serialize, schemars::JsonSchema)]
struct Description {
    /// The version of OpenAPI.
    openapi: String,
    /// About the API as a whole.
    info: serde_json::Map<String, serde_json::Value>,
    /// The routes, by path and method.
    paths: serde_json::Map<String, serde_json::Value>,
    /// What the routes share.
    components: serde_json::Map<String, serde_json::Value>,
}

const INDEX: Index = Index {
    name: "fanfold",
    version: env!("CARGO_PKG_VERSION"),
    links: Links {
        description: "/openapi.json",
        health: "/health",
        policies: "/policies",
        fanouts: "/fanouts",
        tasks: "/tasks",
        acks: "/acks",
    },
};

/// JSON, or a page for clients that accept `text/html`, as browsers do.
async fn get(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let page = accept.split(',').any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/html"));
    if page { Html(PAGE).into_response() } else { Json(INDEX).into_response() }
}

/// The description of the API.
async fn description() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}
