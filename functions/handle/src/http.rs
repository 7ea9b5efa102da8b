//! Batch APIs over HTTP.

use std::time::Duration;

use fanfold::limits::{ANSWER_BYTES, DELAY_MAX};
use fanfold::policy::Handler;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};

use crate::answer;
use crate::api::{Answer, BatchApi, Call, CallError};

/// Calls HTTP endpoints. Follows no redirects: a task's content goes to the endpoint that the policy names, nowhere else.
#[derive(Clone, Debug)]
pub struct HttpApi(Client);

impl HttpApi {
    /// A client with a pool of connections.
    ///
    /// # Errors
    /// TLS can not be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        // The first to ask decides for the process; that another part of it did already is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent("fanfold").build()?;
        Ok(Self(client))
    }

    async fn post(&self, url: &str, key: &str, call: &Call, timeout: Duration) -> Result<Answer, CallError> {
        let body = serde_json::to_vec(call).map_err(|error| CallError::for_good(error.to_string()))?;
        let request = self.0.post(url).header(CONTENT_TYPE, "application/json").header("Idempotency-Key", key);
        let response = request.timeout(timeout).body(body).send().await.map_err(|error| failure(&error))?;
        let status = response.status();
        if status.is_success() {
            return answer::parse(&read(response).await?);
        }
        let retry_after = retry_after(response.headers());
        let message = format!("the batch API answered {status}");
        Err(CallError { retriable: retriable(status), retry_after, message })
    }
}

impl BatchApi for HttpApi {
    fn call<'a>(
        &'a self,
        handler: &'a Handler,
        key: &'a str,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move {
            match &handler.url {
                Some(url) => self.post(url, key, call, handler.timeout.0).await,
                None => Err(CallError::for_good("a `command` can be run by the local runner only")),
            }
        }
        .boxed()
    }
}

/// Reads the answer's body, as much as is allowed.
async fn read(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(CallError::again(format!("the answer has more than {ANSWER_BYTES} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Statuses that say "not now" rather than "not this". A redirect is a fault of the policy, not of the moment.
fn retriable(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}

/// The seconds of a `Retry-After`; a date in it is not understood and leaves the delay to the policy.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(DELAY_MAX))
}

/// No answer: the connection failed, or it took too long. Whether the call was received is not known.
fn failure(error: &reqwest::Error) -> CallError {
    let what = if error.is_timeout() {
        "the batch API did not answer in time"
    } else if error.is_connect() {
        "the batch API can not be reached"
    } else {
        "the call of the batch API broke off"
    };
    CallError::again(what)
}
