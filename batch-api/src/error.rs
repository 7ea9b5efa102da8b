//! A call that brought no outcomes.

use fanfold::limits::ERROR_BYTES_MAX;
use fanfold::text::shorten;

use crate::{Cause, RetryAfter};

/// A call without outcomes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Whether to try again.
    pub retriable: bool,
    /// The stage at which it failed.
    pub cause: Cause,
    /// When the batch API asks to be called again.
    pub retry_after: Option<RetryAfter>,
    /// The code of the member that failed, if the call was for it alone.
    pub code: Option<String>,
    /// What went wrong, in short: the error of every member.
    pub message: String,
}

impl CallError {
    /// A call that failed at this stage. Whether another try may help follows from the cause.
    #[must_use]
    pub fn new(cause: Cause, message: impl AsRef<str>) -> Self {
        let message = shorten(message.as_ref(), ERROR_BYTES_MAX).into_owned();
        Self { retriable: cause.retriable(), cause, retry_after: None, code: None, message }
    }

    /// An answer that reports a fault: a status 500.
    #[must_use]
    pub fn again(message: impl AsRef<str>) -> Self {
        Self::new(Cause::Status(500), message)
    }

    /// An answer that refuses this batch: a status 400.
    #[must_use]
    pub fn for_good(message: impl AsRef<str>) -> Self {
        Self::new(Cause::Status(400), message)
    }
}
