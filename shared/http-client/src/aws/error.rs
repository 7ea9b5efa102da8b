//! What an AWS API says when it does not do what it was called for.

use std::fmt;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::{ERROR_BYTES_MAX, EXCERPT_READ_BYTES_MAX};
use fanfold::text::shorten;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::Service;
use crate::{retry_after, start_of_body};

/// The header in which APIs of AWS name an error.
pub const ERROR_TYPE: &str = "x-amzn-errortype";

/// Codes of errors that pass, although their status says that the call is wrong: what was signed has become too old (new
/// credentials come by themselves), or the call did not arrive in time.
pub const PASSING: &[&str] =
    &["ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "RequestTimeout"];

/// Codes of errors after which everybody must wait (the SDKs' list of throttling errors, and those of KMS).
pub const THROTTLED: &[&str] = &[
    "BandwidthLimitExceeded",
    "KMSThrottlingException",
    "KmsThrottled",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// A call of an AWS API failed.
#[derive(Debug, thiserror::Error)]
pub enum AwsError {
    /// It could not be made: the environment has no region or credentials, or TLS cannot be set up.
    #[error("{0}")]
    NotMade(String),
    /// There was no answer.
    #[error("no answer")]
    NoAnswer(#[source] reqwest::Error),
    /// The answer was an error.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// An AWS API answered an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The service, as its endpoint calls it.
    pub service: &'static str,
    /// Its answer.
    pub status: StatusCode,
    /// The error's code; empty if it has none.
    pub code: String,
    /// What it says.
    pub message: String,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl Refused {
    /// The error in words, without the parts that it lacks. `service`: how the service is named in it.
    #[must_use]
    pub fn answered_by(&self, service: &str) -> String {
        let parts = [self.code.as_str(), self.message.as_str()].into_iter().filter(|part| !part.is_empty());
        parts.fold(format!("{service} answered {}", self.status), |said, part| format!("{said}: {part}"))
    }

    pub(super) async fn read(service: Service, mut answer: Response, now: Timestamp) -> Self {
        let status = answer.status();
        let named = answer.headers().get(ERROR_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let retry_after = retry_after(answer.headers()).map(|asked| asked.delay(now));
        let body = start_of_body(&mut answer, EXCERPT_READ_BYTES_MAX).await;
        let code = error_code(named.as_deref(), &body);
        let (_, message) = said(&body);
        Self { service: service.name(), status, code, message: shorten(&message, ERROR_BYTES_MAX).into(), retry_after }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.answered_by(self.service))
    }
}

impl std::error::Error for Refused {}

/// The code of an error that an API of AWS answered; empty if it has none. `named`: the header [`ERROR_TYPE`].
#[must_use]
pub fn error_code(named: Option<&str>, body: &[u8]) -> String {
    let code = named.map_or_else(|| said(body).0, str::to_owned);
    code_of(&code).to_owned()
}

/// Code and message in the body of an error: JSON, or the XML of S3.
fn said(body: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') {
        return (element(&text, "Code"), element(&text, "Message"));
    }
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = document["message"].as_str().or(document["Message"].as_str()).unwrap_or_default();
    (text(&document["__type"]), message.to_owned())
}

/// The text of the first element of this name.
fn element(xml: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let inner = xml.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
    inner.map(|(inner, _)| inner.to_owned()).unwrap_or_default()
}

/// The code of an error, which may stand between a namespace and a URL.
fn code_of(text: &str) -> &str {
    let text = text.split(':').next().unwrap_or_default();
    text.rsplit('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_without_the_parts_that_it_lacks() {
        let refused = |code: &str, message: &str| Refused {
            service: "s3",
            status: StatusCode::NOT_FOUND,
            code: code.to_owned(),
            message: message.to_owned(),
            retry_after: None,
        };
        assert_eq!(refused("NoSuchKey", "why").to_string(), "s3 answered 404 Not Found: NoSuchKey: why");
        assert_eq!(refused("", "why").to_string(), "s3 answered 404 Not Found: why");
        assert_eq!(refused("", "").answered_by("S3"), "S3 answered 404 Not Found");
    }

    #[test]
    fn an_error_code_is_read_without_its_namespace() {
        for text in
            ["TaskTimedOut", "com.amazonaws.swf.service.v2.model#TaskTimedOut", "TaskTimedOut:http://x.example/"]
        {
            assert_eq!(code_of(text), "TaskTimedOut");
        }
    }

    #[test]
    fn code_and_message_are_read_from_json_and_from_xml() {
        let both = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        assert_eq!(said(br#"{"__type": "a#B", "Message": "no"}"#), both("a#B", "no"));
        let xml = b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>";
        assert_eq!(said(xml), both("NoSuchKey", "gone"));
        assert_eq!(said(b"<html>"), both("", ""));
        assert_eq!(said(b""), both("", ""));
    }
}
