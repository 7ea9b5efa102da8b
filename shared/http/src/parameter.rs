//! Query parameters.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use fanfold::limits::NAME_SHOWN_MAX;
use fanfold::text::shorten;

use crate::{Code, Problem};

/// A query parameter.
pub trait QueryParameter {
    /// Its name.
    const NAME: &str;
    /// What it does, as its description says.
    const ABOUT: &str;
    /// The type of its value.
    type Value;

    /// Reads it. None: the text is not allowed.
    fn read(text: &str) -> Option<Self::Value>;

    /// The allowed values, in words for errors.
    fn allowed() -> String;

    /// Its JSON schema.
    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value;
}

/// A query parameter that takes one of a few words.
pub trait Choice {
    /// Its name.
    const NAME: &str;
    /// The allowed words.
    const ALLOWED: &[&str];
    /// What it does, as its description says.
    const ABOUT: &str;
}

impl<C: Choice> QueryParameter for C {
    const NAME: &str = C::NAME;
    const ABOUT: &str = C::ABOUT;
    type Value = &'static str;

    fn read(text: &str) -> Option<&'static str> {
        C::ALLOWED.iter().find(|allowed| **allowed == text).copied()
    }

    fn allowed() -> String {
        format!("`{}`", C::ALLOWED.join("`, `"))
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "enum": C::ALLOWED})
    }
}

/// A query parameter, if it is there.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<Q: QueryParameter> {
    /// Its value.
    pub value: Option<Q::Value>,
}

impl<S: Send + Sync, Q: QueryParameter> FromRequestParts<S> for Parameter<Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = |text: &str| {
            let refused =
                || invalid(Q::NAME, &format!("is `{}`, {} is allowed", shorten(text, NAME_SHOWN_MAX), Q::allowed()));
            Q::read(text).ok_or_else(refused)
        };
        Ok(Self { value: one(parts, Q::NAME)?.map(read).transpose()? })
    }
}

/// The value of a query parameter, as it is written.
///
/// # Errors
/// It is given more than once.
fn one<'a>(parts: &'a Parts, name: &str) -> Result<Option<&'a str>, Problem> {
    let fields = parts.uri.query().unwrap_or_default().split('&');
    let fields = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
    let mut values = fields.filter(|(given, _)| *given == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(invalid(name, "is given more than once")),
    }
}

/// A query parameter is not what is allowed.
fn invalid(name: &str, problem: &str) -> Problem {
    Problem::new(Code::InvalidParameter, format!("the query parameter `{name}`: {problem}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[derive(Debug)]
    struct Color;

    impl Choice for Color {
        const NAME: &str = "color";
        const ALLOWED: &[&str] = &["red", "blue"];
        const ABOUT: &str = "";
    }

    async fn extract(query: &str) -> Result<Option<&'static str>, Problem> {
        let (mut parts, ()) = Request::get(format!("/things{query}")).body(()).unwrap().into_parts();
        Parameter::<Color>::from_request_parts(&mut parts, &()).await.map(|color| color.value)
    }

    #[tokio::test]
    async fn one_of_the_words_is_taken() {
        for query in ["", "?", "?x=red", "?colors=red"] {
            assert_eq!(extract(query).await.unwrap(), None, "{query}");
        }
        assert_eq!(extract("?x=1&color=blue&y").await.unwrap(), Some("blue"));
        for query in ["?color", "?color=", "?color=RED", "?color=red&color=red"] {
            let problem = extract(query).await.unwrap_err();
            assert_eq!(
                (problem.code().status().as_u16(), problem.code().name()),
                (400, "invalid_parameter"),
                "{query}"
            );
            assert!(problem.detail().contains("`color`"));
        }
        let problem = extract("?color=green").await.unwrap_err();
        assert!(problem.detail().contains("is `green`, `red`, `blue` is allowed"), "{}", problem.detail());
    }
}
