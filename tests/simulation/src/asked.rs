//! Requests to the API as users make them: by HTTP, until there is an answer.

use std::fmt;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use futures::FutureExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::clients::{Clients, Passing};

/// An answer that is not expected.
#[derive(Debug)]
struct Unexpected(u16, Value);

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.1)
    }
}

impl Passing for Unexpected {
    fn passing(&self) -> bool {
        self.0 == 503
    }
}

impl Clients {
    /// Makes a request until it is answered with one of the expected statuses. Returns status and body; none if it was
    /// answered with another, which is a violation.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        expected: &'static [u16],
    ) -> Option<(u16, Value)> {
        let (what, path) = (format!("{method} {path}"), path.to_owned());
        let call = self.until_done("api", &what, move |steps| {
            let (method, path, body) = (method.clone(), path.clone(), body.clone());
            async move {
                let not_made = |problem: String| Unexpected(400, Value::from(problem));
                let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
                let request = Request::builder().method(method).uri(path).body(body);
                let request = request.map_err(|error| not_made(error.to_string()))?;
                let answer = steps.routes().oneshot(request).await.map_err(|error| not_made(error.to_string()))?;
                let status = answer.status().as_u16();
                let body = to_bytes(answer.into_body(), usize::MAX).await;
                let body = body.map_err(|error| not_made(error.to_string()))?;
                let body = serde_json::from_slice(&body).unwrap_or_default();
                if expected.contains(&status) { Ok((status, body)) } else { Err(Unexpected(status, body)) }
            }
            .boxed()
        });
        call.await
    }
}
