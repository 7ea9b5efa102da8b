//! The HTTP client for batch APIs, sources and receivers of notices, and for the few AWS APIs that are called without an SDK.

pub mod aws;
mod body;

use std::error::Error;
use std::sync::{Arc, OnceLock};

use fanfold::retry_after::RetryAfter;
use fanfold::text;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, redirect};

pub use body::{body, start_of_body};

/// A client with a pool of connections. It follows no redirects, so that contents of tasks go only where the user directed
/// them. It is set up when it is first used, so that a function need not read hundreds of certificates at its start.
#[derive(Clone, Debug, Default)]
pub struct HttpClient(Arc<OnceLock<Client>>);

/// TLS cannot be set up: no request was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsError(String);

impl HttpClient {
    /// Begins a POST.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, TlsError> {
        self.request(Method::POST, url)
    }

    /// Begins a request.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, TlsError> {
        if let Some(client) = self.0.get() {
            return Ok(client.request(method, url));
        }
        // The first caller decides for the process; another part of it may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().redirect(redirect::Policy::none()).user_agent("fanfold").build();
        let client = client.map_err(|error| TlsError(innermost(&error).unwrap_or_else(|| error.to_string())))?;
        Ok(self.0.get_or_init(|| client).request(method, url))
    }
}

/// Why there is no answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There was no connection: the request was not received.
    Unreachable,
    /// There was no secure connection: the request was not received.
    Tls,
    /// The answer did not come in time. The request may have been received.
    TimedOut,
    /// The connection was lost. The request may have been received.
    BrokenOff,
}

impl NoAnswer {
    /// The reason for this error.
    #[must_use]
    pub fn of(error: &reqwest::Error) -> Self {
        if error.is_connect() {
            return if text::chain(error).any(is_tls) { Self::Tls } else { Self::Unreachable };
        }
        if error.is_timeout() { Self::TimedOut } else { Self::BrokenOff }
    }
}

/// The innermost cause of an error, such as "Connection refused (os error 111)", which is the most useful. The outermost is not
/// shown: it holds the URL, which may hold a password.
#[must_use]
pub fn innermost(error: &reqwest::Error) -> Option<String> {
    text::chain(error).skip(1).last().map(ToString::to_string)
}

/// When an answer asks to be called again.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    headers.get(RETRY_AFTER).and_then(|value| RetryAfter::parse(value.to_str().ok()?))
}

/// Whether TLS failed. An I/O error holds another without being caused by it.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || within.is_some_and(|error| is_tls(error))
}
