//! Sending and receiving: the limits of the real SQS that the embedded one lacks, and where a delayed message goes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustack_sqs_core::message::{md5_of_body, md5_of_message_attributes};
use rustack_sqs_core::queue::extract_queue_name;
use rustack_sqs_model::error::{SqsError, SqsErrorCode};
use rustack_sqs_model::input::{GetQueueAttributesInput, ReceiveMessageInput, SendMessageBatchInput, SendMessageInput};
use rustack_sqs_model::output::{ReceiveMessageOutput, SendMessageBatchOutput, SendMessageOutput};
use rustack_sqs_model::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

use super::sqs::Queues;
use super::stamp;

/// The longest delay of a message, in seconds.
const DELAY_SECONDS_MAX: i32 = 900;
/// The most messages of one call.
const ENTRIES_MAX: usize = 10;
/// The most bytes the bodies of one batch call may have together.
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// The attribute of a queue that limits the size of a message.
const SIZE_LIMIT: &str = "MaximumMessageSize";

impl Queues {
    pub(super) async fn send(&self, mut message: SendMessageInput) -> Result<SendMessageOutput, SqsError> {
        check_delay(message.delay_seconds)?;
        if !is_fifo(&message.queue_url) {
            message.message_group_id = None;
        }
        if delay(&message).is_none() {
            return self.provider.send_message(message).await;
        }
        let max_bytes = self.max_bytes(&message.queue_url).await?;
        self.hold_or_send(message, max_bytes).await
    }

    pub(super) async fn send_batch(
        &self,
        mut input: SendMessageBatchInput,
    ) -> Result<SendMessageBatchOutput, SqsError> {
        check_batch(&input)?;
        let _together = self.together.read().await;
        if !is_fifo(&input.queue_url) {
            input.entries.iter_mut().for_each(|entry| entry.message_group_id = None);
        }
        if input.entries.iter().all(|entry| entry.delay_seconds.unwrap_or_default() == 0) {
            return self.provider.send_message_batch(input).await;
        }
        let max_bytes = self.max_bytes(&input.queue_url).await?;
        let mut output = SendMessageBatchOutput::default();
        for entry in input.entries {
            let message = SendMessageInput {
                queue_url: input.queue_url.clone(),
                message_body: entry.message_body,
                delay_seconds: entry.delay_seconds,
                message_deduplication_id: entry.message_deduplication_id,
                message_group_id: entry.message_group_id,
                message_attributes: entry.message_attributes,
                message_system_attributes: entry.message_system_attributes,
            };
            match self.hold_or_send(message, max_bytes).await {
                Ok(sent) => output.successful.push(SendMessageBatchResultEntry {
                    id: entry.id,
                    message_id: sent.message_id.unwrap_or_default(),
                    md5_of_message_body: sent.md5_of_message_body.unwrap_or_default(),
                    md5_of_message_attributes: sent.md5_of_message_attributes,
                    sequence_number: sent.sequence_number,
                }),
                Err(error) => output.failed.push(BatchResultErrorEntry {
                    id: entry.id,
                    sender_fault: error.code.is_sender_fault(),
                    code: error.code.error_type().to_owned(),
                    message: Some(error.message),
                }),
            }
        }
        Ok(output)
    }

    /// The queue answers who waits for a message as soon as it has one, also where that is the first of several that were sent together
    /// or are due together: those are received together, as from SQS.
    pub(super) async fn receive(&self, mut input: ReceiveMessageInput) -> Result<ReceiveMessageOutput, SqsError> {
        self.delayed.hand_over().await;
        stamp::ask(&mut input);
        let mut output = self.provider.receive_message(input.clone()).await?;
        let most = input.max_number_of_messages.unwrap_or(1).clamp(1, ENTRIES_MAX as i32);
        let room = most - output.messages.len() as i32;
        // Otherwise what was received can be received again at once.
        let stays = input.visibility_timeout != Some(0);
        if !output.messages.is_empty() && room > 0 && stays && !is_fifo(&input.queue_url) {
            self.delayed.hand_over().await;
            self.all_sent().await;
            let rest = ReceiveMessageInput { max_number_of_messages: Some(room), wait_time_seconds: Some(0), ..input };
            // What was received must not be lost for what could not be.
            let mut rest = self.provider.receive_message(rest).await.unwrap_or_default().messages;
            rest.retain(|one| output.messages.iter().all(|known| known.message_id != one.message_id));
            output.messages.extend(rest);
        }
        output.messages.iter_mut().for_each(stamp::take);
        Ok(output)
    }

