//! Handling over SQS.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::lane::Lane;
use fanfold::limits::BATCH_API_TIMEOUT_MAX;
use fanfold::messages::HandleMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{Handle, HandleError};

/// A further call of a batch that may be made at once: for its next part.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) message: HandleMessage,
    pub(crate) lane: Lane,
    /// How long its call may take.
    pub(crate) timeout: Duration,
}

impl Handle {
    /// Makes one attempt, and while the invocation has time those for the further parts of its batch.
    async fn attempts(&self, message: HandleMessage, began: Timestamp) -> Result<(), HandleError> {
        let mut next = self.attempt(message).await?;
        while let Some(Next { message, lane, timeout }) = next {
            next = match self.world.now().since(began) + timeout {
                taken if taken <= BATCH_API_TIMEOUT_MAX => self.attempt(message).await?,
                _ => self.later(&lane, message, Duration::ZERO).await.map(|()| None)?,
            };
        }
        Ok(())
    }
}

impl Step for Handle {
    /// One batch after the other: an invocation never makes two calls at once, so the number of calls at once is that of the
    /// invocations, which the event source limits.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let began = self.world.now();
            let (messages, mut failures) = parse::<HandleMessage>(deliveries);
            for (delivery, message) in messages {
                if let Err(error) = self.attempts(message, began).await {
                    tracing::error!(%error, batch = %message.batch, attempt = message.attempt, "the batch was not handled");
                    failures.push(delivery.message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
