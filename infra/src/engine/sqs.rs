//! The embedded SQS: its queues and the dispatch of its operations.

use std::sync::Arc;

use bytes::Bytes;
use rustack_sqs_core::config::SqsConfig;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::response::error_to_json;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{CreateQueueInput, DeleteQueueInput, GetQueueAttributesInput, PurgeQueueInput};
use rustack_sqs_model::operations::SqsOperation;
use rustack_sqs_model::output::GetQueueAttributesOutput;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::RwLock;
use tokio::time::Instant;

use super::EngineError;
use super::connector::EngineAnswer;
use super::delayed::Delayed;
use super::place::{ACCOUNT, QUEUE_HOST, QUEUE_PORT, REGION};
use super::send::name_of;
use crate::usage::Meter;

const VISIBLE: &str = "ApproximateNumberOfMessages";
const IN_FLIGHT: &str = "ApproximateNumberOfMessagesNotVisible";
const DELAYED: &str = "ApproximateNumberOfMessagesDelayed";

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
    pub(super) provider: Arc<RustackSqs>,
    pub(super) delayed: Delayed,
    /// Read while messages are sent that belong together.
    pub(super) together: Arc<RwLock<()>>,
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
        let provider = Arc::new(RustackSqs::new(config));
        Self { delayed: Delayed::new(Arc::clone(&provider)), together: Arc::default(), provider }
    }

    pub(crate) async fn create(&self, input: CreateQueueInput) -> Result<(), SqsError> {
        self.provider.create_queue(input).await.map(|_| ())
    }

    pub(crate) async fn backlog(&self, queue_url: &str) -> Result<Backlog, EngineError> {
        let attribute_names = [VISIBLE, IN_FLIGHT, DELAYED].map(str::to_owned).to_vec();
        let input = GetQueueAttributesInput { queue_url: queue_url.to_owned(), attribute_names };
        let attributes = self
            .attributes(input)
            .await
            .map_err(|error| EngineError::Queue { queue: queue_url.to_owned(), problem: error.message })?;
        let count = |name: &str| {
            let value = attributes.attributes.get(name);
            value.and_then(|value| value.parse().ok()).unwrap_or_default()
        };
        Ok(Backlog { visible: count(VISIBLE), in_flight: count(IN_FLIGHT), delayed: count(DELAYED) })
    }

    pub(crate) async fn next_due(&self) -> Option<Instant> {
        self.delayed.next_due().await
    }

    pub(crate) async fn end_delays(&self, queue_url: &str) {
        self.delayed.end_delays(name_of(queue_url)).await;
    }

    /// Attributes as the queue has them, with the messages held for it counted as delayed.
    async fn attributes(&self, input: GetQueueAttributesInput) -> Result<GetQueueAttributesOutput, SqsError> {
        let queue = name_of(&input.queue_url).to_owned();
        let count = async |held: u64| {
            let mut output = self.provider.get_queue_attributes(input).await?;
            if let Some(delayed) = output.attributes.get_mut(DELAYED) {
                let own: u64 = delayed.parse().unwrap_or_default();
                *delayed = (own + held).to_string();
            }
            Ok(output)
        };
        self.delayed.counted(&queue, count).await
    }

    pub(crate) async fn answer(&self, operation: &str, body: &[u8], meter: &Meter) -> EngineAnswer {
        let Some(operation) = SqsOperation::from_name(operation) else {
            return refusal(&SqsError::unknown_operation(operation));
        };
        let answer = match self.dispatch(operation, body).await {
            Ok(json) => EngineAnswer::new(200, json),
            Err(error) => refusal(&error),
        };
        meter.sqs(operation.as_str(), body.len().max(answer.reply.body.len()));
        answer
    }

    async fn dispatch(&self, operation: SqsOperation, body: &[u8]) -> Result<Bytes, SqsError> {
        let sqs = &self.provider;
        match operation {
            SqsOperation::SendMessage => write(&self.send(read(body)?).await?),
            SqsOperation::SendMessageBatch => write(&self.send_batch(read(body)?).await?),
            SqsOperation::ReceiveMessage => write(&self.receive(read(body)?).await?),
            SqsOperation::DeleteMessage => write(&sqs.delete_message(read(body)?).await?),
            SqsOperation::DeleteMessageBatch => write(&sqs.delete_message_batch(read(body)?).await?),
            SqsOperation::ChangeMessageVisibility => write(&sqs.change_message_visibility(read(body)?).await?),
            SqsOperation::ChangeMessageVisibilityBatch => {
                write(&sqs.change_message_visibility_batch(read(body)?).await?)
            }
            SqsOperation::CreateQueue => write(&sqs.create_queue(read(body)?).await?),
            SqsOperation::DeleteQueue => {
                let input: DeleteQueueInput = read(body)?;
                let queue = name_of(&input.queue_url).to_owned();
                let output = sqs.delete_queue(input).await?;
                self.delayed.forget(&queue).await;
                write(&output)
            }
            SqsOperation::GetQueueUrl => write(&sqs.get_queue_url(read(body)?).await?),
            SqsOperation::ListQueues => write(&sqs.list_queues(read(body)?).await?),
            SqsOperation::GetQueueAttributes => write(&self.attributes(read(body)?).await?),
            SqsOperation::SetQueueAttributes => write(&sqs.set_queue_attributes(read(body)?).await?),
            SqsOperation::PurgeQueue => {
                let input: PurgeQueueInput = read(body)?;
                let queue = name_of(&input.queue_url).to_owned();
                let output = sqs.purge_queue(input).await?;
                self.delayed.forget(&queue).await;
                write(&output)
            }
            SqsOperation::ListDeadLetterSourceQueues => write(&sqs.list_dead_letter_source_queues(read(body)?).await?),
            SqsOperation::StartMessageMoveTask => write(&sqs.start_message_move_task(read(body)?).await?),
            SqsOperation::ListMessageMoveTasks => write(&sqs.list_message_move_tasks(read(body)?).await?),
            SqsOperation::CancelMessageMoveTask => write(&sqs.cancel_message_move_task(read(body)?).await?),
            other => Err(SqsError::unknown_operation(other.as_str())),
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, SqsError> {
    serde_json::from_slice(body).map_err(|error| SqsError::invalid_parameter_value(error.to_string()))
}

fn write<T: Serialize>(output: &T) -> Result<Bytes, SqsError> {
    let json = serde_json::to_vec(output).map_err(|error| SqsError::internal_error(error.to_string()))?;
    Ok(Bytes::from(json))
}

fn refusal(error: &SqsError) -> EngineAnswer {
    let mut answer = EngineAnswer::new(error.code.status_code().as_u16(), error_to_json(error));
    answer.query_error = Some(error.code.query_error_header());
    answer
}
