//! Messages to leaders over SQS.

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::limits::BATCHES_AT_ONCE_MAX;
use fanfold::messages::GroupMessage;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use crate::Group;

impl Step for Group {
    /// All that follows from an invocation is sent together: if that fails, all its messages fail, and a repetition finds
    /// its batches formed.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<GroupMessage>(deliveries);
            let formed = messages.into_iter().map(|(delivery, message)| async move {
                let result = self.form(&message).await;
                (delivery.message_id, message, result)
            });
            let mut formed = stream::iter(formed).buffer_unordered(BATCHES_AT_ONCE_MAX);
            let (mut outboxes, mut done) = (Vec::new(), Vec::new());
            while let Some((message_id, message, result)) = formed.next().await {
                match result {
                    Ok(outbox) => {
                        outboxes.push(outbox);
                        done.push(message_id);
                    }
                    Err(error) => {
                        tracing::error!(%error, batch = %message.batch, lane = %message.lane, "the batch was not formed");
                        failures.push(message_id);
                    }
                }
            }
            if let Err(error) = self.send(outboxes).await {
                tracing::error!(%error, batches = done.len(), "batches were formed, but their messages could not be sent");
                failures.extend(done);
            }
            failures
        }
        .boxed()
    }
}
