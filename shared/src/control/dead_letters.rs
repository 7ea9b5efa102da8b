//! Dead letters: messages that a step could not process, which an operator moves back to its queue.

mod bodies;

use std::collections::BTreeSet;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use serde::Serialize;

use self::bodies::{bodies, calls, counts};
use crate::aws::said;
use crate::config::{ConfigError, Surroundings, variables};
use crate::limits::{MESSAGE_BYTES_MAX, REDRIVE_MAX, REDRIVE_VISIBILITY};

/// The step whose messages name tasks by their message's id.
const REGISTER: &str = "register";
/// The step whose messages may have counts.
const ACK: &str = "ack";

/// The queues of a step.
#[derive(Clone, Debug)]
struct Queues {
    step: &'static str,
    queue: String,
    dead: String,
}

/// The dead-letter queues of all steps.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    sqs: Client,
    queues: Vec<Queues>,
}

/// A dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct DeadQueue {
    /// The step whose messages it has.
    pub step: &'static str,
    /// About how many messages it has.
    pub messages: u64,
}

/// The result of moving a page of dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Redriven {
    /// Messages that were moved back to their step's queue.
    pub moved: u64,
    /// Messages with counts of estimated fan-outs. They stay: a message that is delivered twice would count twice.
    pub kept: u64,
    /// Messages that SQS did not take, so that they stay.
    pub refused: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// Dead letters could not be listed or moved.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// There is no such step.
    #[error("`{0}` is not a step with a queue")]
    UnknownStep(String),
    /// SQS refused a call, or could not be reached.
    #[error("SQS {operation}: {message}")]
    Service {
        /// The call.
        operation: &'static str,
        /// What went wrong.
        message: String,
    },
}

