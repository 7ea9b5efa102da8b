//! Messages to leaders over SQS.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::limits::BATCHES_AT_ONCE_MAX;
use fanfold::messages::GroupMessage;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt, stream};
use tracing::Instrument;

use crate::Group;

impl Step for Group {
    /// Leaders whose worker waits for them before they look do not delay others: what follows from the others is sent before.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<GroupMessage>(deliveries);
            let mut waits: BTreeMap<Duration, Vec<(Delivery, GroupMessage)>> = BTreeMap::new();
            for (delivery, message) in messages {
                waits.entry(message.worker_waits()).or_default().push((delivery, message));
            }
            let portions = waits.into_iter().map(|(wait, messages)| self.form_after(wait, messages));
            failures.extend(join_all(portions).await.into_iter().flatten());
            failures
        }
        .boxed()
    }
}

impl Group {
    /// Acts for leaders that wait equally long before they look. All that follows is sent together: if that fails, all their
    /// messages fail, and a repetition finds their batches formed.
    async fn form_after(&self, wait: Duration, messages: Vec<(Delivery, GroupMessage)>) -> Failures {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let formed = messages.into_iter().map(|(delivery, message)| async move {
            let span = tracing::error_span!("leader", batch = %message.batch, lane = %message.lane);
            let result = self.form(&message).instrument(span).await;
            (delivery.message_id, message, result)
        });
        let mut formed = stream::iter(formed).buffer_unordered(BATCHES_AT_ONCE_MAX);
        let (mut outboxes, mut done, mut failures) = (Vec::new(), Vec::new(), Failures::new());
        while let Some((message_id, message, result)) = formed.next().await {
            match result {
                Ok(outbox) => {
                    outboxes.push(outbox);
                    done.push(message_id);
                }
                Err(error) => {
                    tracing::error!(%error, batch = %message.batch, lane = %message.lane, "the batch was not formed");
                    failures.push(message_id);
                }
            }
        }
        if let Err(error) = self.send(outboxes).await {
            tracing::error!(%error, batches = done.len(), "batches were formed, but their messages could not be sent");
            failures.extend(done);
        }
        failures
    }
}
