//! What an SQS event source hands to a step, and what the step hands back.

use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::json;
use crate::limits::PROBLEM_BYTES_MAX;
use crate::text::shorten;

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

/// A step that takes deliveries. Each fails or succeeds on its own.
pub trait Step: Send + Sync {
    /// Handles one batch of messages and names those to be delivered again.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures>;
}

/// A body is not a message of its queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(String);

/// Reads the bodies of deliveries. One that is not a message of this type is logged and returned as failed, so that only it
/// goes to the dead-letter queue.
pub fn parse<M: DeserializeOwned>(deliveries: Vec<Delivery>) -> (Vec<(Delivery, M)>, Failures) {
    let mut messages = Vec::with_capacity(deliveries.len());
    let mut failures = Failures::new();
    for delivery in deliveries {
        match read(&delivery.body) {
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

/// Reads one message: a JSON object.
///
/// # Errors
/// The body is something else; the error names the field, its value and what is allowed.
pub fn read<M: DeserializeOwned>(body: &str) -> Result<M, MessageError> {
    json::read(body.as_bytes())
        .map_err(|error| MessageError(shorten(&error.to_string(), PROBLEM_BYTES_MAX).into_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::messages::{AckRequest, HandleMessage};

    const NOBODY: &str = "01890000-0000-7000-8000-000000000001";

    #[test]
    fn an_object_is_read_and_a_list_is_not() {
        let list = format!("[\"{NOBODY}\", 1]");
        assert!(read::<HandleMessage>(&format!(" {{\"batch\": \"{NOBODY}\", \"attempt\": 1}}\n")).is_ok());
        assert_eq!(
            read::<HandleMessage>(&list).unwrap_err().to_string(),
            "is not an object, a JSON object is expected"
        );
        assert!(read::<AckRequest>("[]").is_err());
    }

    #[test]
    fn problems_are_described_in_short() {
        let body = format!("{{\"batch\": \"{NOBODY}\", \"attempt\": -1}}");
        let error = read::<HandleMessage>(&body).unwrap_err().to_string();
        assert!(error.starts_with("`attempt`: invalid value: integer `-1`, expected a whole number"), "{error}");
        let huge = format!("{{\"{}\": 1}}", "x".repeat(100_000));
        let error = read::<HandleMessage>(&huge).unwrap_err().to_string();
        assert!(error.len() <= PROBLEM_BYTES_MAX && error.ends_with("`attempt`, `more`"), "{error}");
    }
}
