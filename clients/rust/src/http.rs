//! Requests to the HTTP API: signed for AWS_IAM if a signer is set, and retried.

use std::error::Error;
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_types::SdkConfig;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ClientError, Problem};

/// Credentials to sign with, and the region to sign for.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    credentials: SharedCredentialsProvider,
    region: String,
}

impl Signer {
    pub(crate) fn new(config: &SdkConfig) -> Result<Self, ClientError> {
        let missing = |what: &str| ClientError::Setting(format!("the AWS configuration has no {what} to sign with"));
        let credentials = config.credentials_provider().ok_or_else(|| missing("credentials"))?;
        let region = config.region().ok_or_else(|| missing("region"))?.to_string();
        Ok(Self { credentials, region })
    }

    #[allow(clippy::disallowed_methods, reason = "outside the server, nothing is simulated")]
    async fn sign(&self, request: &mut http::Request<String>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let identity = self.credentials.provide_credentials().await?.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("execute-api")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()?
            .into();
        let uri = request.uri().to_string();
        let headers = request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
        let body = SignableBody::Bytes(request.body().as_bytes());
        let signable = SignableRequest::new(request.method().as_str(), uri, headers, body)?;
        let (instructions, _) = sign(signable, &params)?.into_parts();
        instructions.apply_to_request_http1x(request);
        Ok(())
    }
}

/// The body of a request.
#[derive(Clone, Copy)]
enum Sent<'a> {
    /// A JSON document.
    Json(&'a Value),
    /// A JSON document per line.
    Lines(&'a str),
}

/// A request.
struct Asked<'a> {
    method: Method,
    path: &'a str,
    body: Option<Sent<'a>>,
    key: Option<&'a str>,
    /// Whether it must not be carried out twice.
    once: bool,
}

impl Asked<'_> {
    fn read<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, ClientError> {
        let request = || format!("{} {}", self.method, self.path);
        serde_json::from_slice(answer)
            .map_err(|error| ClientError::Answer { request: request(), cause: error.to_string() })
    }
}

/// The client of one API; it keeps connections open.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    url: String,
    client: reqwest::Client,
    pub(crate) attempts: u32,
    pub(crate) signer: Option<Signer>,
}

impl Http {
    pub(crate) fn new(url: &str) -> Result<Self, ClientError> {
        let address = url.parse::<http::Uri>().ok().filter(|uri| {
            uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
        });
        if address.is_none() {
            let expected = "the address of the HTTP API is expected, such as http://localhost:8080";
            return Err(ClientError::Setting(format!("url: `{url}`: {expected}")));
        }
        // The first call decides for the process; another part of it may have made it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(Duration::from_secs(30));
        let client = client
            .build()
            .map_err(|error| ClientError::Setting(format!("TLS cannot be set up: {}", innermost(&error))))?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), client, attempts: 5, signer: None })
    }

    /// Returns the response's document. Retries under the same key after no answer, 429, 500, 502, 503 and 504.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let body = body.map(Sent::Json);
        self.document(&Asked { method, path, body, key, once: false }).await
    }

    /// Sends a document per line, and returns the documents in the lines of the response; repeats as [`Self::call`] does.
    pub(crate) async fn call_lines<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        lines: &str,
        key: Option<&str>,
    ) -> Result<Vec<T>, ClientError> {
        let asked = Asked { method, path, body: Some(Sent::Lines(lines)), key, once: false };
        let answer = self.repeat(&asked).await?;
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| asked.read(line)).collect()
    }

    /// The same for a request that must not be carried out twice: it is retried only after 429, when nothing was done.
    pub(crate) async fn call_once<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, ClientError> {
        self.document(&Asked { method, path, body: Some(Sent::Json(body)), key: None, once: true }).await
    }

    async fn document<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<T, ClientError> {
        let answer = self.repeat(asked).await?;
        asked.read(&answer)
    }

    /// The body of a success.
    async fn repeat(&self, asked: &Asked<'_>) -> Result<Vec<u8>, ClientError> {
        let Asked { method, path, body, key, once } = asked;
        let name = format!("{method} {path}");
        let mut attempt = 1;
        loop {
            let last = attempt >= self.attempts;
            let alone = last || *once;
            match self.client.execute(self.request(method, path, *body, *key).await?).await {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    if status < 300 {
                        match answer.bytes().await {
                            Ok(bytes) => return Ok(bytes.to_vec()),
                            Err(error) if alone => return Err(unreachable(name, attempt, &error)),
                            Err(_) => {}
                        }
                    } else if last || !(status == 429 || (!once && matches!(status, 500 | 502 | 503 | 504))) {
                        let text = answer.text().await.unwrap_or_default();
                        let plain = || Problem { detail: text.chars().take(1_000).collect(), ..Problem::default() };
                        let problem = serde_json::from_str(&text).unwrap_or_else(|_| plain());
                        return Err(ClientError::Api { request: name, status, problem });
                    }
                }
                Err(error) if alone => return Err(unreachable(name, attempt, &error)),
                Err(_) => {}
            }
            pause(attempt).await;
            attempt += 1;
        }
    }

    async fn request(
        &self,
        method: &Method,
        path: &str,
        body: Option<Sent<'_>>,
        key: Option<&str>,
    ) -> Result<reqwest::Request, ClientError> {
        let mut headers = HeaderMap::new();
        let (kind, text) = match body {
            None => (None, String::new()),
            Some(Sent::Json(document)) => (Some("application/json"), document.to_string()),
            Some(Sent::Lines(lines)) => (Some("application/x-ndjson"), lines.to_owned()),
        };
        if let Some(kind) = kind {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if let Some(key) = key {
            let value = HeaderValue::from_str(key);
            let value = value
                .map_err(|_| ClientError::Setting(format!("idempotency key: `{key}`: visible ASCII is expected")))?;
            headers.insert(HeaderName::from_static("idempotency-key"), value);
        }
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(given) = request.headers_mut() {
            *given = headers;
        }
        let mut request = request.body(text).map_err(|error| ClientError::Setting(format!("{path}: {error}")))?;
        if let Some(signer) = &self.signer {
            signer.sign(&mut request).await.map_err(|error| ClientError::Signing(error.to_string()))?;
        }
        reqwest::Request::try_from(request).map_err(|error| ClientError::Setting(format!("{path}: {error}")))
    }
}

/// Pauses before the next attempt: up to 0.2 s, doubling to 5 s.
pub(crate) async fn pause(attempt: u32) {
    let most =
        Duration::from_millis(200).saturating_mul(1 << attempt.saturating_sub(1).min(8)).min(Duration::from_secs(5));
    tokio::time::sleep(most.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
}

fn unreachable(request: String, attempts: u32, error: &reqwest::Error) -> ClientError {
    ClientError::Unreachable { request, attempts, cause: innermost(error) }
}

fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
