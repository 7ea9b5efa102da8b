//! Lambda functions: the call that invokes one, and how its answer says that the function failed.

use fanfold::limits::EXCERPT_BYTES_MAX;
use fanfold::text::beginning;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::{AwsCall, Service, percent_encoded};

/// The header of an answer that is a function's error, and not what it returned.
const FAILED: &str = "x-amz-function-error";

/// What Lambda says of a function whose time was over.
const TIMED_OUT: &str = "Task timed out after";

/// The call that gives a function an event, and waits for what it returns.
#[must_use]
pub fn invoke(function: &str, event: Vec<u8>) -> AwsCall {
    let path = format!("/2015-03-31/functions/{}/invocations", percent_encoded(function, b""));
    AwsCall::post(Service::Lambda, path, "application/json", event)
}

/// Whether the function failed, by the headers of the answer.
#[must_use]
pub fn has_failed(headers: &HeaderMap) -> bool {
    headers.contains_key(FAILED)
}

/// What a function failed with, in one short line. `body`: that of the answer.
#[must_use]
pub fn why(body: &[u8]) -> String {
    beginning(said(body).as_bytes(), EXCERPT_BYTES_MAX)
}

/// Whether a function failed because its time was over: it may have worked.
#[must_use]
pub fn timed_out(body: &[u8]) -> bool {
    said(body).contains(TIMED_OUT)
}

/// The type and the message of a function's error, or the beginning of a body that has neither.
fn said(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let named = [&document["errorType"], &document["errorMessage"]].map(Value::as_str);
    let named: Vec<&str> = named.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if named.is_empty() { beginning(body, EXCERPT_BYTES_MAX) } else { named.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_named_as_the_function_names_it() {
        let error = br#"{"errorType": "KeyError", "errorMessage": "'id'", "stackTrace": ["x"]}"#;
        assert_eq!(why(error), "KeyError: 'id'");
        assert!(!timed_out(error));
        assert_eq!(why(b"null"), "null");
    }

    #[test]
    fn a_function_whose_time_is_over_is_told_from_others() {
        let late = br#"{"errorMessage": "Task timed out after 3.00 seconds"}"#;
        assert_eq!(why(late), "Task timed out after 3.00 seconds");
        let named = br#"{"errorType": "Sandbox.Timedout", "errorMessage": "Error: Task timed out after 3.00 seconds"}"#;
        assert!(timed_out(late) && timed_out(named) && timed_out(b"Task timed out after 3.00 seconds"));
    }
}
