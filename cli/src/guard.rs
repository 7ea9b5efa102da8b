//! Keeps web pages away from the local HTTP API, which does not authenticate: a browser lets any page send requests to
//! this machine, and lets a page whose name was made to resolve to it read the answers.

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use fanfold_http::{Code, Problem};

/// Refuses requests of web pages.
pub(crate) fn guard(router: Router) -> Router {
    router.layer(from_fn(async |request: Request, next: Next| match refusal(&request) {
        None => next.run(request).await,
        Some(detail) => refuse(detail),
    }))
}

fn refuse(detail: &str) -> Response {
    Problem::new(Code::NotForBrowsers, detail).into_response()
}

/// A browser names the page in `Origin`, and the host it believes to talk to in `Host`.
fn refusal(request: &Request) -> Option<&'static str> {
    if request.headers().contains_key(header::ORIGIN) {
        return Some(
            "the header Origin shows that a web page sent this request; the local API takes none from web pages",
        );
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    (name != "localhost" && !address).then_some(
        "the header Host is neither localhost nor an IP address; the local API takes no requests from web pages",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn refused(header: header::HeaderName, value: &str) -> bool {
        refusal(&Request::builder().header(header, value).body(Body::empty()).unwrap()).is_some()
    }

    #[test]
    fn only_web_pages_are_refused() {
        for host in ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7"] {
            assert!(!refused(header::HOST, host), "{host}");
        }
        for host in ["example.com", "example.com:8080", "localhost.example.com:8080"] {
            assert!(refused(header::HOST, host), "{host}");
        }
        assert!(refused(header::ORIGIN, "http://localhost:8080"));
        assert!(refused(header::ORIGIN, "null"));
    }
}
