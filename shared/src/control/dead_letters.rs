//! Dead letters: messages that a step could not process, which an operator moves back to its queue.

use std::collections::BTreeSet;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use serde::Serialize;

use crate::aws::said;
use crate::config::{ConfigError, Surroundings, variables};
use crate::ids::derived;
use crate::limits::{MESSAGE_BYTES_MAX, MESSAGES_PER_CALL_MAX, REDRIVE_MAX, REDRIVE_VISIBILITY};
use crate::messages::{AckMessage, RegisterMessage, RegisterRequest};

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

    /// Moves a page of a step's dead letters back to its queue. Each is sent before it is deleted, so none is lost; one that comes
    /// twice does no harm. Counts would be counted twice then, so they stay. Tasks in messages to `register` get the ids that they would have had: a message that is sent again has
    /// another id, and some of its tasks may be stored. (SQS's own `StartMessageMoveTask` does not know that.)
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

    /// Sends them to the step, and returns the positions of those that SQS took.
    async fn send(&self, queues: &Queues, messages: &[Message]) -> Result<BTreeSet<usize>, DeadLetterError> {
        let mut sent = BTreeSet::new();
        let bodies: Vec<String> = messages.iter().map(|message| body(queues.step, message)).collect();
        for positions in calls(&bodies) {
            let mut entries = Vec::with_capacity(positions.len());
            for at in positions {
                let entry = SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(&bodies[at]);
                let group = messages[at].attributes.as_ref();
                let group = group.and_then(|all| all.get(&MessageSystemAttributeName::MessageGroupId)).cloned();
                let entry = entry.set_message_group_id(group).build();
                entries.push(entry.map_err(|error| DeadLetterError::Service {
                    operation: "SendMessageBatch",
                    message: error.to_string(),
                })?);
            }
            let send = self.sqs.send_message_batch().queue_url(&queues.queue).set_entries(Some(entries));
            let answer = send.send().await.map_err(failed("SendMessageBatch"))?;
            sent.extend(answer.successful.iter().filter_map(|entry| entry.id.parse::<usize>().ok()));
        }
        Ok(sent)
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

/// Positions of bodies that go in one call each; one that is too large for any goes in none.
fn calls(bodies: &[String]) -> Vec<Vec<usize>> {
    let (mut calls, mut bytes) = (Vec::<Vec<usize>>::new(), 0);
    for (at, body) in bodies.iter().enumerate().filter(|(_, body)| body.len() <= MESSAGE_BYTES_MAX) {
        match calls.last_mut() {
            Some(call) if call.len() < MESSAGES_PER_CALL_MAX && bytes + body.len() <= MESSAGE_BYTES_MAX => {
                bytes += body.len();
                call.push(at);
            }
            _ => {
                bytes = body.len();
                calls.push(vec![at]);
            }
        }
    }
    calls
}

/// Whether it is a message with counts: those are not idempotent.
fn counts(step: &str, message: &Message) -> bool {
    let body = message.body.as_deref().unwrap_or_default();
    step == ACK && matches!(serde_json::from_str(body), Ok(AckMessage::Counts(_)))
}

/// The body as it is sent again. What cannot be read is sent as it is.
fn body(step: &str, message: &Message) -> String {
    let body = message.body.clone().unwrap_or_default();
    let id = message.message_id.as_deref().filter(|_| step == REGISTER);
    let Some((id, request)) = id.zip(serde_json::from_str::<RegisterMessage>(&body).ok()) else { return body };
    let tasks = request.tasks();
    if tasks.iter().all(|task| task.id.is_some()) {
        return body;
    }
    let mut tasks = tasks;
    tasks.iter_mut().enumerate().for_each(|(at, task)| {
        task.id.get_or_insert_with(|| derived::task(id, at));
    });
    serde_json::to_string(&RegisterRequest { tasks }).unwrap_or(body)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(id: &str, body: &str) -> Message {
        Message::builder().message_id(id).body(body).build()
    }

    #[test]
    fn tasks_of_a_message_keep_the_ids_that_follow_from_it() {
        let text = r#"{"tasks":[{"kind":"a","content":1},{"id":"01890000-0000-7000-8000-000000000001","kind":"a","content":2}]}"#;
        let again = body("register", &message("m", text));
        let read: RegisterMessage = serde_json::from_str(&again).unwrap();
        let ids: Vec<_> = read.tasks().into_iter().map(|task| task.id.unwrap()).collect();
        assert_eq!(ids, [derived::task("m", 0), "01890000-0000-7000-8000-000000000001".parse().unwrap()]);
        assert_eq!(body("register", &message("other", &again)), again, "once they have ids they keep them");
        let one = body("register", &message("m", r#"{"kind":"a","content":1}"#));
        assert!(one.contains(&derived::task("m", 0).to_string()), "{one}");
        for (step, text) in [("register", "not JSON"), ("ack", text)] {
            assert_eq!(body(step, &message("m", text)), text);
        }
    }

    #[test]
    fn counts_are_told_from_acks() {
        let fanout = "01890000-0000-7000-8000-000000000001";
        let count = format!(r#"{{"counts": [{{"fanout": "{fanout}", "add": 1}}]}}"#);
        assert!(counts("ack", &message("m", &count)) && !counts("register", &message("m", &count)));
        for other in [format!(r#"{{"items": ["{fanout}:{fanout}:0"]}}"#), "not JSON".to_owned(), String::new()] {
            assert!(!counts("ack", &message("m", &other)), "{other}");
        }
    }

    #[test]
    fn calls_are_as_large_as_they_may_be() {
        let bodies = |sizes: &[usize]| sizes.iter().map(|size| "x".repeat(*size)).collect::<Vec<_>>();
        assert_eq!(calls(&bodies(&[1; 11])), [(0..10).collect::<Vec<_>>(), vec![10]]);
        let half = MESSAGE_BYTES_MAX / 2 + 1;
        assert_eq!(calls(&bodies(&[half, half, MESSAGE_BYTES_MAX + 1, 1])), [vec![0], vec![1, 3]]);
    }
}
