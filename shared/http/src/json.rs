//! JSON bodies, in and out.

use std::convert::Infallible;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, OptionalFromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fanfold::json;
use fanfold::limits::BODY_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Code, Problem};

/// The media type of a stream of JSON.
const NDJSON: &str = "application/x-ndjson";

/// The media types that are taken for a stream: none is registered, and all of these are used.
const STREAMS: [&str; 3] = [NDJSON, "application/ndjson", "application/jsonl"];

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

/// A body that is a JSON object, or a stream with an object per line (NDJSON).
#[derive(Clone, Debug)]
pub enum JsonOrLines<T> {
    /// One object.
    Json(T),
    /// A stream, as it came: see [`fanfold::json::lines`].
    Lines(Bytes),
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonOrLines<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let content_type = ContentType::of(request.headers());
        if content_type.is_lines() {
            return body(request, state).await.map(Self::Lines);
        }
        content_type.json("application/json or application/x-ndjson is expected")?;
        Ok(Self::Json(json::read(&body(request, state).await?)?))
    }
}

/// Whether a client asks for a stream: its `Accept` names the media type of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantsLines(pub bool);

impl<S: Send + Sync> FromRequestParts<S> for WantsLines {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let accepted = parts.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut types = accepted.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
        Ok(Self(types.any(|range| STREAMS.iter().any(|stream| range.trim().eq_ignore_ascii_case(stream)))))
    }
}

/// A stream as a response: a JSON object per line.
#[derive(Clone, Debug)]
pub struct Lines(pub Vec<u8>);

impl IntoResponse for Lines {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, NDJSON)], self.0).into_response()
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

fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    ContentType::of(headers).json("application/json is expected")
}

/// The type of a body, if the request has one.
struct ContentType(Option<String>);

impl ContentType {
    fn of(headers: &HeaderMap) -> Self {
        Self(headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()))
    }

    fn essence(&self) -> Option<String> {
        self.0.as_ref().map(|value| value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    fn is_lines(&self) -> bool {
        self.essence().is_some_and(|essence| STREAMS.contains(&essence.as_str()))
    }

    /// A request without a type is taken for JSON; another type is a mistake worth reporting.
    fn json(&self, expected: &str) -> Result<(), Problem> {
        let (Some(value), Some(essence)) = (&self.0, self.essence()) else { return Ok(()) };
        if essence == "application/json" || (essence.contains('/') && essence.ends_with("+json")) {
            return Ok(());
        }
        Err(Problem::new(Code::UnsupportedMediaType, format!("the Content-Type is `{value}`, {expected}")))
    }
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
    Ok(json::read_seldom(body)?)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
