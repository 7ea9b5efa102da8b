//! Ids in paths.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use fanfold::ids::{TaskId, parse_uuid};
use fanfold::policy::{KIND_ALLOWED, is_kind};
use fanfold::text::start;
use uuid::Uuid;

use crate::{Code, Problem};

/// A part of a path that is a parameter.
pub trait PathSegment: Sized {
    /// Reads it from its text, percent-decoded.
    ///
    /// # Errors
    /// The text is not one; the message names it and what is expected.
    fn parse(text: &str) -> Result<Self, String>;

    /// The schema of these texts.
    #[cfg(feature = "openapi")]
    fn schema() -> schemars::Schema;
}

impl PathSegment for Uuid {
    #[cfg(feature = "openapi")]
    fn schema() -> schemars::Schema {
        fanfold::openapi::uuid()
    }

    fn parse(text: &str) -> Result<Self, String> {
        parse_uuid(text, "an id (a UUID in lower case, with hyphens)").map_err(|error| error.to_string())
    }
}

impl PathSegment for TaskId {
    #[cfg(feature = "openapi")]
    fn schema() -> schemars::Schema {
        fanfold::openapi::task_id()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: fanfold::ids::IdError| error.to_string())
    }
}

/// The kind of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind(pub String);

impl PathSegment for Kind {
    #[cfg(feature = "openapi")]
    fn schema() -> schemars::Schema {
        fanfold::openapi::kind()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if is_kind(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("`{}` is not a kind ({KIND_ALLOWED})", start(text)))
    }
}

/// The one parameter of a route's path.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<T: PathSegment, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let parameters = RawPathParams::from_request_parts(parts, state).await;
        let parameters = parameters.map_err(|rejection| invalid(rejection.body_text()))?;
        let (_, text) = parameters.iter().next().ok_or_else(|| invalid("the path names nothing".to_owned()))?;
        T::parse(text).map(Self).map_err(invalid)
    }
}

fn invalid(detail: String) -> Problem {
    Problem::new(Code::InvalidId, detail)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use axum::routing::get;
    use axum::{Router, response::IntoResponse};
    use tower::ServiceExt;

    use super::*;

    async fn ask(path: &str) -> (u16, String) {
        let router = Router::new()
            .route("/uuid/{id}", get(|Path(id): Path<Uuid>| async move { id.to_string().into_response() }))
            .route("/task/{id}", get(|Path(id): Path<TaskId>| async move { id.to_string().into_response() }))
            .route("/kind/{kind}", get(|Path(Kind(kind)): Path<Kind>| async move { kind }));
        let response = router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn reads_ids() {
        let id = "01890000-0000-7000-8000-000000000001";
        for (path, text) in [
            (format!("/uuid/{id}"), id.to_owned()),
            (format!("/task/{id}"), id.to_owned()),
            (format!("/task/{id}:{id}:5"), format!("{id}:{id}:5")),
            (format!("/task/{id}%3A{id}%3A5"), format!("{id}:{id}:5")),
            ("/kind/a.b-c_1".to_owned(), "a.b-c_1".to_owned()),
        ] {
            assert_eq!(ask(&path).await, (200, text), "{path}");
        }
    }

    #[tokio::test]
    async fn refuses_and_names_the_rest() {
        let id = "01890000-0000-7000-8000-000000000001";
        for (path, named) in [
            ("/uuid/xyz".to_owned(), "`xyz`"),
            (format!("/uuid/{}", id.to_uppercase().replace("0189", "ABCD")), "ABCD"),
            (format!("/uuid/{}", id.replace('-', "")), "not an id"),
            ("/uuid/%ff".to_owned(), "UTF-8"),
            ("/task/key:abc".to_owned(), "`key:abc`"),
            (format!("/task/{id}:{id}:7168"), ":7168`"),
            ("/kind/a:b".to_owned(), "`a:b`"),
            ("/kind/a%2fb".to_owned(), "`a/b`"),
            (format!("/kind/{}", "a".repeat(5_000)), "not a kind"),
        ] {
            let (status, body) = ask(&path).await;
            assert_eq!(status, 400, "{path}");
            assert!(body.contains("\"invalid_id\"") && body.contains(named), "{path}: {body}");
            assert!(body.len() < 1_000);
        }
    }
}
