//! Registration over SQS: one message holds a request, an invocation many messages.

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::RegisterMessage;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Register;

impl Step for Register {
    /// A message that cannot be accepted fails alone.
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<RegisterMessage>(deliveries);
            let requests = messages.into_iter().map(|(delivery, message)| (delivery.message_id, message.tasks()));
            failures.extend(self.0.register_each(requests.collect()).await);
            failures
        }
        .boxed()
    }
}