fn failed<E, R>(operation: &'static str) -> impl FnOnce(SdkError<E, R>) -> DeadLetterError
where
    E: std::error::Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug,
{
    move |error| DeadLetterError::Service { operation, message: said(&error) }
}

impl DeadLetters {
    /// The steps that have them, in the order in which work passes these.
    pub const STEPS: [&str; 7] = [REGISTER, "produce", "elect", "group", "handle", ACK, "notify"];

    /// Of the queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let names = [
            (variables::REGISTER_QUEUE_URL, variables::REGISTER_DEAD_LETTER_QUEUE_URL),
            (variables::PRODUCE_QUEUE_URL, variables::PRODUCE_DEAD_LETTER_QUEUE_URL),
            (variables::ELECT_QUEUE_URL, variables::ELECT_DEAD_LETTER_QUEUE_URL),
            (variables::GROUP_QUEUE_URL, variables::GROUP_DEAD_LETTER_QUEUE_URL),
            (variables::HANDLE_QUEUE_URL, variables::HANDLE_DEAD_LETTER_QUEUE_URL),
            (variables::ACK_QUEUE_URL, variables::ACK_DEAD_LETTER_QUEUE_URL),
            (variables::NOTIFY_QUEUE_URL, variables::NOTIFY_DEAD_LETTER_QUEUE_URL),
        ];
        let of = |(step, (queue, dead))| {
            Ok(Queues { step, queue: surroundings.variable(queue)?, dead: surroundings.variable(dead)? })
        };
        let queues = Self::STEPS.into_iter().zip(names);
        let queues = queues.map(of).collect::<Result<_, ConfigError>>()?;
        Ok(Self { sqs: surroundings.sqs.clone(), queues })
    }

    /// The dead-letter queues, with the number of their messages, as SQS estimates it.
    ///
    /// # Errors
    /// SQS cannot be reached.
    pub async fn list(&self) -> Result<Vec<DeadQueue>, DeadLetterError> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let mut found = Vec::with_capacity(self.queues.len());
        for queues in &self.queues {
            let ask = self.sqs.get_queue_attributes().queue_url(&queues.dead).set_attribute_names(Some(names.to_vec()));
            let attributes = ask.send().await.map_err(failed("GetQueueAttributes"))?.attributes.unwrap_or_default();
            let count = |name| attributes.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
            found.push(DeadQueue { step: queues.step, messages: names.iter().map(count).sum() });
        }
        Ok(found)
    }

    /// Moves a page of a step's dead letters back to its queue. Each is sent before it is deleted, so none is lost; one
    /// that comes twice does no harm. Counts would be counted twice then, so they stay. Tasks in messages to `register` get
    /// the ids that they would have had: a message that is sent again has another id, and some of its tasks may be stored.
    /// (SQS's own `StartMessageMoveTask` does not know that.) If these ids make it too large, it is sent as several.
    ///
    /// # Errors
    /// There is no such step, or SQS cannot be reached. What was moved before is moved.
    pub async fn redrive(&self, step: &str) -> Result<Redriven, DeadLetterError> {
        let queues = self.queues.iter().find(|queues| queues.step == step);
        let queues = queues.ok_or_else(|| DeadLetterError::UnknownStep(step.to_owned()))?;
        let mut redriven = Redriven::default();
        while redriven.moved + redriven.kept + redriven.refused < REDRIVE_MAX {
            let mut received = self.receive(queues).await?;
            if received.is_empty() {
                return Ok(redriven);
            }
            let all = received.len();
            received.retain(|message| !counts(queues.step, message));
            redriven.kept += (all - received.len()) as u64;
            let all = received.len() as u64;
            let sent = self.send(queues, &received).await?;
            let moved = sent.len() as u64;
            self.delete(queues, &received, &sent).await?;
            redriven.moved += moved;
            redriven.refused += all - moved;
        }
        Ok(Redriven { more: true, ..redriven })
    }

    /// Takes some messages. They stay invisible until they are deleted, or for a while.
    async fn receive(&self, queues: &Queues) -> Result<Vec<Message>, DeadLetterError> {
        // A long poll asks all servers of the queue; a short one may find nothing where there is something.
        let receive =
            self.sqs.receive_message().queue_url(&queues.dead).max_number_of_messages(10).wait_time_seconds(1);
        let seconds = i32::try_from(REDRIVE_VISIBILITY.as_secs()).unwrap_or(i32::MAX);
        let receive = receive.visibility_timeout(seconds);
        let receive = receive.message_system_attribute_names(MessageSystemAttributeName::MessageGroupId);
        Ok(receive.send().await.map_err(failed("ReceiveMessage"))?.messages.unwrap_or_default())
    }

    /// Sends them to the step, and returns the positions of those that SQS took, with all their parts.
    async fn send(&self, queues: &Queues, messages: &[Message]) -> Result<BTreeSet<usize>, DeadLetterError> {
        let of_each = messages.iter().enumerate().map(|(of, message)| (of, bodies(queues.step, message)));
        let parts: Vec<(usize, String)> =
            of_each.flat_map(|(of, bodies)| bodies.into_iter().map(move |body| (of, body))).collect();
        let mut left: BTreeSet<usize> = (0..parts.len()).collect();
        for call in calls(parts.iter().map(|(_, body)| body.len())) {
            let too_large = call.iter().any(|at| parts[*at].1.len() > MESSAGE_BYTES_MAX);
            let entries = call.iter().map(|at| entry(*at, &messages[parts[*at].0], &parts[*at].1));
            let entries = entries.collect::<Result<Vec<_>, _>>()?;
            let send = self.sqs.send_message_batch().queue_url(&queues.queue).set_entries(Some(entries));
            let taken = match send.send().await {
                Ok(answer) => answer.successful,
                // It is alone in its call, so SQS refuses nothing else.
                Err(error) if too_large && is_about_size(error.code()) => continue,
                Err(error) => return Err(failed("SendMessageBatch")(error)),
            };
            for at in taken.iter().filter_map(|entry| entry.id.parse::<usize>().ok()) {
                left.remove(&at);
            }
        }
        let left: BTreeSet<usize> = left.into_iter().map(|at| parts[at].0).collect();
        Ok((0..messages.len()).filter(|of| !left.contains(of)).collect())
    }

    async fn delete(
        &self,
        queues: &Queues,
        messages: &[Message],
        sent: &BTreeSet<usize>,
    ) -> Result<(), DeadLetterError> {
        let mut entries = Vec::new();
        for at in sent {
            let entry = DeleteMessageBatchRequestEntry::builder().id(at.to_string());
            let entry = entry.receipt_handle(messages[*at].receipt_handle.as_deref().unwrap_or_default()).build();
            entries.push(entry.map_err(|error| DeadLetterError::Service {
                operation: "DeleteMessageBatch",
                message: error.to_string(),
            })?);
        }
        if entries.is_empty() {
            return Ok(());
        }
        // One that is not deleted comes again: it is moved twice.
        let delete = self.sqs.delete_message_batch().queue_url(&queues.dead).set_entries(Some(entries));
        delete.send().await.map(|_| ()).map_err(failed("DeleteMessageBatch"))
    }
}

/// Whether SQS answers so to what is too large. Other answers (no permission, throttled) are no fault of the message.
fn is_about_size(code: Option<&str>) -> bool {
    // Some answers name the service before the code.
    let code = code.and_then(|code| code.rsplit('.').next());
    matches!(code, Some("BatchRequestTooLong" | "InvalidParameterValue" | "InvalidMessageContents"))
}

/// An entry of a call: a part of a message, in the message's group.
fn entry(at: usize, message: &Message, body: &str) -> Result<SendMessageBatchRequestEntry, DeadLetterError> {
    let group = message.attributes.as_ref();
    let group = group.and_then(|all| all.get(&MessageSystemAttributeName::MessageGroupId)).cloned();
    let entry = SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(body);
    let entry = entry.set_message_group_id(group).build();
    entry.map_err(|error| DeadLetterError::Service { operation: "SendMessageBatch", message: error.to_string() })
}
