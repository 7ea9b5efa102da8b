//! Handling over SQS.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::limits::{BATCH_API_TIMEOUT_MAX, FANOUTS_LOGGED};
use fanfold::messages::HandleMessage;
use fanfold::store::batches::Batch;
use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::Instrument;
use tracing::field::Empty;

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
                // Lane and fan-outs are noted once the batch is read.
                let HandleMessage { batch, attempt, .. } = message;
                let span = tracing::error_span!("batch", %batch, attempt, lane = Empty, fanouts = Empty);
                if let Err(error) = self.attempts(message, began).instrument(span.clone()).await {
                    span.in_scope(|| tracing::error!(%error, "the batch was not handled"));
                    failures.push(delivery.message_id);
                }
            }
            failures
        }
        .boxed()
    }
}

/// Notes the lane of a batch, and its first fan-outs, in the lines that are logged about it.
pub(crate) fn note(batch: &Batch) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("lane", tracing::field::display(&batch.lane));
    let mut fanouts: Vec<String> = batch.items().map(|item| item.fanout.to_string()).collect();
    fanouts.dedup();
    fanouts.truncate(FANOUTS_LOGGED);
    span.record("fanouts", fanouts.join(" "));
}
