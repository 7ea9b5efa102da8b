//! The embedded SQS: dispatch of its operations, and the limits of the real one that it lacks.

use std::sync::Arc;

use bytes::Bytes;
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::response::error_to_json;
use rustack_sqs_model::error::{SqsError, SqsErrorCode};
use rustack_sqs_model::input::{CreateQueueInput, GetQueueAttributesInput, SendMessageBatchInput, SendMessageInput};
use rustack_sqs_model::operations::SqsOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::EngineError;
use super::connector::Answer;
use super::place::{ACCOUNT, QUEUE_HOST, QUEUE_PORT, REGION};
use crate::usage::Meter;

/// The longest delay of a message, in seconds.
const MAX_DELAY: i32 = 900;
/// The most bytes the bodies of one batch call may have together.
const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// How many messages a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Messages that can be received now.
    pub visible: u64,
    /// Messages received and neither deleted nor visible again.
    pub in_flight: u64,
    /// Messages sent with a delay that has not run out.
    pub delayed: u64,
}

impl Backlog {
    /// All messages of the queue.
    pub fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

/// The queues of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    provider: Arc<RustackSqs>,
}

impl Queues {
    pub(crate) fn new() -> Self {
        let config = SqsConfig {
            default_region: REGION.to_owned(),
            account_id: ACCOUNT.to_owned(),
            host: QUEUE_HOST.to_owned(),
            port: QUEUE_PORT,
            ..SqsConfig::default()
        };
        Self { provider: Arc::new(RustackSqs::new(config)) }
    }

    pub(crate) async fn create(&self, input: CreateQueueInput) -> Result<(), SqsError> {
        self.provider.create_queue(input).await.map(|_| ())
    }

    pub(crate) async fn backlog(&self, queue_url: &str) -> Result<Backlog, EngineError> {
        let input = GetQueueAttributesInput { queue_url: queue_url.to_owned(), attribute_names: vec!["All".to_owned()] };
        let attributes = self.provider.get_queue_attributes(input).await.map_err(|error| EngineError::Queue {
            queue: queue_url.to_owned(),
            problem: error.message,
        })?;
        let count = |name: &str| {
            let value = attributes.attributes.get(name);
            value.and_then(|value| value.parse().ok()).unwrap_or_default()
        };
        Ok(Backlog {
            visible: count("ApproximateNumberOfMessages"),
            in_flight: count("ApproximateNumberOfMessagesNotVisible"),
            delayed: count("ApproximateNumberOfMessagesDelayed"),
        })
    }

    pub(crate) async fn answer(&self, operation: &str, body: &[u8], meter: &Meter) -> Answer {
        let Some(operation) = SqsOperation::from_name(operation) else {
            return refusal(&SqsError::unknown_operation(operation));
        };
        let answer = match self.dispatch(operation, body).await {
            Ok(json) => Answer::new(200, json),
            Err(error) => refusal(&error),
        };
        meter.sqs(operation.as_str(), body.len().max(answer.reply.body.len()));
        answer
    }

    async fn dispatch(&self, operation: SqsOperation, body: &[u8]) -> Result<Bytes, SqsError> {
        let sqs = &self.provider;
        match operation {
            SqsOperation::SendMessage => {
                let input: SendMessageInput = read(body)?;
                check_delay(input.delay_seconds)?;
                write(&sqs.send_message(input).await?)
            }
            SqsOperation::SendMessageBatch => {
                let input: SendMessageBatchInput = read(body)?;
                check_batch(&input)?;
                write(&sqs.send_message_batch(input).await?)
            }
            SqsOperation::ReceiveMessage => write(&sqs.receive_message(read(body)?).await?),
            SqsOperation::DeleteMessage => write(&sqs.delete_message(read(body)?).await?),
            SqsOperation::DeleteMessageBatch => write(&sqs.delete_message_batch(read(body)?).await?),
            SqsOperation::ChangeMessageVisibility => write(&sqs.change_message_visibility(read(body)?).await?),
            SqsOperation::ChangeMessageVisibilityBatch => {
                write(&sqs.change_message_visibility_batch(read(body)?).await?)
            }
            SqsOperation::CreateQueue => write(&sqs.create_queue(read(body)?).await?),
            SqsOperation::DeleteQueue => write(&sqs.delete_queue(read(body)?).await?),
            SqsOperation::GetQueueUrl => write(&sqs.get_queue_url(read(body)?).await?),
            SqsOperation::ListQueues => write(&sqs.list_queues(read(body)?).await?),
            SqsOperation::GetQueueAttributes => write(&sqs.get_queue_attributes(read(body)?).await?),
            SqsOperation::SetQueueAttributes => write(&sqs.set_queue_attributes(read(body)?).await?),
            SqsOperation::PurgeQueue => write(&sqs.purge_queue(read(body)?).await?),
            SqsOperation::ListDeadLetterSourceQueues => write(&sqs.list_dead_letter_source_queues(read(body)?).await?),
            SqsOperation::StartMessageMoveTask => write(&sqs.start_message_move_task(read(body)?).await?),
            SqsOperation::ListMessageMoveTasks => write(&sqs.list_message_move_tasks(read(body)?).await?),
            SqsOperation::CancelMessageMoveTask => write(&sqs.cancel_message_move_task(read(body)?).await?),
            other => Err(SqsError::unknown_operation(other.as_str())),
        }
    }
}

fn check_batch(input: &SendMessageBatchInput) -> Result<(), SqsError> {
    for entry in &input.entries {
        check_delay(entry.delay_seconds)?;
    }
    let bytes: usize = input.entries.iter().map(|entry| entry.message_body.len()).sum();
    if bytes <= MAX_BATCH_BYTES {
        return Ok(());
    }
    Err(SqsError::new(
        SqsErrorCode::BatchRequestTooLong,
        format!("Batch requests cannot be longer than {MAX_BATCH_BYTES} bytes. You have sent {bytes} bytes."),
    ))
}

fn check_delay(seconds: Option<i32>) -> Result<(), SqsError> {
    match seconds {
        Some(seconds) if !(0..=MAX_DELAY).contains(&seconds) => Err(SqsError::invalid_parameter_value(format!(
            "Value {seconds} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= {MAX_DELAY}."
        ))),
        _ => Ok(()),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, SqsError> {
    serde_json::from_slice(body).map_err(|error| SqsError::invalid_parameter_value(error.to_string()))
}

fn write<T: Serialize>(output: &T) -> Result<Bytes, SqsError> {
    let json = serde_json::to_vec(output).map_err(|error| SqsError::internal_error(error.to_string()))?;
    Ok(Bytes::from(json))
}

fn refusal(error: &SqsError) -> Answer {
    let mut answer = Answer::new(error.code.status_code().as_u16(), error_to_json(error));
    answer.query_error = Some(error.code.query_error_header());
    answer
}
