//! Answers for unknown routes.

use axum::Router;
use axum::http::{Method, Uri};

use crate::{Code, Problem};

/// Adds the answers for unknown routes and methods, to be called once, on routers already merged.
pub fn with_fallbacks(router: Router) -> Router {
    router.method_not_allowed_fallback(method_not_allowed).fallback(unknown_route)
}

async fn unknown_route(method: Method, uri: Uri) -> Problem {
    Problem::new(Code::UnknownRoute, format!("there is no {method} {}", uri.path()))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}; the header Allow lists the methods that it takes", uri.path());
    Problem::new(Code::MethodNotAllowed, detail)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;
    use axum::http::{Request, header};
    use axum::routing::{get, post};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn merged_routers_share_them() {
        let one = Router::new().route("/a", get(|| async {}));
        let two = Router::new().route("/b", post(|| async {}));
        let router = with_fallbacks(one.merge(two));
        let cases = [
            (Method::GET, "/a", 200),
            (Method::GET, "/c?x", 404),
            (Method::DELETE, "/c", 404),
            (Method::GET, "/a/", 404),
            (Method::DELETE, "/a", 405),
            (Method::GET, "/b", 405),
        ];
        for (method, path, status) in cases {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            if status != 200 {
                assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
            }
            assert_eq!(response.headers().contains_key(header::ALLOW), status == 405, "{path}");
        }
    }
}
