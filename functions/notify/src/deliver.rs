//! Delivering notices over HTTPS.

use std::time::Duration;

use fanfold::notice::Notice;
use fanfold::queue::QueueError;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;

/// How long a receiver may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A notice was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// It did not get into the queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The receiver can not be reached or did not answer.
    #[error("the receiver of notices can not be reached")]
    Unreachable(#[from] reqwest::Error),
    /// The receiver did not take it.
    #[error("the receiver of notices answered {0}")]
    Refused(reqwest::StatusCode),
    /// It can not be written as JSON.
    #[error("the notice can not be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Posts notices to HTTPS endpoints. Follows no redirects.
#[derive(Clone, Debug)]
pub struct Http(Client);

impl Http {
    /// A client with a pool of connections.
    ///
    /// # Errors
    /// TLS can not be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        // The first to ask decides for the process; that another part of it did already is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent("fanfold");
        Ok(Self(client.timeout(TIMEOUT).build()?))
    }

    /// Posts a notice. The header `webhook-id` is the notice's id, as in Standard Webhooks, for receivers to tell repeats.
    ///
    /// # Errors
    /// The receiver can not be reached, or answers anything but success.
    pub async fn post(&self, url: &str, notice: &Notice) -> Result<(), DeliveryError> {
        let body = serde_json::to_vec(notice)?;
        let request =
            self.0.post(url).header(CONTENT_TYPE, "application/json").header("webhook-id", notice.id.to_string());
        let status = request.body(body).send().await?.status();
        if status.is_success() { Ok(()) } else { Err(DeliveryError::Refused(status)) }
    }
}
