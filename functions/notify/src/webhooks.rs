//! Delivering notices over HTTPS.

use std::time::Duration;

use fanfold::aws::QueueError;
use fanfold::clock::Timestamp;
use fanfold::config::{ConfigError, Surroundings};
use fanfold::limits::{NOTICE_RETRY_AFTER_MAX, NOTICE_TIMEOUT};
use fanfold::notice::{NOTICE_MEDIA_TYPE, Notice};
use fanfold_http_client::aws::{AwsError, Refused};
use fanfold_http_client::{Guard, HttpClient, NoAnswer, retry_after};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};

use crate::sign::Secrets;

/// Error codes of Step Functions and Lambda that are final: the token or callback does not exist, was answered, or timed out.
/// Others may pass, such as a permission that is missing.
const FINAL: [&str; 6] = [
    "TaskTimedOut",
    "TaskDoesNotExist",
    "InvalidToken",
    "CallbackTimeoutException",
    "InvalidParameterValueException",
    "ResourceNotFoundException",
];

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
    /// An AWS API did not take it.
    #[error(transparent)]
    Aws(Refused),
    /// An event bus took the call, but not the event.
    #[error("{service} refused the event: {code}: {message}")]
    Event {
        /// The service, as its endpoint calls it.
        service: &'static str,
        /// The error's code.
        code: String,
        /// What it says.
        message: String,
    },
    /// It cannot be written as JSON, or an answer cannot be read as such.
    #[error("not the JSON that is expected: {0}")]
    Json(#[from] serde_json::Error),
}

impl DeliveryError {
    /// Whether no further try can succeed: the receiver asks for none (410 Gone), or the token or callback no longer waits for
    /// an answer, perhaps because the answer to an earlier try was lost.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status == StatusCode::GONE,
            Self::Aws(refused) => FINAL.contains(&refused.code.as_str()),
            _ => false,
        }
    }

    /// How long the receiver asks to be left alone, at most a day.
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused { retry_after: Some(wait), .. } => (*wait).min(NOTICE_RETRY_AFTER_MAX),
            _ => Duration::ZERO,
        }
    }
}

impl From<AwsError> for DeliveryError {
    fn from(error: AwsError) -> Self {
        match error {
            AwsError::NotMade(why) => Self::Silent(why),
            AwsError::NoAnswer(error) => Self::Silent(failure(&error)),
            AwsError::Refused(refused) => Self::Aws(refused),
        }
    }
}

/// Why the receiver did not answer.
pub(crate) fn failure(error: &reqwest::Error) -> String {
    NoAnswer::text(error, "the receiver", Some(NOTICE_TIMEOUT))
}

/// Posts notices to URLs.
pub trait Webhooks: Send + Sync {
    /// Posts a notice as a CloudEvent, with the headers of Standard Webhooks: `webhook-id`, by which receivers recognize
    /// repetitions, is the notice's id, `webhook-timestamp` is now, `webhook-signature` is there if there is a secret to sign
    /// with. Fails if the receiver cannot be reached, or answers anything but success.
    fn post<'a>(&'a self, url: &'a str, notice: &'a Notice, now: Timestamp)
    -> BoxFuture<'a, Result<(), DeliveryError>>;
}

/// Posts notices to HTTPS endpoints. Follows no redirects.
#[derive(Clone, Debug)]
pub struct HttpWebhooks {
    client: HttpClient,
    secrets: Secrets,
}

impl HttpWebhooks {
    /// Posts to what the guard allows, and signs with the secrets that the environment names.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn from_environment(surroundings: &Surroundings, guard: Guard) -> Result<Self, ConfigError> {
        Ok(Self { client: HttpClient::guarded(guard), secrets: Secrets::from_environment(surroundings)? })
    }

    async fn send(&self, url: &str, notice: &Notice, now: Timestamp) -> Result<(), DeliveryError> {
        let body = serde_json::to_vec(notice)?;
        let request = self.client.post(url).map_err(|error| DeliveryError::Silent(error.to_string()))?;
        let id = notice.id.to_string();
        let request = match self.secrets.sign(&id, now.seconds(), &body) {
            Some(signature) => request.header("webhook-signature", signature),
            None => request,
        };
        let answer = request
            .header(CONTENT_TYPE, NOTICE_MEDIA_TYPE)
            .header("webhook-id", id)
            .header("webhook-timestamp", now.seconds())
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

impl Webhooks for HttpWebhooks {
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
