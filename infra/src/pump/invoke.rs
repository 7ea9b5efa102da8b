//! One invocation of a step: what it did is deleted, what it failed stays.

use std::collections::HashSet;
use std::sync::Arc;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use fanfold::delivery::{Delivery, Failures, Step};
use fanfold::text::causes;
use tokio::time::timeout;

use super::Ended;
use crate::template::EventSource;

/// Messages of one delete call, the most SQS allows.
const DELETED_MAX: usize = 10;

/// Invokes the step of an event source.
pub(super) struct Invoker {
    sqs: aws_sdk_sqs::Client,
    source: EventSource,
    step: Arc<dyn Step>,
}

impl Invoker {
    pub(super) fn new(sqs: aws_sdk_sqs::Client, source: EventSource, step: Arc<dyn Step>) -> Self {
        Self { sqs, source, step }
    }

    /// Gives a batch to the step and deletes the messages it is done with.
    pub(super) async fn invoke(&self, messages: Vec<Message>) {
        let deliveries: Vec<Delivery> = messages.iter().map(delivery).collect();
        let Some(failures) = self.run(deliveries).await else {
            return;
        };
        let ids = messages.iter().filter_map(Message::message_id).collect();
        let Some(failed) = failed(&failures, &ids, self.source.reports_failures) else {
            let (function, count) = (&self.source.function, messages.len());
            tracing::warn!(
                function,
                count,
                ?failures,
                "the step reported a failure that names no message: the whole batch is delivered again"
            );
            return;
        };
        let done = messages.iter().filter(|message| !message.message_id().is_some_and(|id| failed.contains(id)));
        self.delete(done.filter_map(Message::receipt_handle)).await;
    }

    /// What the step reports; nothing if it panicked or took too long. It runs in a task of its own, so that neither
    /// reaches further than its batch.
    async fn run(&self, deliveries: Vec<Delivery>) -> Option<Failures> {
        let (function, count) = (&self.source.function, deliveries.len());
        let step = Arc::clone(&self.step);
        let mut task = Ended(tokio::spawn(async move { step.deliver(deliveries).await }));
        match timeout(self.source.timeout, &mut task.0).await {
            Ok(Ok(failures)) => Some(failures),
            Ok(Err(error)) => {
                tracing::error!(function, count, %error, "a step panicked; its batch will be delivered again");
                None
            }
            Err(_) => {
                let after = self.source.timeout;
                tracing::error!(function, count, ?after, "a step timed out; its batch will be delivered again");
                None
            }
        }
    }

    async fn delete(&self, receipts: impl Iterator<Item = &str>) {
        let receipts: Vec<&str> = receipts.collect();
        for chunk in receipts.chunks(DELETED_MAX) {
            let entries = chunk.iter().enumerate().filter_map(|(index, receipt)| {
                let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(*receipt);
                entry.build().ok()
            });
            let request = self.sqs.delete_message_batch().queue_url(&self.source.queue_url);
            let queue = &self.source.queue;
            match request.set_entries(Some(entries.collect())).send().await {
                Ok(output) if output.failed.is_empty() => {}
                Ok(output) => tracing::warn!(queue, failed = ?output.failed, "some messages were not deleted"),
                Err(error) => {
                    let error = causes(&error);
                    tracing::warn!(queue, %error, "messages were not deleted and will be delivered again");
                }
            }
        }
    }
}

fn delivery(message: &Message) -> Delivery {
    let attributes = message.attributes.as_ref();
    let count = attributes.and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount));
    Delivery {
        message_id: message.message_id.clone().unwrap_or_default(),
        body: message.body.clone().unwrap_or_default(),
        receive_count: count.and_then(|count| count.parse().ok()).unwrap_or(1),
    }
}

/// The messages to be delivered again; `None` if that is the whole batch: a failure that is no message of the batch, or
/// any failure of a function that does not report them one by one.
fn failed<'a>(failures: &'a Failures, ids: &HashSet<&str>, reports_failures: bool) -> Option<HashSet<&'a str>> {
    let failed: HashSet<&str> = failures.iter().map(String::as_str).collect();
    if failed.is_empty() || (reports_failures && failed.is_subset(ids)) { Some(failed) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_failures_of_a_reporting_function_are_partial() {
        let ids = HashSet::from(["a", "b"]);
        let of = |failures: &[&str], reports| {
            let failures: Failures = failures.iter().map(|id| (*id).to_owned()).collect();
            failed(&failures, &ids, reports).map(|failed| failed.len())
        };
        assert_eq!(of(&[], true), Some(0));
        assert_eq!(of(&[], false), Some(0));
        assert_eq!(of(&["a"], true), Some(1));
        assert_eq!(of(&["a"], false), None);
        assert_eq!(of(&["a", "stranger"], true), None);
        assert_eq!(of(&[""], true), None);
    }
}
