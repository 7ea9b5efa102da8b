//! Serves HTTP routes. As before the deployed functions, a request that does not arrive takes up nothing for long.

mod body;

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use fanfold::limits::{REQUEST_BODY_WAIT, REQUEST_DRAIN, REQUEST_HEADERS_WAIT};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt;

use body::Watched;

/// Between two tries to take a connection when that fails, as it does when all of the process's files are open.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// How long what a client sends is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a request's headers, and for the next request on a connection.
    pub headers: Duration,
    /// For all of a request's body, from its headers.
    pub body: Duration,
    /// For the rest of a body that the routes do not read, after the answer: a client that still sends would lose the answer.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { headers: REQUEST_HEADERS_WAIT, body: REQUEST_BODY_WAIT, drain: REQUEST_DRAIN }
    }
}

/// Serves routes to every client, for as long as this is polled. Connections end with it.
pub async fn serve(listener: TcpListener, router: Router, timeouts: Timeouts) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), timeouts));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, router: Router, timeouts: Timeouts) {
    let service = service_fn(move |request| answer(router.clone(), request, timeouts.body));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(timeouts.headers);
    match builder.serve_connection(TokioIo::new(stream), service).without_shutdown().await {
        Ok(parts) => drain(parts.io.into_inner(), timeouts.drain).await,
        Err(error) => tracing::debug!(%error, "a connection broke off"),
    }
}

/// The response of the routes. One that is ready before the body has arrived closes the connection.
async fn answer(router: Router, request: Request<Incoming>, timeout: Duration) -> Result<Response, Infallible> {
    let (body, read) = Watched::request(request, timeout);
    let mut response = router.oneshot(body).await?;
    if !read.whole() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Closes the sending side, and reads what still arrives: closing at once would make the client's system throw the answer
/// away (RFC 9112, section 9.6).
async fn drain(mut stream: TcpStream, timeout: Duration) {
    let taken = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    // The answer was given; the rest does not change it.
    let _ = tokio::time::timeout(timeout, taken).await;
}
