//! The queue of a session: made for it, read, and deleted with it.

use std::time::Duration;

use fanfold::clock::World;
use fanfold::limits::{DEV_ANSWERS_WITHIN_MAX, QUEUE_NAME_MAX};
use serde_json::{Value, json};

use super::message::Received;
use super::sqs::Sqs;
use crate::say::say;

/// How long a message stays invisible that is being worked on, unless that is extended.
const VISIBILITY: Duration = Duration::from_secs(60);

/// How often that is extended.
pub(super) const EXTEND: Duration = Duration::from_secs(20);

/// Hexadecimal digits that make the names of queues different.
const DIGITS: usize = 8;

/// The queue of this session.
#[derive(Debug)]
pub(super) struct DevQueue {
    sqs: Sqs,
    url: String,
    pub(super) arn: String,
}

impl DevQueue {
    /// Makes a queue. `prefix`: what its ARN has to begin with.
    pub(super) async fn create(sqs: Sqs, prefix: &str, kind: &str) -> Result<Self, String> {
        let unique = World::system().uuid().simple().to_string();
        let arn = arn(prefix, kind, &unique[unique.len() - DIGITS..])?;
        let name = arn.rsplit(':').next().unwrap_or_default();
        let attributes = json!({
            "MessageRetentionPeriod": DEV_ANSWERS_WITHIN_MAX.as_secs().to_string(),
            "VisibilityTimeout": VISIBILITY.as_secs().to_string(),
            "SqsManagedSseEnabled": "true",
        });
        let made = json!({"QueueName": name, "Attributes": attributes});
        let made = sqs.call("CreateQueue", made, Duration::ZERO).await?;
        let url = made.get("QueueUrl").and_then(Value::as_str).ok_or("CreateQueue: the answer has no QueueUrl")?;
        Ok(Self { url: url.to_owned(), sqs, arn })
    }

    /// Waits for messages.
    pub(super) async fn receive(&self, most: usize, wait: Duration) -> Result<Vec<Received>, String> {
        let asked = json!({
            "QueueUrl": self.url,
            "MaxNumberOfMessages": most,
            "WaitTimeSeconds": wait.as_secs(),
            "MessageAttributeNames": ["All"],
            "MessageSystemAttributeNames": ["SentTimestamp"],
            // The name of the same before 2024, which emulators know.
            "AttributeNames": ["SentTimestamp"],
        });
        let mut answer = self.sqs.call("ReceiveMessage", asked, wait).await?;
        let messages = answer.remove("Messages").unwrap_or_default();
        Ok(messages.as_array().into_iter().flatten().map(Received::read).collect())
    }

    /// Keeps a message invisible for longer.
    pub(super) async fn extend(&self, handle: &str) {
        let asked = json!({"QueueUrl": self.url, "ReceiptHandle": handle, "VisibilityTimeout": VISIBILITY.as_secs()});
        if let Err(problem) = self.sqs.call("ChangeMessageVisibility", asked, Duration::ZERO).await {
            tracing::warn!(problem, "a message may come again although it is being worked on");
        }
    }

    /// Deletes a message. If that fails it comes again, which does no harm.
    pub(super) async fn done(&self, handle: &str) {
        let asked = json!({"QueueUrl": self.url, "ReceiptHandle": handle});
        if let Err(problem) = self.sqs.call("DeleteMessage", asked, Duration::ZERO).await {
            tracing::warn!(problem, "a message was not deleted");
        }
    }

    /// Deletes the queue.
    pub(super) async fn delete(&self) {
        if let Err(problem) = self.sqs.call("DeleteQueue", json!({"QueueUrl": self.url}), Duration::ZERO).await {
            say(format_args!("fanfold: the queue {} is left: {problem}", self.arn));
        }
    }
}

/// The ARN of a queue that begins with a prefix, and shows the kind as far as there is room.
fn arn(prefix: &str, kind: &str, unique: &str) -> Result<String, String> {
    let begins = prefix.rsplit(':').next().unwrap_or_default();
    let room = QUEUE_NAME_MAX.checked_sub(begins.len() + unique.len() + 1).filter(|room| *room > 0);
    let Some(room) = room else {
        return Err(format!("the stack's name is so long that no queue can begin with `{begins}`"));
    };
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let kind: String = kind.chars().take(room).map(fitting).collect();
    Ok(format!("{prefix}{kind}-{unique}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::control::DevQueues;

    #[test]
    fn the_name_of_a_queue_is_one_that_the_stack_allows() {
        let prefix = |stack: &str| format!("arn:aws:sqs:eu-west-1:123456789012:{stack}-dev-");
        let of = |stack: &str, kind: &str| arn(&prefix(stack), kind, "0a1b2c3d");
        assert_eq!(of("shop", "mail.v2").unwrap(), format!("{}mail-v2-0a1b2c3d", prefix("shop")));
        for (stack, kind) in [("shop", "k".repeat(64)), (&"s".repeat(65) as &str, "mail".to_owned())] {
            assert!(DevQueues::new(prefix(stack)).allow(&of(stack, &kind).unwrap()), "{stack} {kind}");
        }
        assert!(of(&"s".repeat(70), "mail").unwrap_err().contains("the stack's name is so long"));
    }
}
