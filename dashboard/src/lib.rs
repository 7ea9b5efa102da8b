//! The dashboard: a page over Fanfold's HTTP API, served beside it. Its files are part of the program, and it needs no build step.
//!
//! Requests of the page carry a token that only the page was given, so that pages of other sites cannot send any: see
//! [`Dashboard::sent`].

mod files;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use uuid::Uuid;

use files::FILES;

/// The header of the page's requests that carries its token.
pub const TOKEN_HEADER: &str = "fanfold-dashboard";

/// Where the page is.
pub const PATH: &str = "/dashboard/";

/// What a page from here may do: nothing but show itself and talk to where it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A dashboard, with the token of its page.
#[derive(Clone, Debug)]
pub struct Dashboard {
    token: String,
}

impl Default for Dashboard {
    #[allow(clippy::disallowed_methods, reason = "what is served is not simulated")]
    fn default() -> Self {
        // 122 random bits from the operating system.
        Self { token: Uuid::new_v4().simple().to_string() }
    }
}

impl Dashboard {
    /// The page, at [`PATH`].
    pub fn router<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let (page, token) = (PATH, self.token.clone());
        Router::new()
            .route("/dashboard", get(async move || Redirect::permanent(page)))
            .route(PATH, get(async move || file("index.html", &token)))
            .route("/dashboard/{*file}", get(async |Path(name): Path<String>| file(&name, "")))
    }

    /// Whether the page sent a request: it has the token, and comes from the host that it was sent to. A browser names the page's
    /// site in `Origin`, if it names one.
    #[must_use]
    pub fn sent(&self, headers: &HeaderMap) -> bool {
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let token = headers.get(TOKEN_HEADER).is_some_and(|token| token.as_bytes() == self.token.as_bytes());
        let origin = text(header::ORIGIN).is_none_or(|origin| {
            origin.strip_prefix("http://").is_some_and(|site| text(header::HOST).is_some_and(|host| host == site))
        });
        token && origin
    }
}

/// A file of the page. The token is put where a file asks for it.
fn file(name: &str, token: &str) -> Response {
    let Some((_, kind, bytes)) = FILES.iter().find(|(file, ..)| *file == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let fixed = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // The next version of the program has other files under the same names.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (fixed, bytes.replace("{{token}}", token)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                header::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static("")),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_its_own_page_sends_for_it() {
        let dashboard = Dashboard::default();
        let token = dashboard.token.as_str();
        let own = [("fanfold-dashboard", token), ("host", "localhost:8080")];
        assert!(dashboard.sent(&headers(&own)), "a browser names no origin where a page reads its own site");
        assert!(dashboard.sent(&headers(&[own[0], own[1], ("origin", "http://localhost:8080")])));
        for origin in ["http://localhost:8081", "http://example.com", "https://localhost:8080", "null", ""] {
            assert!(!dashboard.sent(&headers(&[own[0], own[1], ("origin", origin)])), "{origin}");
        }
        for token in ["", "x", &Dashboard::default().token] {
            assert!(!dashboard.sent(&headers(&[("fanfold-dashboard", token), own[1]])), "{token}");
        }
        assert!(!dashboard.sent(&headers(&[own[1], ("origin", "http://localhost:8080")])));
    }

    #[test]
    fn the_page_has_the_token_and_every_file_that_it_names() {
        let names: Vec<&str> = FILES.iter().map(|(name, ..)| *name).collect();
        let (_, _, index) = FILES.iter().find(|(name, ..)| *name == "index.html").expect("the page");
        assert_eq!(index.matches("{{token}}").count(), 1);
        for (name, _, text) in FILES {
            let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
            let imports = text.split("from \"").skip(1).chain(text.split("from\"").skip(1));
            for import in imports.filter_map(|rest| rest.split('"').next()).filter(|import| import.starts_with('.')) {
                let path = match import.strip_prefix("../") {
                    Some(above) => above.to_owned(),
                    None if folder.is_empty() => import.trim_start_matches("./").to_owned(),
                    None => format!("{folder}/{}", import.trim_start_matches("./")),
                };
                assert!(names.contains(&path.as_str()), "{name} imports {import}");
            }
        }
    }
}
