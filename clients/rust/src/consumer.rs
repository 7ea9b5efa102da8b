//! A consumer of an SQS queue, as a Lambda handler or by polling, that acks the items of its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::future::Future;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, MessageSystemAttributeName};
use serde::{Deserialize, Serialize};

use crate::buffer::AckBuffer;
use crate::error::AckError;
use crate::ids::Item;
use crate::senders::AckSender;

/// Any error of a handler or a poller.
type Failure = Box<dyn Error + Send + Sync>;

/// A message of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Its body.
    pub body: String,
    /// How often SQS has delivered it, this delivery included (approximately).
    pub receives: u32,
}

/// A Lambda SQS event: the payload of a function with an SQS event source (with `ReportBatchItemFailures`).
#[derive(Clone, Debug, Deserialize)]
pub struct SqsEvent {
    /// Its messages.
    #[serde(rename = "Records")]
    pub records: Vec<SqsRecord>,
}

/// A message of an SQS event.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsRecord {
    /// Its id.
    pub message_id: String,
    /// Its body.
    pub body: String,
    /// Its attributes, by name.
    pub attributes: BTreeMap<String, String>,
    /// The queue's ARN.
    #[serde(default, rename = "eventSourceARN")]
    pub event_source_arn: String,
}

/// The response to an SQS event: the messages that SQS is to deliver again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResponse {
    /// These messages.
    pub batch_item_failures: Vec<ItemFailure>,
}

/// A message that SQS is to deliver again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemFailure {
    /// Its id.
    pub item_identifier: String,
}

/// Returns the item id in the field `item` of a JSON object.
///
/// # Errors
/// The body is not JSON, or the field is not an item id.
pub fn item_in_body(message: &Message) -> Result<Option<Item>, Failure> {
    let body: serde_json::Value = serde_json::from_str(&message.body)?;
    match body.get("item") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(item) => Ok(Some(item.as_str().unwrap_or_default().parse()?)),
    }
}

/// Handles messages with a function, and acks their items.
///
/// If the function succeeds, the consumer acks the item as succeeded. If it fails, SQS delivers the message again; at delivery
/// `max_receives` or later, the consumer also acks the item as failed. It sends acks before it returns. If an ack cannot be sent, SQS
/// delivers its message again.
pub struct Consumer<S, H> {
    acks: S,
    max_receives: u32,
    item_of: fn(&Message) -> Result<Option<Item>, Failure>,
    handle: H,
}

impl<S: fmt::Debug, H> fmt::Debug for Consumer<S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("acks", &self.acks)
            .field("max_receives", &self.max_receives)
            .finish_non_exhaustive()
    }
}

