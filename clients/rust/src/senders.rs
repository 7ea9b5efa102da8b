//! Senders of acks: over the ack queue, or over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use uuid::Uuid;

use crate::client::Fanfold;
use crate::compact::AckMessage;
use crate::http::pause;
use crate::models::{AckedFanout, Refused};

/// The most bytes of a message and of a batch call: SQS's older limit (256 KiB), less some for the envelope.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 * 1_024 - 4_096;

const MESSAGES_PER_CALL_MAX: usize = 10;

/// How often a message that SQS does not accept is sent in all.
const ATTEMPTS_MAX: u32 = 5;

/// The result of sending messages.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Positions of messages that could not be sent, with the errors.
    pub unsent: BTreeMap<usize, String>,
    /// Acks that were sent but refused.
    pub refused: Vec<Refused>,
    /// Over HTTP: the fan-outs with their new states, by id.
    pub fanouts: BTreeMap<Uuid, AckedFanout>,
}

/// Sends messages of acks. Every message that it does not report as unsent has arrived.
pub trait AckSender: Send + Sync + 'static {
    /// The most bytes of a message.
    fn limit(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    /// Sends messages, and reports those that it cannot send.
    fn send(&self, messages: &[AckMessage]) -> impl Future<Output = Sent> + Send;
}

/// Sends acks to the stack's ack queue (output `AckQueueUrl`). Needs the permission `sqs:SendMessage`.
#[derive(Clone, Debug)]
pub struct SqsAcks {
    client: aws_sdk_sqs::Client,
    queue_url: String,
}

impl SqsAcks {
    /// Sends with this client, to this queue.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, queue_url: impl Into<String>) -> Self {
        Self { client, queue_url: queue_url.into() }
    }

    /// Sends one batch call. SQS may accept some of its messages: the others are sent again, unless SQS reports a sender's fault.
    async fn call(&self, mut call: Vec<usize>, texts: &[String], sent: &mut Sent) {
        for attempt in 1.. {
            let mut batch = self.client.send_message_batch().queue_url(&self.queue_url);
            for at in &call {
                match SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(&texts[*at]).build() {
                    Ok(entry) => batch = batch.entries(entry),
                    Err(error) => return sent.unsent.extend(call.iter().map(|at| (*at, error.to_string()))),
                }
            }
            let answer = match batch.send().await {
                Ok(answer) => answer,
                Err(error) => {
                    // The SDK has retried what can be retried.
                    let why = DisplayErrorContext(error).to_string();
                    return sent.unsent.extend(call.into_iter().map(|at| (at, why.clone())));
                }
            };
            let taken: BTreeSet<&str> = answer.successful().iter().map(|one| one.id()).collect();
            call.retain(|at| !taken.contains(at.to_string().as_str()));
            for failed in answer.failed() {
                if failed.sender_fault() || attempt >= ATTEMPTS_MAX {
                    let why =
                        format!("SQS refused a message: {}: {}", failed.code(), failed.message().unwrap_or_default());
                    sent.unsent
                        .extend(call.extract_if(.., |at| at.to_string() == failed.id()).map(|at| (at, why.clone())));
                }
            }
            if attempt >= ATTEMPTS_MAX {
                sent.unsent.extend(
                    call.drain(..).map(|at| (at, "SQS did not report whether it accepted a message".to_owned())),
                );
            }
            if call.is_empty() {
                return;
            }
            pause(attempt).await;
        }
    }
}

impl AckSender for SqsAcks {
    async fn send(&self, messages: &[AckMessage]) -> Sent {
        let mut sent = Sent::default();
        let texts: Result<Vec<String>, _> = messages.iter().map(serde_json::to_string).collect();
        match texts {
            Ok(texts) => {
                for call in calls(&texts) {
                    self.call(call, &texts, &mut sent).await;
                }
            }
            Err(error) => sent.unsent.extend((0..messages.len()).map(|at| (at, error.to_string()))),
        }
        sent
    }
}

/// Groups positions of messages into batch calls.
fn calls(texts: &[String]) -> Vec<Vec<usize>> {
    let mut made: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0;
    for (at, text) in texts.iter().enumerate() {
        match made.last_mut() {
            Some(call) if call.len() < MESSAGES_PER_CALL_MAX && bytes + text.len() <= MESSAGE_BYTES_MAX => {
                call.push(at);
                bytes += text.len();
            }
            _ => {
                made.push(vec![at]);
                bytes = text.len();
            }
        }
    }
    made
}

/// Sends acks to `POST /acks`. Unlike the queue, it returns which fan-outs are complete, and which items do not exist.
#[derive(Clone, Debug)]
pub struct HttpAcks(pub Fanfold);

impl AckSender for HttpAcks {
    async fn send(&self, messages: &[AckMessage]) -> Sent {
        let mut sent = Sent::default();
        for (at, message) in messages.iter().enumerate() {
            match self.0.ack(&message.items, &message.failed).await {
                Ok(answer) => {
                    sent.refused.extend(answer.refused);
                    sent.fanouts.extend(answer.fanouts.into_iter().map(|fanout| (fanout.id, fanout)));
                }
                Err(error) if error.code() == Some("invalid_acks") => {
                    // None of them exists.
                    sent.refused.extend(message.acks.iter().map(|(group, _, indexes)| Refused {
                        fanout: group.fanout,
                        group: group.group,
                        items: indexes.iter().map(u16::to_string).collect(),
                        problem: error.to_string(),
                    }));
                }
                Err(error) => {
                    sent.unsent.insert(at, error.to_string());
                }
            }
        }
        sent
    }
}
