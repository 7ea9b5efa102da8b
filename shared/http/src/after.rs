//! Pages: the query parameter `after`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::{Code, PathSegment, Problem};

const NAME: &str = "after";

/// The id of the last entry of the page before, if there was one: `?after=<id>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After(pub Option<Uuid>);

impl<S: Send + Sync> FromRequestParts<S> for After {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let fields = query.split('&').map(|field| field.split_once('=').unwrap_or((field, "")));
        let mut ids = fields.filter(|(name, _)| *name == NAME).map(|(_, id)| id);
        match (ids.next(), ids.next()) {
            (None, _) => Ok(Self(None)),
            // No letter of an id needs to be escaped.
            (Some(id), None) => Uuid::parse(id).map(|id| Self(Some(id))).map_err(|error| invalid(&error)),
            (Some(_), Some(_)) => Err(invalid("is given more than once")),
        }
    }
}

fn invalid(problem: &str) -> Problem {
    let detail = format!("the query parameter `{NAME}`: {problem}");
    Problem::new(Code::InvalidId, detail)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::Request;

    use super::*;

    async fn extract(query: &str) -> Result<Option<Uuid>, Problem> {
        let (mut parts, ()) = Request::get(format!("/groups{query}")).body(()).unwrap().into_parts();
        After::from_request_parts(&mut parts, &()).await.map(|After(id)| id)
    }

    #[tokio::test]
    async fn one_id_is_taken() {
        let id = "01890000-0000-7000-8000-000000000001";
        for query in ["", "?", "?before=x", "?afterwards"] {
            assert_eq!(extract(query).await.unwrap(), None, "{query}");
        }
        assert_eq!(extract(&format!("?after={id}")).await.unwrap(), Some(id.parse().unwrap()));
        assert_eq!(extract(&format!("?x=1&after={id}&y")).await.unwrap(), Some(id.parse().unwrap()));
        for query in ["?after", "?after=", "?after=x", &format!("?after={id}&after={id}"), "?after=%30"] {
            let problem = extract(query).await.unwrap_err();
            assert_eq!((problem.code().status().as_u16(), problem.code().name()), (400, "invalid_id"), "{query}");
            assert!(problem.detail().contains("`after`"));
        }
    }
}
