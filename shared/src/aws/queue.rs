//! Queues: typed messages out, in as few requests as possible.

use std::marker::PhantomData;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde::Serialize;

use super::error::said;
use crate::backoff::delay_seconds;
use crate::ids::derived;
use crate::lane::Lane;
use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_PER_CALL_MAX, SENDS_AT_ONCE_MAX};
use crate::text::causes;

/// A message could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// SQS refused, or could not be reached.
    #[error("SQS {operation} to {queue}: {message}")]
    Service {
        /// The name of the SQS API operation.
        operation: &'static str,
        /// The queue's URL.
        queue: String,
        /// What SQS said.
        message: String,
        /// The SDK's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// SQS took the call, but not this entry.
    #[error("SQS SendMessageBatch to {queue} refused an entry: {message}")]
    Entry {
        /// The queue's URL.
        queue: String,
        /// SQS's code and message.
        message: String,
    },
    /// The message is larger than SQS takes.
    #[error("a message to {queue} has {bytes} bytes, at most {MESSAGE_BYTES_MAX} are allowed")]
    TooLarge {
        /// The queue's URL.
        queue: String,
        /// The message's size.
        bytes: usize,
    },
    /// An entry breaks a rule of the SDK, so that it was not sent.
    #[error("a message to {queue} cannot be built: {problem}")]
    Unbuilt {
        /// The queue's URL.
        queue: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The message cannot be written as JSON.
    #[error("a message cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// A queue that takes messages of one type.
pub struct Queue<M> {
    sender: Sender,
    message: PhantomData<fn(M)>,
}

impl<M> Clone for Queue<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), message: PhantomData }
    }
}

impl<M> std::fmt::Debug for Queue<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.sender.url).finish()
    }
}

/// A message as SQS takes it: its body, its delay in seconds, and its group, if the queue is fair.
type Body = (String, i32, Option<String>);

/// The part that does not depend on the message type. (Generic code is compiled in each crate that uses it.)
#[derive(Clone)]
struct Sender {
    client: Client,
    url: String,
    /// Whether messages have a group.
    fair: bool,
}

/// SQS accepts the characters of XML 1.0. JSON escapes all others except these two, which occur only inside texts.
#[must_use]
pub fn sendable(json: String) -> String {
    if !json.contains(['\u{fffe}', '\u{ffff}']) {
        return json;
    }
    json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

impl<M: Serialize> Queue<M> {
    /// The queue at a URL.
    #[must_use]
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        Self { sender: Sender { client, url: url.into(), fair: false }, message: PhantomData }
    }

    /// The same queue. If `fair`, messages have a group: while one group takes up much of the receivers, SQS delivers messages
    /// of other groups first (fair queues: `MessageGroupId` on a standard queue).
    #[must_use]
    pub fn fair(self, fair: bool) -> Self {
        Self { sender: Sender { fair, ..self.sender }, message: PhantomData }
    }

    /// Sends messages, each about a lane and after its delay. If this fails, some may have been sent.
    ///
    /// # Errors
    /// Not all were sent.
    pub async fn send_for<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a M, Duration, &'a Lane)>,
    ) -> Result<(), QueueError>
    where
        M: 'a,
    {
        let body = |(message, delay, lane): (&M, Duration, &Lane)| {
            let group = self.sender.fair.then(|| derived::message_group(lane).to_string());
            Ok((sendable(serde_json::to_string(message)?), delay_seconds(delay), group))
        };
        let bodies: Vec<Body> = messages.into_iter().map(body).collect::<Result<_, QueueError>>()?;
        self.sender.send_all(bodies).await
    }

    /// Sends one message at once.
    ///
    /// # Errors
    /// It was not sent, or perhaps was and the answer is lost.
    pub async fn send(&self, message: &M) -> Result<(), QueueError> {
        self.send_all([(message, Duration::ZERO)]).await
    }

    /// Sends messages, each after its delay (whole seconds, at most 15 minutes). If this fails, some may have been sent.
    ///
    /// # Errors
    /// Not all were sent.
    pub async fn send_all<'a>(&self, messages: impl IntoIterator<Item = (&'a M, Duration)>) -> Result<(), QueueError>
    where
        M: 'a,
    {
        let body = |(message, delay)| Ok((sendable(serde_json::to_string(message)?), delay_seconds(delay), None));
        let bodies: Vec<Body> = messages.into_iter().map(body).collect::<Result<_, QueueError>>()?;
        self.sender.send_all(bodies).await
    }
}

impl<M> Queue<M> {
    /// How many messages wait to be received, as SQS estimates it. Those that are delayed, or that a worker has, are not counted.
    ///
    /// # Errors
    /// SQS refused, or could not be reached.
    pub async fn backlog(&self) -> Result<u64, QueueError> {
        self.sender.backlog().await
    }
}

impl Sender {
    fn send_all(&self, bodies: Vec<Body>) -> BoxFuture<'_, Result<(), QueueError>> {
        async move {
            let calls = self.calls(bodies)?.into_iter().map(|call| self.call(call));
            let mut sent = stream::iter(calls).buffer_unordered(SENDS_AT_ONCE_MAX);
            while sent.try_next().await?.is_some() {}
            Ok(())
        }
        .boxed()
    }

    /// Splits messages into as few calls as possible.
    fn calls(&self, bodies: Vec<Body>) -> Result<Vec<Vec<Body>>, QueueError> {
        let mut calls: Vec<Vec<Body>> = Vec::new();
        let mut bytes = 0;
        for (body, delay, group) in bodies {
            if body.len() > MESSAGE_BYTES_MAX {
                return Err(QueueError::TooLarge { queue: self.url.clone(), bytes: body.len() });
            }
            match calls.last_mut() {
                Some(call) if call.len() < MESSAGES_PER_CALL_MAX && bytes + body.len() <= MESSAGE_BYTES_MAX => {
                    bytes += body.len();
                    call.push((body, delay, group));
                }
                _ => {
                    bytes = body.len();
                    calls.push(vec![(body, delay, group)]);
                }
            }
        }
        Ok(calls)
    }

    async fn call(&self, bodies: Vec<Body>) -> Result<(), QueueError> {
        let mut call = self.client.send_message_batch().queue_url(&self.url);
        for (at, (body, delay, group)) in bodies.into_iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(body);
            let entry = entry.set_message_group_id(group);
            let entry = if delay > 0 { entry.delay_seconds(delay) } else { entry };
            call = call.entries(entry.build().map_err(|error| self.unbuilt(&error))?);
        }
        let answer = call.send().await.map_err(|error| self.failed("SendMessageBatch", error))?;
        match answer.failed().first() {
            None => Ok(()),
            Some(entry) => Err(QueueError::Entry {
                queue: self.url.clone(),
                message: format!("{}: {}", entry.code(), entry.message().unwrap_or("")),
            }),
        }
    }

    async fn backlog(&self) -> Result<u64, QueueError> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let ask = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(name.clone());
        let answer = ask.send().await.map_err(|error| self.failed("GetQueueAttributes", error))?;
        let count = answer.attributes().and_then(|attributes| attributes.get(&name));
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or_default())
    }

    fn failed<E, R>(&self, operation: &'static str, error: SdkError<E, R>) -> QueueError
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        QueueError::Service { operation, queue: self.url.clone(), message: said(&error), source: Box::new(error) }
    }

    fn unbuilt(&self, error: &dyn std::error::Error) -> QueueError {
        QueueError::Unbuilt { queue: self.url.clone(), problem: causes(error) }
    }
}