impl<S, H, F, E> Consumer<S, H>
where
    S: AckSender + Clone,
    H: Fn(Message) -> F,
    F: Future<Output = Result<(), E>>,
    E: fmt::Display,
{
    /// A consumer that finds the item id in the field `item` of a message's body. `max_receives`: one less than the queue's
    /// `maxReceiveCount`, so that a message whose last ack could not be sent is delivered once more.
    pub fn new(acks: S, max_receives: u32, handle: H) -> Self {
        Self { acks, max_receives, item_of: item_in_body, handle }
    }

    /// Finds the item id of a message with this function. A message without one is handled, and not acked.
    #[must_use]
    pub fn item_of(self, item_of: fn(&Message) -> Result<Option<Item>, Failure>) -> Self {
        Self { item_of, ..self }
    }

    /// Handles a Lambda event.
    pub async fn event(&self, event: SqsEvent) -> BatchResponse {
        let in_order = event.records.iter().any(|record| record.event_source_arn.ends_with(".fifo"));
        let messages = event.records.into_iter().map(|record| Message {
            receives: record
                .attributes
                .get("ApproximateReceiveCount")
                .and_then(|count| count.parse().ok())
                .unwrap_or(1),
            id: record.message_id,
            body: record.body,
        });
        let messages: Vec<Message> = messages.collect();
        let failed = self.run(&messages, in_order).await;
        let failures = failed.into_iter().map(|at| ItemFailure { item_identifier: messages[at].id.clone() });
        BatchResponse { batch_item_failures: failures.collect() }
    }

    /// Receives, handles and deletes messages until `stop`. SQS delivers a message that failed again when its visibility timeout is over.
    ///
    /// # Errors
    /// A call to SQS failed. Messages that were handled and acked may be delivered again.
    pub async fn poll(
        &self,
        client: &aws_sdk_sqs::Client,
        queue_url: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        tokio::pin!(stop);
        loop {
            let receive =
                client.receive_message().queue_url(queue_url).max_number_of_messages(10).wait_time_seconds(20);
            let receive = receive.message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
            let received = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                received = receive.send() => received?.messages.unwrap_or_default(),
            };
            let messages = received.iter().map(|one| {
                let counts =
                    one.attributes().and_then(|of| of.get(&MessageSystemAttributeName::ApproximateReceiveCount));
                Message {
                    id: one.message_id().unwrap_or_default().to_owned(),
                    body: one.body().unwrap_or_default().to_owned(),
                    receives: counts.and_then(|count| count.parse().ok()).unwrap_or(1),
                }
            });
            let failed = self.run(&messages.collect::<Vec<_>>(), queue_url.ends_with(".fifo")).await;
            let done = received.iter().enumerate().filter(|(at, _)| !failed.contains(at));
            let entries = done.map(|(at, one)| {
                let handle = one.receipt_handle().unwrap_or_default();
                DeleteMessageBatchRequestEntry::builder().id(at.to_string()).receipt_handle(handle).build()
            });
            let entries: Vec<_> = entries.collect::<Result<_, _>>()?;
            if !entries.is_empty() {
                let deleted =
                    client.delete_message_batch().queue_url(queue_url).set_entries(Some(entries)).send().await?;
                for one in deleted.failed() {
                    tracing::warn!(
                        code = one.code(),
                        "a message was handled but not deleted, SQS will deliver it again"
                    );
                }
            }
        }
    }

    /// Handles messages one after the other, then sends their acks. Returns the positions of those that SQS is to deliver again.
    /// `in_order`: stops after a failure, as FIFO queues require.
    pub async fn run(&self, messages: &[Message], in_order: bool) -> BTreeSet<usize> {
        let buffer = AckBuffer::with_max_age(self.acks.clone(), None);
        let (mut failed, mut items) = (BTreeSet::new(), BTreeMap::new());
        for (at, message) in messages.iter().enumerate() {
            if in_order && !failed.is_empty() {
                failed.insert(at);
                continue;
            }
            let acked = match self.one(message).await {
                Ok(Some(item)) => {
                    items.insert(at, item);
                    buffer.succeeded(item).await
                }
                Ok(None) => Ok(()),
                Err((item, error)) => {
                    tracing::error!(message = message.id, delivery = message.receives, "a message failed: {error}");
                    failed.insert(at);
                    match item.filter(|_| message.receives >= self.max_receives) {
                        Some(item) => {
                            items.insert(at, item);
                            buffer.failed(item).await
                        }
                        None => Ok(()),
                    }
                }
            };
            // A full buffer is sent at once. What could not be sent stays in it, and is sent again at the end.
            report(acked);
        }
        report(buffer.flush().await.map(|_| ()));
        failed.extend(items.iter().filter(|(_, item)| buffer.contains(**item)).map(|(at, _)| *at));
        buffer.give_up();
        failed
    }

    /// Handles a message. Returns its item, or the error.
    async fn one(&self, message: &Message) -> Result<Option<Item>, (Option<Item>, String)> {
        let item = (self.item_of)(message).map_err(|error| (None, error.to_string()))?;
        match (self.handle)(message.clone()).await {
            Ok(()) => Ok(item),
            Err(error) => Err((item, error.to_string())),
        }
    }
}

fn report(acked: Result<(), AckError>) {
    let refused = match acked {
        Ok(()) => return,
        Err(AckError::Refused { refused }) => refused,
        Err(AckError::NotSent { items, causes, refused }) => {
            tracing::error!(
                items,
                ?causes,
                "acks could not be sent; SQS will deliver the messages again whose acks are left at the end"
            );
            refused
        }
    };
    for one in refused {
        tracing::warn!(fanout = %one.fanout, group = %one.group, items = ?one.items, "acks were refused: {}", one.problem);
    }
}
