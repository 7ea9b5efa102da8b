//! Handling over SQS: the batches of one invocation side by side.

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::HandleMessage;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use crate::Handle;

/// Batches handled at once by one invocation: as many as it may get.
const CONCURRENT_BATCHES: usize = 10;

impl Step for Handle {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<HandleMessage>(deliveries);
            let handled = messages.into_iter().map(|(delivery, message)| async move {
                let result = self.attempt(message).await;
                (delivery.message_id, message, result)
            });
            let mut handled = stream::iter(handled).buffer_unordered(CONCURRENT_BATCHES);
            while let Some((message_id, message, result)) = handled.next().await {
                if let Err(error) = result {
                    tracing::error!(%error, batch = %message.batch, attempt = message.attempt, "the batch was not handled");
                    failures.push(message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
