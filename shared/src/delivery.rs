//! What an SQS event source hands to a step, and what the step hands back.

use futures::future::BoxFuture;

/// One SQS message as a step sees it.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The id SQS gave the message; the same on every redelivery of it.
    pub message_id: String,
    /// The body, as it was sent.
    pub body: String,
    /// How often the message was received, this time included (`ApproximateReceiveCount`).
    pub receive_count: u32,
}

/// The ids of the messages that must be delivered again (`ReportBatchItemFailures`). Empty: all are done.
pub type Failures = Vec<String>;

/// A step that takes deliveries. An error fails the whole batch of messages.
pub trait Step: Send + Sync {
    /// Handles one batch of messages and names those to be delivered again.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures>;
}

/// Reads the bodies of deliveries. One that is not a message of this type is logged and named as failed, so that only it
/// ends in the dead-letter queue.
pub fn parse<M: serde::de::DeserializeOwned>(deliveries: Vec<Delivery>) -> (Vec<(Delivery, M)>, Failures) {
    let mut messages = Vec::with_capacity(deliveries.len());
    let mut failures = Failures::new();
    for delivery in deliveries {
        match serde_json::from_str(&delivery.body) {
            Ok(message) => messages.push((delivery, message)),
            Err(error) => {
                let message_id = &delivery.message_id;
                tracing::warn!(%message_id, %error, "a message is not what this queue takes");
                failures.push(delivery.message_id);
            }
        }
    }
    (messages, failures)
}
