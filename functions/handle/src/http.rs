//! Batch APIs over HTTP.

use std::error::Error;
use std::time::Duration;

use fanfold::limits::EXCERPT_BYTES;
use fanfold::policy::{BatchApi, Way};
use fanfold::text::shorten;
use futures::FutureExt;
use reqwest::Client;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};

use crate::api::{Answer, Call, CallError, Caller, Calling, Cause, RetryAfter};
use crate::{answer, body};

/// Calls HTTP endpoints. Follows no redirects: a task's content goes to the endpoint that the policy names, nowhere else.
#[derive(Clone, Debug)]
pub struct HttpCaller(Client);

impl HttpCaller {
    /// A client with a pool of connections.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        // The first to ask decides for the process; that another part of it did already is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent("fanfold").build()?;
        Ok(Self(client))
    }

    async fn post(&self, url: &str, key: &str, call: &Call, timeout: Duration) -> Result<Answer, CallError> {
        let body = serde_json::to_vec(call).map_err(|error| CallError::new(Cause::NotMade, error.to_string()))?;
        let request = self.0.post(url).header(CONTENT_TYPE, "application/json").header(ACCEPT_ENCODING, "gzip");
        let request = request.header("Idempotency-Key", key);
        let response = request.timeout(timeout).body(body).send().await.map_err(|error| failure(&error))?;
        let status = response.status();
        if status.is_success() {
            return answer::parse(&body::read(response).await?);
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| RetryAfter::parse(value.to_str().ok()?));
        let to = response.headers().get(LOCATION).filter(|_| status.is_redirection()).map(|to| {
            let to = String::from_utf8_lossy(to.as_bytes());
            format!(" to {}, which is not followed", shorten(&to, EXCERPT_BYTES))
        });
        let said = match body::excerpt(response).await {
            said if said.is_empty() => said,
            said => format!(": {said}"),
        };
        let message = format!("the batch API answered {status}{}{said}", to.unwrap_or_default());
        Err(CallError { retry_after, ..CallError::new(Cause::Status(status.as_u16()), message) })
    }
}

impl Caller for HttpCaller {
    fn call<'a>(&'a self, batch_api: &'a BatchApi, key: &'a str, call: &'a Call) -> Calling<'a> {
        async move {
            match &batch_api.way {
                Way::Url(url) => self.post(url, key, call, batch_api.timeout.0).await,
                Way::Command(_) => {
                    Err(CallError::new(Cause::NotMade, "a `command` can be run by the local runner only"))
                }
            }
        }
        .boxed()
    }
}

/// Why there is no answer. A connection that was never there was not used: the call was not received.
pub(crate) fn failure(error: &reqwest::Error) -> CallError {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = cause.source();
    }
    if error.is_connect() {
        let (cause, what) = if causes.iter().any(|cause| is_tls(*cause)) {
            (Cause::Tls, "no secure connection to the batch API")
        } else {
            (Cause::Unreachable, "the batch API cannot be reached")
        };
        // The innermost error says it best; the outermost tells the URL, which may hold a password.
        let why = causes.last().map(|error| format!(": {error}")).unwrap_or_default();
        return CallError::new(cause, format!("{what}{why}"));
    }
    let what =
        if error.is_timeout() { "the batch API did not answer in time" } else { "the call of the batch API broke off" };
    CallError::new(Cause::Silence, what)
}

/// Whether TLS failed. An I/O error holds another without being caused by it.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || within.is_some_and(|error| is_tls(error))
}
