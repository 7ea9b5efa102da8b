//! Sources behind a URL: the request is posted, the answer is the response.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::{EXCERPT_BYTES_MAX, SOURCE_ANSWER_BYTES_MAX, SOURCE_RETRY_AFTER_MAX, SOURCE_TIMEOUT};
use fanfold::text::beginning;
use fanfold_http_client::{HttpClient, NoAnswer, body, retry_after, start_of_body};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use crate::{SourceAnswer, SourceError, SourceRequest};

/// Asks HTTP endpoints. Follows no redirects.
#[derive(Clone, Debug)]
pub(crate) struct UrlSource(pub(crate) HttpClient);

impl UrlSource {
    /// Asks one of them.
    pub(crate) async fn ask(
        &self,
        url: &str,
        ask: &SourceRequest,
        now: Timestamp,
    ) -> Result<SourceAnswer, SourceError> {
        let body = serde_json::to_vec(ask).map_err(SourceError::for_good)?;
        let post = self.0.post(url).map_err(SourceError::again)?;
        let post = post.header(CONTENT_TYPE, "application/json").timeout(SOURCE_TIMEOUT).body(body);
        let mut response = post.send().await.map_err(|error| failure(&error))?;
        let status = response.status();
        if status.is_success() {
            return SourceAnswer::read(&read(response).await?, ask);
        }
        let wait = retry_after(response.headers()).map_or(Duration::ZERO, |asked| asked.delay(now));
        let said = match beginning(&start_of_body(&mut response, EXCERPT_BYTES_MAX).await, EXCERPT_BYTES_MAX) {
            said if said.is_empty() => said,
            said => format!(": {said}"),
        };
        let message = format!("the source answered {status}{said}");
        Err(SourceError { retry_after: wait.min(SOURCE_RETRY_AFTER_MAX), ..SourceError::again(message) })
    }
}

/// Reads an answer's body, as far as is allowed.
pub(crate) async fn read(mut response: Response) -> Result<Vec<u8>, SourceError> {
    let body = body(&mut response, SOURCE_ANSWER_BYTES_MAX).await.map_err(|error| failure(&error))?;
    body.ok_or_else(|| {
        let message =
            format!("the answer has more than {SOURCE_ANSWER_BYTES_MAX} bytes; fewer rows per page are allowed");
        SourceError::for_good(message)
    })
}

/// Why a source gave no answer.
pub(crate) fn failure(error: &reqwest::Error) -> SourceError {
    SourceError::again(NoAnswer::text(error, "the source", Some(SOURCE_TIMEOUT)))
}
