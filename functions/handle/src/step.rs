//! Handling over SQS.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::limits::BATCH_API_TIMEOUT_MAX;
use fanfold::messages::HandleMessage;
use fanfold::store::batches::Batch;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{Handle, HandleError};

/// What becomes of a batch after a message about it.
#[derive(Debug)]
pub(crate) enum Afterwards {
    /// What follows from its outcomes was sent.
    Done,
    /// It is not called now. A message about it was sent, or will be when it may be called.
    Waits,
    /// Its next part may be called at once.
    NextPart(Box<NextPart>),
}

/// A call for the next part of a batch.
#[derive(Debug)]
pub(crate) struct NextPart {
    /// The batch after the call before. The acks of its outcomes are not sent.
    pub(crate) settled: Batch,
    pub(crate) message: HandleMessage,
    /// How long the call may take, by the policy of the call before.
    pub(crate) timeout: Duration,
}

impl Handle {
    /// Makes one attempt, and while the invocation has time those for the further parts of its batch.
    async fn attempts(&self, message: HandleMessage, began: Timestamp) -> Result<(), HandleError> {
        let mut then = self.attempt(message).await?;
        while let Afterwards::NextPart(next) = then {
            let NextPart { settled, message, timeout } = *next;
            let taken = self.world.now().since(began);
            then = match taken < self.parts_within && taken + timeout <= BATCH_API_TIMEOUT_MAX {
                true => self.attempt(message).await?,
                false => self.come_later(&settled, message, Duration::ZERO).await?,
            };
            if matches!(then, Afterwards::Waits) {
                self.ack_so_far(&settled).await?;
            }
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
