//! Acks and counts over SQS: all messages of an invocation together, so that a group, or a counter, is written once.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::ids::{GroupId, no_batch};
use fanfold::limits::ENVELOPE_BYTES;
use fanfold::messages::{AckEntry, AckMessage, AckRequest};
use fanfold::metrics::{ANSWERED_TO_ACKED, CALLED_TO_ACKED};
use fanfold::tracking::{Acks, Refused, collect, gathered_requests};
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::{Ack, AckError};

impl Step for Ack {
    /// A message that names an unknown item or batch fails alone, after its other acks were applied.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (all, mut failures) = parse::<AckMessage>(deliveries);
            let (mut messages, mut counts) = (Vec::with_capacity(all.len()), Vec::new());
            for (delivery, message) in all {
                match message {
                    AckMessage::Acks(request) => messages.push((delivery, request)),
                    AckMessage::Counts(request) => counts.push((delivery, request)),
                }
            }
            match self.apply_all(&messages).await {
                Ok((refused, unknown)) => {
                    for (delivery, request) in &messages {
                        if let Some(problem) = refusal(request, &refused, &unknown) {
                            tracing::warn!(message_id = %delivery.message_id, %problem, "some acks were refused");
                            failures.push(delivery.message_id.clone());
                        }
                    }
                }
                Err(error) => {
                    tracing::error!(%error, messages = messages.len(), "acks were not applied");
                    failures.extend(messages.into_iter().map(|(delivery, _)| delivery.message_id));
                }
            }
            // Counts come last: if a worker dies, all its messages are delivered again, and only these would count twice.
            failures.extend(self.deliver_counts(counts).await);
            failures
        }
        .boxed()
    }
}

impl Ack {
    async fn apply_all(&self, messages: &[(Delivery, AckRequest)]) -> Result<(Refused, BTreeSet<Uuid>), AckError> {
        let mut acks = Acks::new();
        messages.iter().for_each(|(_, request)| collect(&mut acks, request));
        let named: Vec<_> = messages.iter().filter_map(|(_, request)| request.batch.as_ref()).collect();
        let bytes = messages.iter().map(|(delivery, _)| delivery.body.len() + ENVELOPE_BYTES).sum();
        let gathered = messages.iter().map(|(_, request)| request.gathered).max().unwrap_or_default();
        if named.is_empty() && self.gathering.helps(bytes, gathered, &acks) {
            return Ok((self.apply_or_send_on(&acks, gathered + 1).await?, BTreeSet::new()));
        }
        let named = self.collect_batches(&named, &mut acks).await?;
        let refused = self.tracking.ack(&acks).await?;
        let acked = self.world.now();
        for batch in &named.done {
            let record = |histogram: metrics::Histogram, since: Timestamp| {
                histogram.record_many(acked.since(since).as_secs_f64(), batch.members.len());
            };
            record(metrics::histogram!(ANSWERED_TO_ACKED), batch.updated_at);
            if let Some(begun) = batch.begun_at {
                record(metrics::histogram!(CALLED_TO_ACKED), begun);
            }
        }
        // A batch whose items do not exist is closed, too: a repetition would not find them either.
        self.close(&named.done).await?;
        Ok((refused, named.unknown))
    }

    /// Sends acks of groups with few items on, many in one message, and applies the rest. The new messages are sent before the old
    /// ones are deleted: after a crash both exist, and the acks are applied twice, which does no harm.
    async fn apply_or_send_on(&self, acks: &Acks, gathered: u32) -> Result<Refused, AckError> {
        let (refused, later) = self.tracking.ack_or_gather(acks, &self.gathering).await?;
        let requests = gathered_requests(&later, gathered);
        self.own.send_all(requests.iter().map(|request| (request, Duration::ZERO))).await?;
        Ok(refused)
    }
}

/// Why a message's own items or batch were refused, if they were.
fn refusal(request: &AckRequest, refused: &Refused, unknown: &BTreeSet<Uuid>) -> Option<String> {
    if let Some(named) = request.batch.as_ref().filter(|named| unknown.contains(&named.batch)) {
        return Some(no_batch(named.batch));
    }
    if refused.is_empty() {
        return None;
    }
    let refusal = |entry: &AckEntry| {
        let GroupId { fanout, group } = entry.group();
        refused.get(&(fanout, group)).filter(|refusal| entry.names_any(&refusal.items))
    };
    request.all().find_map(|(_, _, entry)| refusal(entry)).map(|refusal| refusal.problem.to_string())
}
