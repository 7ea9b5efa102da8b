//! Batch APIs behind a URL: the call is posted, the answer is the response.

mod body;
mod sign;

use std::time::Duration;

use fanfold::clock::World;
use fanfold::limits::EXCERPT_BYTES_MAX;
use fanfold::text::{beginning, shorten};
use fanfold_http_client::aws::{Aws, Unsigned};
use fanfold_http_client::{Guard, HttpClient, NoAnswer, NotBegun, innermost, retry_after};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
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
    pub(crate) fn new(guard: Guard, secrets: Secrets, aws: Aws, world: World) -> Self {
        Self { client: HttpClient::guarded(guard), secrets, signer: Signer { aws, world } }
    }

    /// Makes one call.
    pub(crate) async fn send(&self, url: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let (call, mapping) = (request.call, request.mapping.as_ref());
        if let Some(mapping) = mapping.filter(|mapping| mapping.sent.is_empty()) {
            return Ok(mapping.uncalled(call).into_answer(call));
        }
        let mut names = mapping.map(Mapping::secrets).unwrap_or_default();
        names.extend(mapping.and_then(Mapping::signing_secret).map(str::to_owned));
        let secrets = self.secrets.values(&names)?;
        let post = match mapping {
            None => self.client.post(url).map_err(not_begun)?.header(CONTENT_TYPE, "application/json"),
            Some(mapping) => self.mapped(url, mapping, &request, &secrets)?,
        };
        let post =
            post.header(ACCEPT_ENCODING, "gzip").header("Idempotency-Key", &request.key).header(ATTEMPT, call.attempt);
        let response =
            post.timeout(request.timeout).body(request.body).send().await.map_err(|error| failure(&error))?;
        let mapping = request.mapping;
        let reader = mapping.as_ref().filter(|mapping| mapping.reads());
        let (status, headers) = (response.status(), response.headers().clone());
        let said = match reader {
            // The answer to a failed call may be read, too: what cannot be received of it is not needed.
            Some(_) if !status.is_success() => body::read(response).await.unwrap_or_default(),
            None if !status.is_success() => {
                let said = hidden(body::start(response).await, &secrets);
                return Err(refused(status, &headers, &beginning(&said, EXCERPT_BYTES_MAX), &secrets));
            }
            _ => body::read(response).await?,
        };
        let said = hidden(said, &secrets);
        if let Some(reader) = reader {
            let reason = format!("{status}{}", redirect(status, &headers, &secrets));
            let readings = reader.read(call, status.as_u16(), &reason, &said);
            let readings = readings.map_err(|error| CallError { retry_after: retry_after(&headers), ..error })?;
            return Ok(readings.into_answer(call).asking_for(self.delay(&headers)));
        }
        let answer = Answer::read_success(status.as_u16(), &said, call)?;
        let answer = match mapping {
            Some(mapping) => mapping.complete(answer, call),
            None => answer,
        };
        Ok(answer.asking_for(self.delay(&headers)))
    }

    /// The delay that a successful answer asks for.
    fn delay(&self, headers: &HeaderMap) -> Option<Duration> {
        Some(retry_after(headers)?.delay(self.signer.world.now()))
    }

    /// Begins a request as a mapping describes it.
    fn mapped(
        &self,
        url: &str,
        mapping: &Mapping,
        request: &Request<'_>,
        secrets: &Map<String, Value>,
    ) -> Result<RequestBuilder, CallError> {
        let head = mapping.head(&request.key, secrets.clone())?;
        let url = head.url(url);
        let method = mapping.method.name();
        let mut headers = head.headers;
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".to_owned(), mapping.media_type().to_owned()));
        }
        if let Some(sign) = &mapping.sign {
            let signed: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let unsigned = Unsigned { method, url: &url, headers: &signed, body: &request.body };
            let signature = self.signer.sign(sign, secrets, &request.key, &unsigned)?;
            headers.extend(signature);
        }
        let method = method.parse().map_err(|_| CallError::new(Cause::NotMade, "the method cannot be used"))?;
        let begun = self.client.request(method, &url).map_err(not_begun)?;
        headers.into_iter().try_fold(begun, |request, (name, value)| match HeaderValue::from_bytes(value.as_bytes()) {
            Ok(mut value) => {
                value.set_sensitive(true);
                Ok(request.header(name, value))
            }
            // The value is not shown: a secret may be in it.
            Err(_) => {
                Err(CallError::new(Cause::NotMade, format!("the header `{name}` has a value that no header may have")))
            }
        })
    }
}

/// The error of an answer that is no success.
fn refused(status: StatusCode, headers: &HeaderMap, said: &str, secrets: &Map<String, Value>) -> CallError {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let message = format!("the batch API answered {status}{}{said}", redirect(status, headers, secrets));
    CallError { retry_after: retry_after(headers), ..CallError::new(Cause::Status(status.as_u16()), message) }
}

/// Where a redirect leads. It may repeat a query, and with it secrets.
fn redirect(status: StatusCode, headers: &HeaderMap, secrets: &Map<String, Value>) -> String {
    let to = headers.get(LOCATION).filter(|_| status.is_redirection()).map(|to| {
        let to = String::from_utf8_lossy(&hidden(to.as_bytes().to_vec(), secrets)).into_owned();
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
