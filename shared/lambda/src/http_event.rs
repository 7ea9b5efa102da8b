//! Requests and answers as an HTTP API exchanges them with a function: payload format 2.0.
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lambda_runtime::Error;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// What a path cannot have as it is; the API may have decoded it (<https://url.spec.whatwg.org/#path-percent-encode-set>).
const NOT_IN_PATHS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'^').add(b'`').add(b'{').add(b'}');

/// A request. The API tells more of it; routes need these fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpEvent {
    raw_path: String,
    #[serde(default)]
    raw_query_string: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
    request_context: Context,
}

#[derive(Deserialize)]
struct Context {
    http: Http,
}

#[derive(Deserialize)]
struct Http {
    method: String,
}

impl HttpEvent {
    /// The request for the router.
    ///
    /// # Errors
    /// It is none that HTTP allows.
    pub(crate) fn into_request(self) -> Result<Request<Body>, Error> {
        let mut uri = utf8_percent_encode(&self.raw_path, NOT_IN_PATHS).to_string();
        if !self.raw_query_string.is_empty() {
            uri = format!("{uri}?{}", self.raw_query_string);
        }
        let body = self.body.unwrap_or_default();
        let body = if self.is_base64_encoded { BASE64_STANDARD.decode(body)? } else { body.into_bytes() };
        let request = Request::builder().method(self.request_context.http.method.as_str()).uri(uri);
        let request = self.headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        Ok(request.body(body.into())?)
    }
}

/// An answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpAnswer {
    status_code: u16,
    headers: BTreeMap<String, String>,
    body: String,
    is_base64_encoded: bool,
}

impl HttpAnswer {
    /// The answer of the router.
    ///
    /// # Errors
    /// Its body broke off.
    pub(crate) async fn of(response: Response<Body>) -> Result<Self, Error> {
        let (parts, body) = response.into_parts();
        let body = Vec::from(to_bytes(body, usize::MAX).await?);
        // What is not text goes as base64.
        let (body, is_base64_encoded) = match String::from_utf8(body) {
            Ok(text) => (text, false),
            Err(error) => (BASE64_STANDARD.encode(error.into_bytes()), true),
        };
        let mut headers = BTreeMap::<String, String>::new();
        for (name, value) in &parts.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            let held = headers.entry(name.to_string()).or_default();
            *held = if held.is_empty() { value.into_owned() } else { format!("{held}, {value}") };
        }
        Ok(Self { status_code: parts.status.as_u16(), headers, body, is_base64_encoded })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::{CONTENT_TYPE, VARY};
    use serde_json::{Value, json};

    use super::*;

    fn event(path: &str, query: &str, more: &Value) -> HttpEvent {
        let mut event = json!({
            "rawPath": path, "rawQueryString": query, "requestContext": {"http": {"method": "PUT"}, "stage": "$default"},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[tokio::test]
    async fn a_request_is_what_was_sent() {
        let headers = json!({"headers": {"content-type": "text/plain", "x-two": "a, b"}, "body": "Gr\u{fc}n"});
        for (path, query, uri) in [
            ("/tasks", "", "/tasks"),
            ("/lanes/a b/\u{fc}", "target=x%20y&a=%25", "/lanes/a%20b/%C3%BC?target=x%20y&a=%25"),
            ("/lanes/50%25", "a=b", "/lanes/50%25?a=b"),
            ("/lanes/a?b#c", "", "/lanes/a%3Fb%23c"),
        ] {
            let request = event(path, query, &headers).into_request().unwrap();
            assert_eq!((request.uri().to_string(), request.method().as_str()), (uri.to_owned(), "PUT"));
            assert_eq!(request.headers()["x-two"], "a, b");
            assert_eq!(to_bytes(request.into_body(), 100).await.unwrap(), "Gr\u{fc}n");
        }
        let bytes = event("/", "", &json!({"body": "/wA=", "isBase64Encoded": true})).into_request().unwrap();
        assert_eq!(to_bytes(bytes.into_body(), 100).await.unwrap(), &[255, 0][..]);
        let none = event("/", "", &json!({"body": null})).into_request().unwrap();
        assert!(to_bytes(none.into_body(), 100).await.unwrap().is_empty());
        for wrong in [json!({"headers": {"a b": "c"}}), json!({"body": "?", "isBase64Encoded": true})] {
            assert!(event("/", "", &wrong).into_request().is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_text_if_it_can_be() {
        let answered = async |body: &'static [u8]| {
            let mut response = Response::builder().status(201).header(CONTENT_TYPE, "a/b").header(VARY, "x");
            response.headers_mut().unwrap().append(VARY, HeaderValue::from_static("y"));
            let answer = HttpAnswer::of(response.body(Body::from(body)).unwrap()).await.unwrap();
            serde_json::to_value(answer).unwrap()
        };
        let headers = json!({"content-type": "a/b", "vary": "x, y"});
        let expected = json!({"statusCode": 201, "headers": headers, "body": "\u{fc}", "isBase64Encoded": false});
        assert_eq!(answered("\u{fc}".as_bytes()).await, expected);
        let expected = json!({"statusCode": 201, "headers": headers, "body": "/wA=", "isBase64Encoded": true});
        assert_eq!(answered(&[255, 0]).await, expected);
    }
}
