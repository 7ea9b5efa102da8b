//! Problem documents (RFC 9457).

use std::fmt::Display;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use fanfold::ids::{TaskId, no_batch, no_task};
use fanfold::limits::{PROBLEM_BYTES_MAX, PROBLEM_FIELDS_MAX};
use fanfold::policy::{FieldError, no_policy};
use fanfold::text::{causes, shorten};
use serde::Serialize;
use uuid::Uuid;

use crate::Code;

/// A response that describes what went wrong, under a code that never changes.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
}

/// A problem document (RFC 9457).
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Problem"))]
pub(crate) struct Document<'a> {
    /// The problem's name as a URN: `urn:fanfold:problem:` and the code.
    r#type: String,
    /// The code in words.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// The problem's name. Codes never change.
    code: &'a str,
    /// What went wrong this time.
    detail: &'a str,
    /// The fields that cannot be used; if there are very many, the first.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = PROBLEM_FIELDS_MAX)))]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl Problem {
    /// A problem. A long `detail` is shortened.
    pub fn new(code: Code, detail: impl Display) -> Self {
        Self { code, detail: shown(&detail.to_string()), errors: Vec::new() }
    }

    /// The problem with the fields that are wrong; of very many, the first hundred.
    #[must_use]
    pub fn with_errors(mut self, errors: impl IntoIterator<Item = FieldError>) -> Self {
        let errors = errors.into_iter().take(PROBLEM_FIELDS_MAX);
        self.errors =
            errors.map(|error| FieldError { field: shown(&error.field), problem: shown(&error.problem) }).collect();
        self
    }

    /// A request whose fields cannot be used: the detail names the first.
    #[must_use]
    pub fn fields(code: Code, errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [] => "a field cannot be used".to_owned(),
            [one] => format!("`{}` {}", one.field, one.problem),
            [first, ..] => {
                format!("{} fields cannot be used, the first: `{}` {}", errors.len(), first.field, first.problem)
            }
        };
        Self::new(code, detail).with_errors(errors)
    }

    /// The same for a part of a request: its path is put before the names of the fields.
    #[must_use]
    pub fn within(self, path: &str) -> Self {
        let detail = format!("{path}: {}", self.detail);
        let field = |error: FieldError| FieldError { field: format!("{path}.{}", error.field), ..error };
        Self::new(self.code, detail).with_errors(self.errors.into_iter().map(field))
    }

    /// There is no such batch (404).
    #[must_use]
    pub fn unknown_batch(id: Uuid) -> Self {
        Self::new(Code::UnknownBatch, no_batch(id))
    }

    /// There is no such task (404).
    #[must_use]
    pub fn unknown_task(id: &TaskId) -> Self {
        Self::new(Code::UnknownTask, no_task(id))
    }

    /// A kind has no policy (404).
    #[must_use]
    pub fn unknown_policy(kind: &str) -> Self {
        Self::new(Code::UnknownPolicy, no_policy(kind))
    }

    /// A fault of Fanfold's own (500). What it is goes to the log, not to the caller.
    pub fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %causes(error), "a request failed");
        Self::new(Code::Internal, Code::Internal.when())
    }

    /// A table or queue that cannot be used now (503). Which and why goes to the log, not to the caller.
    pub fn unavailable(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %causes(error), "a request cannot be served now");
        Self::new(Code::Unavailable, Code::Unavailable.when())
    }

    /// The problem's name.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What went wrong this time.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The fields that are wrong.
    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        &self.errors
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = Document {
            r#type: format!("urn:fanfold:problem:{}", self.code.name()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            code: self.code.name(),
            detail: &self.detail,
            errors: &self.errors,
        };
        // Texts and a number always make JSON.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = (self.code.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.code == Code::Unavailable {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn shown(text: &str) -> String {
    shorten(text, PROBLEM_BYTES_MAX).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    async fn document(problem: Problem) -> (Response, serde_json::Value) {
        let (parts, body) = problem.into_response().into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (Response::from_parts(parts, axum::body::Body::empty()), serde_json::from_slice(&bytes).unwrap())
    }

    fn field(field: &str, problem: &str) -> FieldError {
        FieldError { field: field.to_owned(), problem: problem.to_owned() }
    }

    #[tokio::test]
    async fn is_a_problem_document() {
        let problem = Problem::new(Code::UnknownRoute, "there is no /x");
        let (response, document) = document(problem).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(
            document,
            serde_json::json!({
                "type": "urn:fanfold:problem:unknown_route", "title": "Unknown route", "status": 404,
                "code": "unknown_route", "detail": "there is no /x",
            })
        );
    }

    #[tokio::test]
    async fn names_fields() {
        let one = Problem::fields(Code::InvalidPolicy, vec![field("target", "is empty")]);
        assert_eq!(one.detail(), "`target` is empty");
        let two =
            Problem::fields(Code::InvalidPolicy, vec![field("target", "is empty"), field("batch_api.url", "is `x`")]);
        assert_eq!(two.detail(), "2 fields cannot be used, the first: `target` is empty");
        let (response, document) = document(two).await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(document["errors"][1], serde_json::json!({"field": "batch_api.url", "problem": "is `x`"}));
    }

    #[test]
    fn what_came_from_outside_is_shortened() {
        let huge = "ä".repeat(1_000_000);
        let problem = Problem::new(Code::InvalidBody, format!("is `{huge}`, less is allowed"));
        assert!(problem.detail().starts_with("is `ä") && problem.detail().ends_with("less is allowed"));
        assert!(problem.detail().chars().count() < 600);
        let problem = problem.with_errors((0..1_000).map(|_| field(&huge, &huge)));
        assert_eq!(problem.errors().len(), PROBLEM_FIELDS_MAX);
        assert!(problem.errors().iter().all(|error| error.field.len() + error.problem.len() < 2_500));
    }

    #[tokio::test]
    async fn faults_inside_are_not_shown() {
        for problem in [Problem::internal, Problem::unavailable] {
            let problem = problem(&std::io::Error::other("secret"));
            assert!(!problem.detail().contains("secret"));
            let (response, document) = document(problem).await;
            assert!(!document.to_string().contains("secret"));
            let retry = response.headers().get(header::RETRY_AFTER);
            assert_eq!(retry.is_some(), response.status() == StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}
