//! JSON bodies, in and out.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, OptionalFromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fanfold::json;
use fanfold::limits::BODY_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Code, Problem};

/// A JSON body; in a request it is an object. As an `Option`, it may be absent.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        parse(&body(request, state).await?).map(Self)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> OptionalFromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Problem> {
        let checked = is_json(request.headers());
        let body = body(request, state).await?;
        if body.is_empty() {
            return Ok(None);
        }
        checked?;
        parse(&body).map(|value| Some(Self(value)))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

/// A request without a type is taken for JSON; another type is a mistake worth reporting.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let value = String::from_utf8_lossy(value.as_bytes());
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.contains('/') && essence.ends_with("+json")) {
        return Ok(());
    }
    let detail = format!("the Content-Type is `{value}`, application/json is expected");
    Err(Problem::new(Code::UnsupportedMediaType, detail))
}

async fn body<S: Send + Sync>(mut request: Request, state: &S) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(BODY_BYTES_MAX).apply(&mut request);
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let detail = format!("the body is too large, at most {BODY_BYTES_MAX} bytes are allowed");
            return Problem::new(Code::TooLarge, detail);
        }
        Problem::new(Code::UnreadableBody, Code::UnreadableBody.when())
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    Ok(json::read(body)?)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
