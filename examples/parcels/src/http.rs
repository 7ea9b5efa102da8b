//! The routes.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router, body::Bytes};

use crate::problem::Problem;
use crate::request::{Answer, Call, CallError};

/// Room for 10,000 members with generous columns.
const LARGEST_BODY: usize = 32 * 1024 * 1024;

/// The batch API over a folder of manifests.
pub(crate) fn router(manifests: PathBuf) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/trucks", post(book))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(Arc::new(manifests))
}

async fn health() -> Json<serde_json::Value> {
    Json(serde_json::json!({"status": "ok"}))
}

async fn book(
    State(root): State<Arc<PathBuf>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Answer>, Problem> {
    let body = body.map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
    // A key that is not text cannot be a file's name either; its replacement characters get it refused.
    let header = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let (key, attempt) = (header("idempotency-key"), header("fanfold-attempt"));
    let call = Call::read(key.as_deref(), attempt.as_deref(), &body)?;
    if call.is_turned_away() {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "the depot is busy, call again in a second"));
    }
    // The manifest comes before the answer: a caller whose order is answered as loaded finds it there.
    let answer = tokio::task::spawn_blocking(move || {
        let (answer, manifests) = call.book()?;
        for manifest in manifests {
            manifest.write(&root)?;
        }
        Ok::<_, std::io::Error>(answer)
    });
    match answer.await {
        Ok(Ok(answer)) => Ok(Json(answer)),
        Ok(Err(error)) => Err(internal(&error)),
        Err(error) => Err(internal(&error)),
    }
}

fn internal(error: &dyn std::error::Error) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the manifest could not be written: {error}"))
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self::bad_request(error.to_string())
    }
}
