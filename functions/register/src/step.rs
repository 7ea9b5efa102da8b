//! Registration over SQS: one message holds a request, an invocation many messages.

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::RegisterMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::{Register, RegisterError};

impl Step for Register {
    /// Checks each message on its own and stores the tasks of all good ones together. A message that can not be accepted
    /// fails alone.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<RegisterMessage>(deliveries);
            let mut good = Vec::new();
            let mut placed = Vec::new();
            for (delivery, message) in messages {
                // A redelivery has the same message id, so tasks without an id get the same ids.
                match self.place(message.tasks(), &delivery.message_id).await {
                    Ok(tasks) => {
                        placed.extend(tasks);
                        good.push(delivery.message_id);
                    }
                    Err(error) => {
                        log(&delivery.message_id, &error);
                        failures.push(delivery.message_id);
                    }
                }
            }
            // Two messages may bring the same task; it is stored once.
            let mut seen = std::collections::HashSet::new();
            placed.retain(|task| seen.insert(task.id));
            if !placed.is_empty()
                && let Err(error) = self.store(placed).await
            {
                tracing::error!(%error, messages = good.len(), "tasks could not be stored; their messages come again");
                failures.extend(good);
            }
            failures
        }
        .boxed()
    }
}

fn log(message_id: &str, error: &RegisterError) {
    match error {
        RegisterError::Refused(faults) => {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%message_id, faults = faults.len(), %first, "tasks can not be accepted");
        }
        error => tracing::error!(%message_id, %error, "tasks could not be checked"),
    }
}
