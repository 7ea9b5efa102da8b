//! Workflows over SQS: those of one lane in an invocation hold one election.

use std::collections::BTreeMap;

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::grouping::Candidacy;
use fanfold::lane::Lane;
use fanfold::messages::ElectMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Elect;

impl Step for Elect {
    /// All that follows from an invocation is sent together: if that fails, all its messages fail, and a repetition finds
    /// itself elected.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<ElectMessage>(deliveries);
            let mut lanes: BTreeMap<Lane, Candidacy> = BTreeMap::new();
            for (delivery, message) in messages {
                let candidacy = lanes.entry(message.lane.clone()).or_default();
                candidacy.messages.push((delivery.message_id, message));
            }
            let mut outboxes = Vec::new();
            let mut failed = Vec::new();
            let sent = match self.hold_all(&lanes).await {
                Err(error) => Err(error.to_string()),
                Ok(held) => {
                    for (lane, result) in held {
                        match result {
                            Ok(outbox) => outboxes.push(outbox),
                            Err(error) => {
                                tracing::error!(%error, %lane, "the election was not held");
                                failed.push(lane);
                            }
                        }
                    }
                    self.send(outboxes).await.map_err(|error| error.to_string())
                }
            };
            if let Err(error) = sent {
                tracing::error!(%error, lanes = lanes.len(), "elections have to be held again");
                failed = lanes.keys().cloned().collect();
            }
            for lane in failed {
                let candidacy = lanes.remove(&lane).unwrap_or_default();
                failures.extend(candidacy.messages.into_iter().map(|(message_id, _)| message_id));
            }
            failures
        }
        .boxed()
    }
}
