//! Registration over SQS: one message holds a request, an invocation many messages.

use std::cmp::Reverse;

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::RegisterMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Register;

impl Step for Register {
    /// A message that cannot be accepted fails alone. Those that came most often go first, so that few are left for
    /// want of time again and again: one that is left five times is a dead letter.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (mut messages, mut failures) = parse::<RegisterMessage>(deliveries);
            messages.sort_by_key(|(delivery, _)| Reverse(delivery.receive_count));
            let requests = messages.into_iter().map(|(delivery, message)| (delivery.message_id, message.tasks()));
            failures.extend(self.0.register_each(requests.collect()).await);
            failures
        }
        .boxed()
    }
}
