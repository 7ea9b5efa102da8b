//! The header `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).

use axum::extract::OptionalFromRequestParts;
use axum::http::request::Parts;
use fanfold::headers::IDEMPOTENCY_KEY;
use fanfold::limits::IDEMPOTENCY_KEY_BYTES_MAX;

use crate::{Code, Problem};

/// A request's `Idempotency-Key`. It is opaque: quotes belong to it. Extract it as an `Option`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(pub String);

impl IdempotencyKey {
    /// The key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Problem> {
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(invalid("is given more than once"));
        }
        let bytes = value.as_bytes();
        if bytes.is_empty() {
            return Err(invalid("is empty"));
        }
        if bytes.len() > IDEMPOTENCY_KEY_BYTES_MAX {
            return Err(invalid(&format!("has {} bytes", bytes.len())));
        }
        match std::str::from_utf8(bytes) {
            Ok(key) if bytes.iter().all(u8::is_ascii_graphic) => Ok(Some(Self(key.to_owned()))),
            _ => Err(invalid(&format!("is `{}`", String::from_utf8_lossy(bytes).escape_debug()))),
        }
    }
}

/// What the header may be.
#[cfg(feature = "openapi")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::json_schema!({"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX, "pattern": "^[!-~]+$"})
}

fn invalid(what: &str) -> Problem {
    let detail = format!(
        "the header {IDEMPOTENCY_KEY} {what}, 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters without spaces are allowed"
    );
    Problem::new(Code::InvalidIdempotencyKey, detail)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::{HeaderValue, Request};

    use super::*;

    async fn extract(values: &[&[u8]]) -> Result<Option<IdempotencyKey>, Problem> {
        let (mut parts, ()) = Request::new(()).into_parts();
        for value in values {
            parts.headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        }
        IdempotencyKey::from_request_parts(&mut parts, &()).await
    }

    #[tokio::test]
    async fn takes_what_is_visible() {
        assert_eq!(extract(&[]).await.unwrap(), None);
        for key in ["a", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", &"~".repeat(IDEMPOTENCY_KEY_BYTES_MAX)] {
            assert_eq!(extract(&[key.as_bytes()]).await.unwrap(), Some(IdempotencyKey(key.to_owned())));
        }
    }

    #[tokio::test]
    async fn refuses_the_rest() {
        let long = "x".repeat(IDEMPOTENCY_KEY_BYTES_MAX + 1);
        let cases: [&[&[u8]]; 6] = [&[b""], &[b"a b"], &[b"a\tb"], &[b"\xc3\xa4"], &[long.as_bytes()], &[b"a", b"a"]];
        for values in cases {
            let problem = extract(values).await.unwrap_err();
            assert_eq!(
                (problem.code().status().as_u16(), problem.code().name()),
                (400, "invalid_idempotency_key"),
                "{values:?}"
            );
            assert!(problem.detail().contains("255"), "{}", problem.detail());
        }
    }
}
