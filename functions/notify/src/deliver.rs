//! Delivering notices over HTTPS.

use std::time::Duration;

use fanfold::aws::QueueError;
use fanfold::clock::Timestamp;
use fanfold::limits::{NOTICE_RETRY_AFTER_MAX, NOTICE_TIMEOUT};
use fanfold::notice::Notice;
use fanfold_http_client::{HttpClient, NoAnswer, innermost, retry_after};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};

/// A notice was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// It did not get into the queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The receiver cannot be reached (TLS cannot be set up, for one), or did not answer.
    #[error("{0}")]
    Silent(String),
    /// The receiver did not take it.
    #[error("the receiver answered {status}")]
    Refused {
        /// Its answer.
        status: StatusCode,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// It cannot be written as JSON.
    #[error("the notice cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl DeliveryError {
    /// Whether the receiver asks for no further tries (410 Gone).
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::GONE, .. })
    }

    /// How long the receiver asks to be left alone, at most a day.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused { retry_after: Some(wait), .. } => (*wait).min(NOTICE_RETRY_AFTER_MAX),
            _ => Duration::ZERO,
        }
    }
}

/// What kept the receiver from answering.
fn failure(error: &reqwest::Error) -> String {
    let what = match NoAnswer::of(error) {
        NoAnswer::Unreachable | NoAnswer::Tls => "the receiver cannot be reached",
        NoAnswer::TimedOut => return format!("the receiver did not answer within {} s", NOTICE_TIMEOUT.as_secs()),
        NoAnswer::BrokenOff => "the connection broke off",
    };
    innermost(error).map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"))
}

/// Where notices are posted to.
pub trait Webhooks: Send + Sync {
    /// Posts a notice. The header `webhook-id` is the notice's id, as in Standard Webhooks, by which receivers recognize repetitions.
    /// Fails if the receiver cannot be reached, or answers anything but success.
    fn post<'a>(&'a self, url: &'a str, notice: &'a Notice, now: Timestamp)
    -> BoxFuture<'a, Result<(), DeliveryError>>;
}

/// Posts notices to HTTPS endpoints. Follows no redirects.
#[derive(Clone, Debug, Default)]
pub struct Http(HttpClient);

impl Http {
    async fn send(&self, url: &str, notice: &Notice, now: Timestamp) -> Result<(), DeliveryError> {
        let body = serde_json::to_vec(notice)?;
        let request = self.0.post(url).map_err(|error| DeliveryError::Silent(error.to_string()))?;
        let request = request.header(CONTENT_TYPE, "application/json").header("webhook-id", notice.id.to_string());
        let answer = request
            .timeout(NOTICE_TIMEOUT)
            .body(body)
            .send()
            .await
            .map_err(|error| DeliveryError::Silent(failure(&error)))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let retry_after = retry_after(answer.headers()).map(|asked| asked.delay(now));
        Err(DeliveryError::Refused { status, retry_after })
    }
}

impl Webhooks for Http {
    fn post<'a>(
        &'a self,
        url: &'a str,
        notice: &'a Notice,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), DeliveryError>> {
        self.send(url, notice, now).boxed()
    }
}

/// The receiver behind a URL: scheme, host and port. What is no URL is a receiver of its own, which cannot be reached.
pub(crate) fn receiver(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let parts = parsed.as_ref().and_then(|url| Some((url.scheme(), url.host_str()?, url.port_or_known_default()?)));
    parts.map_or_else(|| url.to_owned(), |(scheme, host, port)| format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_scheme_host_and_port() {
        for (url, name) in [
            ("https://Example.com/a?b=c", "https://example.com:443"),
            ("https://user:word@example.com:8443/", "https://example.com:8443"),
            ("http://localhost:80/x", "http://localhost:80"),
            ("http://[::1]:9000", "http://[::1]:9000"),
        ] {
            assert_eq!(receiver(url), name);
        }
    }
}
