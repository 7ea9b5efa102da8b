//! Batch APIs behind a URL: the call is posted, the answer is the response.

mod body;
mod sign;

use fanfold::clock::World;
use fanfold::limits::EXCERPT_BYTES_MAX;
use fanfold::text::{beginning, shorten};
use fanfold_http_client::{Guard, HttpClient, NoAnswer, NotBegun, innermost, retry_after};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Map, Value};

use self::sign::Signer;
use crate::secrets::{Secrets, hide};
use crate::{Answer, CallError, Cause, Mapping, Request};

/// The header that says which call of its batch a call is.
const ATTEMPT: &str = "Fanfold-Attempt";

/// Calls HTTP endpoints.
#[derive(Clone, Debug)]
pub(crate) struct UrlCaller {
    client: HttpClient,
    secrets: Secrets,
    signer: Signer,
}

impl UrlCaller {
    /// Calls what the guard allows.
    pub(crate) fn new(guard: Guard, secrets: Secrets, aws: fanfold_http_client::aws::Aws, world: World) -> Self {
        Self { client: HttpClient::guarded(guard), secrets, signer: Signer { aws, world } }
    }

    /// Makes one call.
    pub(crate) async fn send(&self, url: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let Request { call, body, key, timeout, mapping } = request;
        if let Some(mapping) = mapping.as_ref().filter(|mapping| mapping.sent.is_empty()) {
            return Ok(mapping.uncalled(call).into_answer(call));
        }
        let mut names = mapping.as_ref().map(Mapping::secrets).unwrap_or_default();
        names.extend(mapping.as_ref().and_then(Mapping::signing_secret).map(str::to_owned));
        let secrets = self.secrets.values(&names)?;
        let post = match &mapping {
            None => self.client.post(url).map_err(not_begun)?.header(CONTENT_TYPE, "application/json"),
            Some(mapping) => self.mapped(url, mapping, &key, &secrets, &body)?,
        };
        let post = post.header(ACCEPT_ENCODING, "gzip").header("Idempotency-Key", &key).header(ATTEMPT, call.attempt);
        let response = post.timeout(timeout).body(body).send().await.map_err(|error| failure(&error))?;
        let mapping = mapping.filter(Mapping::reads);
        let (status, headers) = (response.status(), response.headers().clone());
        let said = match &mapping {
            // The answer to a failed call may be read, too: what cannot be received of it is not needed.
            Some(_) if !status.is_success() => body::read(response).await.unwrap_or_default(),
            None if !status.is_success() => {
                let said = hidden(body::excerpt(response).await.into_bytes(), &secrets);
                return Err(refused(status, &headers, &beginning(&said, EXCERPT_BYTES_MAX)));
            }
            _ => body::read(response).await?,
        };
        let said = hidden(said, &secrets);
        match mapping {
            Some(mapping) => {
                let reason = format!("{status}{}", redirect(status, &headers));
                let readings = mapping.read(call, status.as_u16(), &reason, &said);
                let readings = readings.map_err(|error| CallError { retry_after: retry_after(&headers), ..error })?;
                Ok(readings.into_answer(call))
            }
            None if status == StatusCode::MULTI_STATUS => Answer::read_multi_status(&said, call),
            None => Answer::read(&said, call),
        }
    }

    /// Begins a request as a mapping describes it.
    fn mapped(
        &self,
        url: &str,
        mapping: &Mapping,
        key: &str,
        secrets: &Map<String, Value>,
        body: &[u8],
    ) -> Result<RequestBuilder, CallError> {
        let head = mapping.head(key, secrets.clone())?;
        let url = head.url(url);
        let method = mapping.method.name();
        let mut headers = head.headers;
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".to_owned(), mapping.media_type().to_owned()));
        }
        if let Some(sign) = &mapping.sign {
            let signature = self.signer.sign(sign, secrets, (method, &url), &headers, (key, body))?;
            headers.extend(signature);
        }
        let method = method.parse().map_err(|_| CallError::new(Cause::NotMade, "the method cannot be used"))?;
        let request = self.client.request(method, &url).map_err(not_begun)?;
        Ok(headers.into_iter().fold(request, |request, (name, value)| request.header(name, value)))
    }
}

/// The error of an answer that is no success.
fn refused(status: StatusCode, headers: &HeaderMap, said: &str) -> CallError {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let message = format!("the batch API answered {status}{}{said}", redirect(status, headers));
    CallError { retry_after: retry_after(headers), ..CallError::new(Cause::Status(status.as_u16()), message) }
}

/// Where a redirect leads.
fn redirect(status: StatusCode, headers: &HeaderMap) -> String {
    let to = headers.get(LOCATION).filter(|_| status.is_redirection()).map(|to| {
        let to = String::from_utf8_lossy(to.as_bytes());
        format!(" to {}, which is not followed", shorten(&to, EXCERPT_BYTES_MAX))
    });
    to.unwrap_or_default()
}

/// An answer without the values of secrets.
fn hidden(body: Vec<u8>, secrets: &Map<String, Value>) -> Vec<u8> {
    if secrets.is_empty() {
        return body;
    }
    hide(&String::from_utf8_lossy(&body), secrets).map_or(body, String::into_bytes)
}

/// No call was made. What the deployment does not allow holds for every batch.
fn not_begun(error: NotBegun) -> CallError {
    let cause = match error {
        NotBegun::Tls(_) => Cause::Tls,
        NotBegun::Forbidden(_) => Cause::Unreachable,
    };
    CallError::new(cause, format!("the batch API cannot be called: {error}"))
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