    /// Waits for the sends under way, in a task: a caller that is not polled must keep neither the lock nor its place in the queue for it.
    async fn all_sent(&self) {
        let together = Arc::clone(&self.together);
        let _ = tokio::spawn(async move { drop(together.write_owned().await) }).await;
    }

    /// Holds a delayed message; any other goes to the queue, and so does what the queue is going to refuse.
    async fn hold_or_send(
        &self,
        mut message: SendMessageInput,
        max_bytes: usize,
    ) -> Result<SendMessageOutput, SqsError> {
        let Some(delay) = delay(&message).filter(|_| message.message_body.len() <= max_bytes) else {
            return self.provider.send_message(message).await;
        };
        let md5_of_message_attributes = md5_of_message_attributes(&message.message_attributes);
        let output = SendMessageOutput {
            message_id: Some(stamp::put(&mut message)),
            md5_of_message_body: Some(md5_of_body(&message.message_body)),
            md5_of_message_attributes,
            ..SendMessageOutput::default()
        };
        // Said, so that the queue's own delay is not added.
        message.delay_seconds = Some(0);
        let queue = name_of(&message.queue_url).to_owned();
        self.delayed.hold(&queue, message, delay).await;
        Ok(output)
    }

    /// The size of message the queue takes; an error if there is no such queue.
    async fn max_bytes(&self, queue_url: &str) -> Result<usize, SqsError> {
        let attribute_names = vec![SIZE_LIMIT.to_owned()];
        let input = GetQueueAttributesInput { queue_url: queue_url.to_owned(), attribute_names };
        let attributes = self.provider.get_queue_attributes(input).await?.attributes;
        Ok(attributes.get(SIZE_LIMIT).and_then(|bytes| bytes.parse().ok()).unwrap_or_default())
    }
}

/// The name at the end of a queue's URL.
pub(super) fn name_of(queue_url: &str) -> &str {
    extract_queue_name(queue_url).unwrap_or(queue_url)
}

/// Whether messages of a group come in order. On standard queues SQS uses groups for fairness; the embedded engine has no fair
/// queues, and refuses groups there.
fn is_fifo(queue_url: &str) -> bool {
    queue_url.ends_with(".fifo")
}

/// How long to hold a message. Not at all if it has no delay of its own, or is not for the queue to take as it is: FIFO
/// queues refuse delays, and none takes an empty body or more attributes.
fn delay(message: &SendMessageInput) -> Option<Duration> {
    let seconds =
        message.delay_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0)?;
    let takes = !message.message_body.is_empty()
        && message.message_attributes.len() <= stamp::ATTRIBUTES_MAX
        && !is_fifo(&message.queue_url);
    takes.then(|| Duration::from_secs(seconds))
}

fn check_batch(input: &SendMessageBatchInput) -> Result<(), SqsError> {
    if input.entries.is_empty() {
        return Err(SqsError::empty_batch_request());
    }
    if input.entries.len() > ENTRIES_MAX {
        return Err(SqsError::too_many_entries_in_batch());
    }
    let ids: HashSet<&str> = input.entries.iter().map(|entry| entry.id.as_str()).collect();
    if ids.len() < input.entries.len() {
        return Err(SqsError::batch_entry_ids_not_distinct());
    }
    for entry in &input.entries {
        check_delay(entry.delay_seconds)?;
    }
    let bytes: usize = input.entries.iter().map(|entry| entry.message_body.len()).sum();
    if bytes <= BATCH_BYTES_MAX {
        return Ok(());
    }
    Err(SqsError::new(
        SqsErrorCode::BatchRequestTooLong,
        format!("Batch requests cannot be longer than {BATCH_BYTES_MAX} bytes. You have sent {bytes} bytes."),
    ))
}

fn check_delay(seconds: Option<i32>) -> Result<(), SqsError> {
    match seconds {
        Some(seconds) if !(0..=DELAY_SECONDS_MAX).contains(&seconds) => {
            Err(SqsError::invalid_parameter_value(format!(
                "Value {seconds} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}."
            )))
        }
        _ => Ok(()),
    }
}
