//! The HTTP client for batch APIs, sources and receivers of notices, and for the few AWS APIs that are called without an SDK.

pub mod aws;
mod body;
mod guard;
pub mod webhook;

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fanfold::retry_after::RetryAfter;
use fanfold::text;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, redirect};

pub use body::{body, start_of_body};
pub use guard::{Forbidden, Guard, PRIVATE_HOSTS};

/// A client with a pool of connections. It follows no redirects, so that contents of tasks go only where the user directed
/// them. It is set up when it is first used, so that a function need not read hundreds of certificates at its start.
#[derive(Clone, Debug, Default)]
pub struct HttpClient {
    client: Arc<OnceLock<Client>>,
    /// Which addresses may be called. None: any.
    guard: Option<Guard>,
}

/// A request cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The address may not be called.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
}

impl HttpClient {
    /// A client that calls only what the guard allows.
    #[must_use]
    pub fn guarded(guard: Guard) -> Self {
        Self { client: Arc::default(), guard: Some(guard) }
    }

    /// Begins a POST.
    ///
    /// # Errors
    /// TLS cannot be set up, or the address may not be called.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, NotBegun> {
        self.request(Method::POST, url)
    }

    /// Begins a request.
    ///
    /// # Errors
    /// TLS cannot be set up, or the address may not be called.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, NotBegun> {
        if let Some(guard) = &self.guard {
            guard.check(url)?;
        }
        if let Some(client) = self.client.get() {
            return Ok(client.request(method, url));
        }
        // The first caller decides for the process; another part of it may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().redirect(redirect::Policy::none()).user_agent("fanfold");
        if let Some(guard) = &self.guard {
            // A proxy would resolve names by itself.
            builder = builder.dns_resolver(Arc::new(guard.clone())).no_proxy();
        }
        let client = builder.build();
        let client = client.map_err(|error| NotBegun::Tls(innermost(&error).unwrap_or_else(|| error.to_string())))?;
        Ok(self.client.get_or_init(|| client).request(method, url))
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

    /// Why there is no answer, in words, with the cause. `peer`: who did not answer; `within`: the time that it had, if that is fixed.
    #[must_use]
    pub fn text(error: &reqwest::Error, peer: &str, within: Option<Duration>) -> String {
        let what = match (Self::of(error), within) {
            (Self::TimedOut, Some(within)) => return format!("{peer} did not answer within {} s", within.as_secs()),
            (Self::TimedOut, None) => return format!("{peer} did not answer in time"),
            (Self::Unreachable, _) => format!("{peer} cannot be reached"),
            (Self::Tls, _) => format!("no secure connection to {peer}"),
            (Self::BrokenOff, _) => format!("the call of {peer} broke off"),
        };
        innermost(error).map_or_else(|| what.clone(), |why| format!("{what}: {why}"))
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
