//! The sandbox over HTTP.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use fanfold_batch_api::{Reply, SentMember, Shape};
use tokio::time::Instant;

use super::counts::Counts;
use super::ledger::{Call, Ledger, Taken};
use super::log::CallLog;

/// Room for the largest call, 32 MiB of members, with their ids.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const ATTEMPT: HeaderName = HeaderName::from_static("fanfold-attempt");

/// A sandbox that is served.
#[derive(Debug)]
pub(super) struct Sandbox {
    shape: Shape,
    ledger: Arc<Mutex<Ledger>>,
    log: Option<CallLog>,
    began: Instant,
    /// Answers that come later, each with the moment from which on it is there.
    answers: Mutex<Vec<(Instant, Reply)>>,
}

impl Sandbox {
    pub(super) fn new(shape: Shape, ledger: Arc<Mutex<Ledger>>, log: Option<CallLog>) -> Self {
        Self { shape, ledger, log, began: Instant::now(), answers: Mutex::default() }
    }

    /// Takes a call. Returns the answer, and where it can be asked for if it comes later.
    fn take(&self, headers: &HeaderMap, body: &[u8]) -> (Taken, Option<usize>) {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let key = text(IDEMPOTENCY_KEY);
        let sent = self.shape.read(body);
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let (members, taken) = match sent {
            Ok(sent) => {
                let names: Vec<String> = sent.members.iter().map(SentMember::name).collect();
                (names, ledger.take(&Call { key, body, sent }, self.began.elapsed()))
            }
            Err(problem) => (Vec::new(), ledger.refuse(&problem)),
        };
        let done = matches!(taken.because, "done" | "lost" | "repeated");
        let later = ledger.answers_later(key.unwrap_or_default()).filter(|_| done);
        drop(ledger);
        if let Some(log) = &self.log {
            log.note(key, text(ATTEMPT), &members, &taken);
        }
        let later = later.map(|later| {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push((Instant::now() + later, taken.reply.clone()));
            answers.len() - 1
        });
        (taken, later)
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
    let (Taken { reply, when, .. }, later) = sandbox.take(&headers, &body);
    let Some(latency) = when else { return cut_off() };
    tokio::time::sleep(latency).await;
    match later {
        Some(number) => accepted([(header::LOCATION, format!("/answers/{number}"))]),
        None => response(reply),
    }
}

/// The answer to a call that was accepted, once it is there.
async fn later(State(sandbox): State<Arc<Sandbox>>, Path(number): Path<usize>) -> Response {
    let answer = sandbox.answers.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned();
    match answer {
        None => StatusCode::NOT_FOUND.into_response(),
        Some((at, _)) if at > Instant::now() => accepted([]),
        Some((_, reply)) => response(reply),
    }
}

fn response(Reply { status, headers, body }: Reply) -> Response {
    (StatusCode::from_u16(status).unwrap_or_default(), AppendHeaders(headers), Json(body)).into_response()
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
