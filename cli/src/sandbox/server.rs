//! The sandbox over HTTP.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ledger::{Call, Counts, Ledger, Reply, When};
use super::log::CallLog;

/// Room for the largest call, 32 MiB of members, with their ids.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const ATTEMPT: HeaderName = HeaderName::from_static("fanfold-attempt");

/// A sandbox that is served.
#[derive(Debug)]
pub(super) struct Sandbox {
    ledger: Arc<Mutex<Ledger>>,
    log: Option<CallLog>,
    began: Instant,
    /// Answers that come later, each with the moment from which on it is there.
    answers: Mutex<Vec<(Instant, Value)>>,
}

/// What is read of a call.
#[derive(Deserialize)]
struct CallBody {
    members: Vec<BodyMember>,
}

#[derive(Deserialize)]
struct BodyMember {
    id: String,
    content: Box<RawValue>,
}

impl Sandbox {
    pub(super) fn new(ledger: Arc<Mutex<Ledger>>, log: Option<CallLog>) -> Self {
        Self { ledger, log, began: Instant::now(), answers: Mutex::default() }
    }

    /// Takes a call. Returns the answer, and when it goes back, or else where it can be asked for.
    fn take(&self, headers: &HeaderMap, body: &[u8]) -> (Reply, When, Option<usize>) {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let key = text(IDEMPOTENCY_KEY);
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let (members, (reply, when)) = match read(body) {
            Ok(members) => {
                let ids = members.iter().map(|(id, _)| id.clone()).collect();
                (ids, ledger.take(&Call { key, body, members }, self.began.elapsed()))
            }
            Err(problem) => (Vec::new(), ledger.refuse(&problem)),
        };
        let later = ledger.answers_later(key.unwrap_or_default()).filter(|_| reply.status == 200);
        drop(ledger);
        if let Some(log) = &self.log {
            log.note(key, text(ATTEMPT), &members, &reply);
        }
        let later = later.map(|later| {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push((Instant::now() + later, reply.body.clone()));
            answers.len() - 1
        });
        (reply, when, later)
    }
}

/// The routes: the counts, and the batch API at every other path.
pub(super) fn router(sandbox: Arc<Sandbox>) -> Router {
    Router::new()
        .route("/counts", get(counts))
        .route("/answers/{number}", get(later))
        .fallback(answer)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(sandbox)
}

async fn counts(State(sandbox): State<Arc<Sandbox>>) -> Json<Counts> {
    Json(sandbox.ledger.lock().unwrap_or_else(PoisonError::into_inner).counts().clone())
}

async fn answer(State(sandbox): State<Arc<Sandbox>>, headers: HeaderMap, body: Bytes) -> Response {
    let (Reply { status, body, .. }, when, later) = sandbox.take(&headers, &body);
    let Some(latency) = when else { return cut_off() };
    tokio::time::sleep(latency).await;
    if let Some(number) = later {
        return accepted([(header::LOCATION, format!("/answers/{number}"))]);
    }
    let mut response = (StatusCode::from_u16(status).unwrap_or_default(), Json(body)).into_response();
    if status == 429 {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
}

/// The answer to a call that was accepted, once it is there.
async fn later(State(sandbox): State<Arc<Sandbox>>, Path(number): Path<usize>) -> Response {
    let answer = sandbox.answers.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned();
    match answer {
        None => StatusCode::NOT_FOUND.into_response(),
        Some((at, _)) if at > Instant::now() => accepted([]),
        Some((_, body)) => Json(body).into_response(),
    }
}

/// There is no answer yet.
fn accepted<const N: usize>(headers: [(HeaderName, String); N]) -> Response {
    let retry_after = [(header::RETRY_AFTER, "1")];
    (StatusCode::ACCEPTED, retry_after, AppendHeaders(headers)).into_response()
}

/// An answer whose connection breaks before its end.
fn cut_off() -> Response {
    let broken = futures::stream::once(async { Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionReset)) });
    Body::from_stream(broken).into_response()
}

/// Ids and contents of the members of a call.
fn read(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    let CallBody { members } = serde_json::from_slice(body)
        .map_err(|error| format!("the body is not {{\"members\": [{{\"id\", \"content\"}}]}}: {error}"))?;
    Ok(members.into_iter().map(|BodyMember { id, content }| (id, content.get().to_owned())).collect())
}
