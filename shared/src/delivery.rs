//! What an SQS event source hands to a step, and what the step hands back.

use futures::future::BoxFuture;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::limits::PROBLEM_BYTES;
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

/// A step that takes deliveries. An error fails the whole batch of messages.
pub trait Step: Send + Sync {
    /// Handles one batch of messages and names those to be delivered again.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures>;
}

/// A body is not what its queue takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MessageError(String);

impl MessageError {
    fn new(problem: &str) -> Self {
        Self(shorten(problem, PROBLEM_BYTES).into_owned())
    }
}

/// Reads the bodies of deliveries. One that is not a message of this type is logged and named as failed, so that only it
/// ends in the dead-letter queue.
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
    // Serde would read a list as a struct's fields in their order: nobody means that.
    let object = body.bytes().find(|byte| !byte.is_ascii_whitespace()) == Some(b'{');
    if object && let Ok(message) = serde_json::from_str(body) {
        return Ok(message);
    }
    // Only what is wrong is read again, to tell where.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(body) {
        return Err(MessageError::new(&format!("it is not JSON: {error}")));
    }
    if !object {
        return Err(MessageError::new("a JSON object is wanted"));
    }
    let mut reader = serde_json::Deserializer::from_str(body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // The path of the whole body is a dot.
        let field = if path == "." { String::new() } else { format!("`{path}`: ") };
        MessageError::new(&format!("{field}{}", error.into_inner()))
    })
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
        assert_eq!(read::<HandleMessage>(&list).unwrap_err().to_string(), "a JSON object is wanted");
        assert!(read::<AckRequest>("[]").is_err());
    }

    #[test]
    fn what_is_wrong_is_told_in_short() {
        let body = format!("{{\"batch\": \"{NOBODY}\", \"attempt\": -1}}");
        let error = read::<HandleMessage>(&body).unwrap_err().to_string();
        assert!(error.starts_with("`attempt`: invalid value: integer `-1`, expected u32 at line 1"), "{error}");
        let huge = format!("{{\"{}\": 1}}", "x".repeat(100_000));
        let error = read::<HandleMessage>(&huge).unwrap_err().to_string();
        assert!(
            error.len() <= PROBLEM_BYTES && error.ends_with("`batch` or `attempt` at line 1 column 100003"),
            "{error}"
        );
    }
}
