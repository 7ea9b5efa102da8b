//! Batch APIs behind a URL: the call is posted, the answer is the response.

mod body;
mod later;
mod sign;

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::clock::World;
use fanfold::headers::{ATTEMPT, IDEMPOTENCY_KEY, TOKEN};
use fanfold::limits::{EXCERPT_BYTES_MAX, SECRET_AHEAD};
use fanfold::policy::BatchApi;
use fanfold::text::{beginning, shorten};
use fanfold_http_client::aws::{Aws, ERROR_TYPE, Unsigned};
use fanfold_http_client::{Guard, HttpClient, NoAnswer, NotBegun, retry_after};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, TRANSFER_ENCODING,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Map, Value};

use self::sign::Signer;
use crate::secrets::{Secrets, hide};
use crate::{Accepted, Answer, Call, CallError, Cause, Mapping, Request};

/// What a request consists of beside its headers.
struct Sent<'a> {
    method: &'a str,
    url: &'a str,
    body: &'a [u8],
}

/// What an answer is about.
struct Asked<'a> {
    call: &'a Call,
    mapping: Option<Mapping>,
    /// Whether it may come later.
    later: bool,
}

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

    /// Fetches the secrets of calls that begin soon.
    pub(crate) async fn prepare(&self, batch_api: &BatchApi) -> Result<(), CallError> {
        // What is wrong with a mapping is said by the call.
        if let Ok(Some(mapping)) = Mapping::of(batch_api, &Call::of_nobody()) {
            self.secrets.values(&names_of(Some(&mapping)), batch_api.timeout.0, SECRET_AHEAD).await?;
        }
        Ok(())
    }

    /// Makes one call.
    pub(crate) async fn send(&self, url: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let (call, mapping) = (request.call, request.mapping.as_ref());
        if let Some(mapping) = mapping.filter(|mapping| mapping.sent.is_empty()) {
            return Ok(mapping.uncalled(call).into_answer(call));
        }
        let (secrets, timeout) = self.secrets_of(mapping, request.timeout).await?;
        let post = match mapping {
            None => self.client.post(url).map_err(not_begun)?.header(CONTENT_TYPE, "application/json"),
            Some(mapping) => {
                let head = mapping.head(&request.key, secrets.clone())?;
                let sent = Sent { method: mapping.method.name(), url: &head.url(url), body: &request.body };
                self.mapped(mapping, head.headers, &sent, &request.key, &secrets)?
            }
        };
        let post =
            post.header(ACCEPT_ENCODING, "gzip").header(IDEMPOTENCY_KEY, &request.key).header(ATTEMPT, call.attempt);
        let post = match request.token.as_deref().map(HeaderValue::from_str) {
            Some(Ok(mut token)) => {
                token.set_sensitive(true);
                post.header(TOKEN, token)
            }
            _ => post,
        };
        let response = post.timeout(timeout).body(request.body).send().await.map_err(|error| failure(&error))?;
        let asked = Asked { call, mapping: request.mapping, later: request.later };
        self.answer(url, response, asked, &secrets).await
    }

    /// Asks for the answer to a call that was to be answered later.
    pub(crate) async fn poll(&self, url: &str, at: &str, request: Request<'_>) -> Result<Answer, CallError> {
        // The policy may have another URL by now.
        let at = later::beside(url, at).map_err(|problem| CallError::new(Cause::NotMade, problem))?;
        let mapping = request.mapping.as_ref();
        let (secrets, timeout) = self.secrets_of(mapping, request.timeout).await?;
        let get = match mapping {
            None => self.client.request(Method::GET, &at).map_err(not_begun)?,
            Some(mapping) => {
                let mut headers = mapping.head(&request.key, secrets.clone())?.headers;
                headers.retain(|(name, _)| !name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
                let sent = Sent { method: "GET", url: &at, body: b"" };
                self.mapped(mapping, headers, &sent, &request.key, &secrets)?
            }
        };
        let get = get.header(ACCEPT_ENCODING, "gzip").header(IDEMPOTENCY_KEY, &request.key);
        let get = get.header(ATTEMPT, request.call.attempt).timeout(timeout);
        let response = get.send().await.map_err(|error| failure(&error))?;
        let asked = Asked { call: request.call, mapping: request.mapping, later: true };
        self.answer(url, response, asked, &secrets).await
    }

    /// The secrets that a call needs, and how much of its time is left.
    async fn secrets_of(
        &self,
        mapping: Option<&Mapping>,
        timeout: Duration,
    ) -> Result<(Map<String, Value>, Duration), CallError> {
        let began = self.signer.world.now();
        let secrets = self.secrets.values(&names_of(mapping), timeout, Duration::ZERO).await?;
        let left = timeout.saturating_sub(self.signer.world.now().since(began));
        if left.is_zero() {
            return Err(CallError::new(
                Cause::Unreachable,
                "the secrets came so late that no time was left for the call",
            ));
        }
        Ok((secrets, left))
    }

    /// Reads an answer. `url`: that of the policy.
    async fn answer(
        &self,
        url: &str,
        response: Response,
        asked: Asked<'_>,
        secrets: &Map<String, Value>,
    ) -> Result<Answer, CallError> {
        let Asked { call, mut mapping, later } = asked;
        let error_type = response.headers().get(ERROR_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        mapping.iter_mut().for_each(|mapping| mapping.error_type.clone_from(&error_type));
        let reader = mapping.as_ref().filter(|mapping| mapping.reads());
        let (status, headers) = (response.status(), response.headers().clone());
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.secrets.doubt(secrets.keys());
        }
        if later && status == StatusCode::ACCEPTED {
            return Ok(Answer::Later(self.comes_later(url, call, mapping.as_ref(), &headers)));
        }
        // Whatever else is wrong with an answer, it may ask to wait.
        let asking = |error| CallError { retry_after: retry_after(&headers), ..error };
        let said = match reader {
            // The answer to a failed call may be read, too: what cannot be received of it is not needed.
            Some(_) if !status.is_success() => body::read(response).await.unwrap_or_default(),
            None if !status.is_success() => {
                let said = hidden(body::start(response).await, secrets);
                return Err(refused(status, &headers, &beginning(&said, EXCERPT_BYTES_MAX), secrets));
            }
            _ => body::read(response).await.map_err(asking)?,
        };
        if status.is_success() && said.is_empty() && !says_its_length(status, &headers) {
            let message = "the answer ended without a body; an empty one needs `Content-Length: 0` or the status 204";
            return Err(asking(CallError::new(Cause::Silence, message)));
        }
        let said = hidden(said, secrets);
        if let Some(reader) = reader {
            let reason = format!("{status}{}", redirect(status, &headers, secrets));
            let readings = reader.read(call, status.as_u16(), &reason, &said);
            let readings = readings.map_err(asking)?;
            return Ok(readings.into_answer(call).asking_for(self.delay(&headers), call));
        }
        let answer = Answer::read_success(status.as_u16(), &said, call).map_err(asking)?;
        let answer = match mapping {
            Some(mapping) => mapping.complete(answer, call),
            None => answer,
        };
        Ok(answer.asking_for(self.delay(&headers), call))
    }

    /// What a status 202 says. Members that were not in the request have failed already.
    fn comes_later(&self, url: &str, call: &Call, mapping: Option<&Mapping>, headers: &HeaderMap) -> Accepted {
        let members = match mapping.map(|mapping| mapping.uncalled(call).into_answer(call)) {
            Some(Answer::Members(members)) => members,
            _ => Vec::new(),
        };
        let (poll, problem) = match later::named(url, headers) {
            Ok(poll) => (poll, None),
            Err(problem) => (None, Some(problem)),
        };
        Accepted { members, poll, after: self.delay(headers), problem }
    }

    /// The delay that a successful answer asks for.
    fn delay(&self, headers: &HeaderMap) -> Option<Duration> {
        Some(retry_after(headers)?.delay(self.signer.world.now()))
    }

    /// Begins a request with the headers of a mapping.
    fn mapped(
        &self,
        mapping: &Mapping,
        mut headers: Vec<(String, String)>,
        sent: &Sent<'_>,
        key: &str,
        secrets: &Map<String, Value>,
    ) -> Result<RequestBuilder, CallError> {
        let Sent { method, url, body } = *sent;
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".to_owned(), mapping.media_type().to_owned()));
        }
        if let Some(sign) = &mapping.sign {
            let signed: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let unsigned = Unsigned { method, url, headers: &signed, body };
            let signature = self.signer.sign(sign, secrets, key, &unsigned)?;
            headers.extend(signature);
        }
        let method = method.parse().map_err(|_| CallError::new(Cause::NotMade, "the method cannot be used"))?;
        let begun = self.client.request(method, url).map_err(not_begun)?;
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

/// The secrets that calls need.
fn names_of(mapping: Option<&Mapping>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = mapping.map(Mapping::secrets).unwrap_or_default().into_iter().collect();
    names.extend(mapping.and_then(Mapping::signing_secret).map(str::to_owned));
    names
}

/// Whether an answer says how long its body is (RFC 9112, section 6.3). If only the end of the connection says that it is over, the
/// server may have died before it wrote the body.
fn says_its_length(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::NO_CONTENT || headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING)
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
pub(crate) fn failure(error: &reqwest::Error) -> CallError {
    let cause = match NoAnswer::of(error) {
        NoAnswer::Unreachable => Cause::Unreachable,
        NoAnswer::Tls => Cause::Tls,
        NoAnswer::TimedOut | NoAnswer::BrokenOff => Cause::Silence,
    };
    CallError::new(cause, NoAnswer::text(error, "the batch API", None))
}
