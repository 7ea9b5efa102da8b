//! A request's body that is waited for only so long.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

/// The body broke off, or did not come in time.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the body broke off: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the body did not arrive in time")]
    Late,
}

/// Whether all of a body was read.
pub(super) struct Read(Arc<AtomicBool>);

impl Read {
    pub(super) fn whole(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A body with a deadline.
pub(super) struct Watched {
    inner: Incoming,
    deadline: Pin<Box<Sleep>>,
    whole: Arc<AtomicBool>,
}

impl Watched {
    /// The request with its body watched.
    pub(super) fn request(request: Request<Incoming>, patience: Duration) -> (Request<Body>, Read) {
        let whole = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let read = Read(Arc::clone(&whole));
        let deadline = Box::pin(tokio::time::sleep(patience));
        (request.map(|inner| Body::new(Self { inner, deadline, whole })), read)
    }
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) || self.inner.is_end_stream() {
            self.whole.store(true, Ordering::Relaxed);
        }
        match frame {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from))),
            Poll::Pending => self.deadline.as_mut().poll(context).map(|()| Some(Err(BodyError::Late))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
