//! Functions invoked by a queue.

use crate::emf::Metrics;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use fanfold::delivery::{Delivery, Step};
use lambda_runtime::{Error, LambdaEvent, service_fn};

/// Serves a step behind a queue until Lambda ends the process.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn queue(step: impl Step) -> Result<(), Error> {
    let (step, metrics) = (&step, &Metrics::install());
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| async move {
        let response = deliver(step, event.payload).await;
        metrics.write();
        Ok::<_, Error>(response)
    }))
    .await
}

/// Hands the messages of an event to a step and names those to be delivered again.
pub(crate) async fn deliver(step: &dyn Step, event: SqsEvent) -> SqsBatchResponse {
    let failures = step.deliver(event.records.into_iter().map(delivery).collect()).await;
    let mut response = SqsBatchResponse::default();
    response.set_failures(failures);
    response
}

fn delivery(message: SqsMessage) -> Delivery {
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    Delivery {
        message_id: message.message_id.unwrap_or_default(),
        body: message.body.unwrap_or_default(),
        receive_count: count.unwrap_or(1),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use fanfold::delivery::Failures;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;

    /// Fails what says `bad`, and what was received more than twice.
    pub(crate) struct Picky;

    impl Step for Picky {
        fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
            let bad = deliveries.into_iter().filter(|delivery| delivery.body == "bad" || delivery.receive_count > 2);
            let failures = bad.map(|delivery| delivery.message_id).collect();
            async move { failures }.boxed()
        }
    }

    pub(crate) fn event() -> Value {
        let record = |id: &str, body: &str, count: &str| {
            json!({
                "messageId": id, "receiptHandle": "r", "body": body, "eventSource": "aws:sqs", "md5OfBody": "",
                "attributes": {"ApproximateReceiveCount": count}, "messageAttributes": {},
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:q", "awsRegion": "us-east-1",
            })
        };
        json!({"Records": [record("a", "good", "1"), record("b", "bad", "1"), record("c", "good", "3")]})
    }

    #[tokio::test]
    async fn only_what_failed_is_named() {
        let response = deliver(&Picky, serde_json::from_value(event()).unwrap()).await;
        let expected = json!({"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "c"}]});
        assert_eq!(serde_json::to_value(response).unwrap(), expected);
    }
}
