//! Keeps web pages away from the local HTTP API, which does not authenticate: a browser lets any page send requests to
//! this machine, and lets a page whose name was made to resolve to it read the answers. Only the dashboard's page may.

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use fanfold_dashboard::Dashboard;
use fanfold_http::{Code, Problem};

/// Who may send requests to an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Everybody on this machine, but of web pages only the dashboard's.
    All,
    /// Only the dashboard's page.
    Page,
}

/// Adds a dashboard to an API, and refuses requests of others.
pub(crate) fn guard(router: Router, dashboard: Dashboard, callers: Callers) -> Router {
    router.merge(dashboard.router()).layer(from_fn(move |request: Request, next: Next| {
        let refusal = refusal(&request, &dashboard, callers);
        async move {
            match refusal {
                None => next.run(request).await,
                Some(detail) => refuse(detail),
            }
        }
    }))
}

fn refuse(detail: &str) -> Response {
    Problem::new(Code::NotForBrowsers, detail).into_response()
}

/// A browser names the page in `Origin`, and the host it believes to talk to in `Host`.
fn refusal(request: &Request, dashboard: &Dashboard, callers: Callers) -> Option<&'static str> {
    // A page may load the dashboard's files, but not read them.
    let file = request.uri().path().starts_with("/dashboard");
    if !file && callers == Callers::Page && !dashboard.sent(request.headers()) {
        return Some("only the dashboard's own page may send requests here");
    }
    if !file && request.headers().contains_key(header::ORIGIN) && !dashboard.sent(request.headers()) {
        return Some(
            "the header Origin shows that a web page sent this request; the local API takes none from web pages but its dashboard",
        );
    }
    (!named_here(request)).then_some(
        "the header Host is neither localhost nor an IP address; the local API takes no requests from web pages",
    )
}

/// Whether a request names this machine as `localhost` or by an address: a name that was made to resolve to it is neither.
fn named_here(request: &Request) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name == "localhost" || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn refused(header: header::HeaderName, value: &str) -> bool {
        let request = Request::builder().header(header, value).body(Body::empty()).unwrap();
        refusal(&request, &Dashboard::default(), Callers::All).is_some()
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

    #[test]
    fn the_page_and_its_token_are_for_this_machine_alone() {
        let page = |header: header::HeaderName, value: &str| {
            let request = Request::builder().uri("/dashboard/").header(header, value).body(Body::empty()).unwrap();
            refusal(&request, &Dashboard::default(), Callers::All).is_some()
        };
        assert!(page(header::HOST, "example.com:8080"), "a name that was made to resolve to this machine");
        assert!(!page(header::HOST, "localhost:8080") && !page(header::ORIGIN, "http://localhost:8080"));
    }

    #[test]
    fn only_the_page_may_call_where_nobody_else_is_to() {
        let refused = |path: &str| {
            let request =
                Request::builder().uri(path).header(header::HOST, "localhost:8080").body(Body::empty()).unwrap();
            refusal(&request, &Dashboard::default(), Callers::Page).is_some()
        };
        assert!(refused("/fanouts") && refused("/") && refused("/health"));
        assert!(!refused("/dashboard") && !refused("/dashboard/app.js"));
    }
}
