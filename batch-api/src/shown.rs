//! Requests as people are shown them.

use fanfold::policy::{BatchApi, Way};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{CallError, Request};

/// A request as it is shown: with the names of secrets in the place of their values, and without what is made anew for each call
/// (its number, its signature, the token of its outcomes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "WrittenRequest"))]
pub struct ShownRequest {
    /// The method, if it is sent to a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'static str>,
    /// Where it is sent: a URL, a Lambda function, a queue, or a program with its arguments.
    pub to: String,
    /// Its `Idempotency-Key`.
    pub idempotency_key: String,
    /// Its other headers, if it is sent to a URL. `[secret NAME]` stands for the value of a secret.
    pub headers: Map<String, Value>,
    /// Its body. What is longer than 1 MiB is cut off.
    pub body: String,
    /// The size of the whole body in bytes.
    pub body_bytes: usize,
}

/// A method, a URL and headers.
type ShownHead = (Option<&'static str>, String, Map<String, Value>);

impl Request<'_> {
    /// The request as it is shown. `most`: the bytes of the body that are shown.
    ///
    /// # Errors
    /// A header or the query cannot be written.
    pub fn shown(&self, batch_api: &BatchApi, most: usize) -> Result<ShownRequest, CallError> {
        let (method, to, headers) = match &batch_api.way {
            Way::Url(url) => self.shown_head(url)?,
            Way::Lambda(to) | Way::Sqs(to) => (None, to.clone(), Map::new()),
            Way::Command(program) => (None, program.join(" "), Map::new()),
        };
        let mut body = String::from_utf8_lossy(&self.body).into_owned();
        body.truncate(body.floor_char_boundary(most));
        let (idempotency_key, body_bytes) = (self.key.clone(), self.body.len());
        Ok(ShownRequest { method, to, idempotency_key, headers, body, body_bytes })
    }

    /// The method, the URL and the headers of a request that is sent to a URL.
    fn shown_head(&self, url: &str) -> Result<ShownHead, CallError> {
        let mut headers = Map::new();
        let Some(mapping) = &self.mapping else {
            headers.insert("Content-Type".to_owned(), "application/json".into());
            return Ok((Some("POST"), url.to_owned(), headers));
        };
        let named = |name: String| (name.clone(), Value::String(format!("[secret {name}]")));
        let head = mapping.head(&self.key, mapping.secrets().into_iter().map(named).collect())?;
        if !head.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.insert("Content-Type".to_owned(), mapping.media_type().into());
        }
        let url = head.url(url);
        headers.extend(head.headers.into_iter().map(|(name, value)| (name, value.into())));
        Ok((Some(mapping.method.name()), url, headers))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::call::testing::call;
    use serde_json::json;

    const A: &str = "0189abcd-0000-7000-8000-000000000001";

    fn shown(batch_api: Value, most: usize) -> ShownRequest {
        let batch_api: BatchApi = serde_json::from_value(batch_api).unwrap();
        let call = call(&[A]);
        Request::new(&batch_api, &call).unwrap().with_token(Some("1.abc".to_owned())).shown(&batch_api, most).unwrap()
    }

    #[test]
    fn a_mapped_request_shows_where_secrets_are_and_not_what_they_are() {
        let request = shown(
            json!({
                "url": "https://example.com/bulk",
                "request": {
                    "method": "PUT",
                    "headers": {"Authorization": "Bearer ${secret.TOKEN}"},
                    "query": {"key": "${secret.KEY}"},
                    "format": "ndjson",
                    "body": [{"${members}": {"id": "${id}"}}],
                },
            }),
            1_000,
        );
        assert_eq!(
            (request.method, request.to.as_str()),
            (Some("PUT"), "https://example.com/bulk?key=%5Bsecret%20KEY%5D")
        );
        let headers = json!({"Authorization": "Bearer [secret TOKEN]", "Content-Type": "application/x-ndjson"});
        assert_eq!(Value::Object(request.headers), headers);
        assert_eq!(request.body, format!("{{\"id\":\"{A}\"}}\n"));
    }

    #[test]
    fn every_way_shows_where_it_leads_and_none_its_token() {
        for (batch_api, method, to) in [
            (json!({"url": "https://example.com/"}), Some("POST"), "https://example.com/"),
            (json!({"lambda": "books"}), None, "books"),
            (
                json!({"sqs": "arn:aws:sqs:eu-west-1:1:books", "answers_within": "1h"}),
                None,
                "arn:aws:sqs:eu-west-1:1:books",
            ),
            (json!({"command": ["python3", "api.py"]}), None, "python3 api.py"),
        ] {
            let request = shown(batch_api, 1_000);
            assert_eq!((request.method, request.to.as_str()), (method, to));
            assert!(request.body.contains(A) && request.body.len() == request.body_bytes, "{request:?}");
            assert!(!serde_json::to_string(&request).unwrap().contains("1.abc"));
        }
    }

    #[test]
    fn a_long_body_is_cut_off_between_characters() {
        let batch_api: BatchApi = serde_json::from_value(json!({"command": ["x"]})).unwrap();
        let mut call = call(&[]);
        call.target = "Zürich".to_owned();
        let request = Request::new(&batch_api, &call).unwrap();
        let at = String::from_utf8_lossy(&request.body).find('ü').unwrap();
        let shown = request.shown(&batch_api, at + 1).unwrap();
        assert!(shown.body.ends_with("\"Z") && shown.body_bytes > at + 1, "{shown:?}");
    }
}
