//! Batch APIs behind a URL: the call is posted, the answer is the response.

mod body;

use fanfold::limits::EXCERPT_BYTES_MAX;
use fanfold::text::shorten;
use fanfold_http_client::{HttpClient, NoAnswer, innermost, retry_after};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};

use crate::{Answer, CallError, Cause, Request};

/// The header that says which call of its batch a call is.
const ATTEMPT: &str = "Fanfold-Attempt";

/// Calls HTTP endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct UrlCaller(HttpClient);

impl UrlCaller {
    /// Posts one call.
    pub(crate) async fn post(&self, url: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let post = self.0.post(url).map_err(|error| CallError::new(Cause::Tls, error.to_string()))?;
        let post = post.header(CONTENT_TYPE, "application/json").header(ACCEPT_ENCODING, "gzip");
        let post = post.header("Idempotency-Key", &request.key).header(ATTEMPT, request.call.attempt);
        let post = post.timeout(request.timeout).body(request.body);
        let response = post.send().await.map_err(|error| failure(&error))?;
        let status = response.status();
        if status.is_success() {
            let body = body::read(response).await?;
            return match status {
                StatusCode::MULTI_STATUS => Answer::read_multi_status(&body, request.call),
                _ => Answer::read(&body, request.call),
            };
        }
        let retry_after = retry_after(response.headers());
        let to = response.headers().get(LOCATION).filter(|_| status.is_redirection()).map(|to| {
            let to = String::from_utf8_lossy(to.as_bytes());
            format!(" to {}, which is not followed", shorten(&to, EXCERPT_BYTES_MAX))
        });
        let said = match body::excerpt(response).await {
            said if said.is_empty() => said,
            said => format!(": {said}"),
        };
        let message = format!("the batch API answered {status}{}{said}", to.unwrap_or_default());
        Err(CallError { retry_after, ..CallError::new(Cause::Status(status.as_u16()), message) })
    }
}

/// Why there is no answer. Without a connection the call was not received.
fn failure(error: &reqwest::Error) -> CallError {
    let (cause, what) = match NoAnswer::of(error) {
        NoAnswer::Unreachable => (Cause::Unreachable, "the batch API cannot be reached"),
        NoAnswer::Tls => (Cause::Tls, "no secure connection to the batch API"),
        NoAnswer::TimedOut => return CallError::new(Cause::Silence, "the batch API did not answer in time"),
        NoAnswer::BrokenOff => return CallError::new(Cause::Silence, "the call of the batch API broke off"),
    };
    let why = innermost(error).map(|why| format!(": {why}")).unwrap_or_default();
    CallError::new(cause, format!("{what}{why}"))
}
