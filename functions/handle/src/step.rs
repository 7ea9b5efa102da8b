//! Handling over SQS.

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::HandleMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Handle;

impl Step for Handle {
    /// One batch after the other: an invocation never makes two calls at once, so the number of calls at once is that of the
    /// invocations, which the event source limits.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<HandleMessage>(deliveries);
            for (delivery, message) in messages {
                if let Err(error) = self.attempt(message).await {
                    tracing::error!(%error, batch = %message.batch, attempt = message.attempt, "the batch was not handled");
                    failures.push(delivery.message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
