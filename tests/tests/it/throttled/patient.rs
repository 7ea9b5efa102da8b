//! Throttling that lasts for longer than the SDK's own tries: each kind of request outlasts some seconds of it.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::tracking::OpenRequest;
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, done, message, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The SDK gives up after three seconds at most.
const SOME_SECONDS: Duration = Duration::from_secs(4);

/// Refuses an operation, on one record if one is named, until then.
#[derive(Debug)]
struct Refusal {
    operation: &'static str,
    record: String,
    until: Instant,
}

/// Refuses nothing before it is told what.
#[derive(Debug, Default)]
struct Refuses(Mutex<Option<Refusal>>);

impl Refuses {
    fn begin(&self, operation: &'static str, record: impl ToString, lasts: Duration) {
        let refusal = Refusal { operation, record: record.to_string(), until: Instant::now() + lasts };
        *self.0.lock().unwrap() = Some(refusal);
    }
}

impl Interceptor for Refuses {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let refuses = self.0.lock().unwrap().as_ref().is_some_and(|refusal| {
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            call.operation == refusal.operation
                && body["Key"].to_string().contains(&refusal.record)
                && Instant::now() < refusal.until
        });
        let refusal = || Fate::Answered(ServiceAnswer::error(400, "ThrottlingException", "throttled"));
        ready(if refuses { refusal() } else { Fate::Pass }).boxed()
    }
}

async fn stack() -> (TestStack, Arc<Refuses>) {
    let refuses = Arc::new(Refuses::default());
    let crash = Crash::meeting(Arc::<Refuses>::clone(&refuses));
    (TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await, refuses)
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_acks_outlasts_some_seconds_of_throttling() {
    let (stack, refuses) = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 10, "a").await;
    refuses.begin("UpdateItem", ids[0].group, SOME_SECONDS);
    assert!(stack.hand(QueueName::Ack, vec![message("one", &done(&ids[..1]))]).await.is_empty());
    let [record] = &stack.tracking.groups.get_many(&[ids[0].group]).await.unwrap()[..] else { panic!() };
    assert_eq!(record.pending.iter().collect::<Vec<_>>(), (1..10).collect::<Vec<_>>());
}

/// All that is asked for one by one, or page by page. (In batches each entry is throttled on its own.)
#[tokio::test(start_paused = true)]
async fn reads_and_insertions_outlast_some_seconds_of_throttling() {
    let (stack, refuses) = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    stack.add(fanout, 10, "a").await;
    refuses.begin("GetItem", fanout, SOME_SECONDS);
    assert!(stack.tracking.fanouts.get(fanout).await.unwrap().is_some());
    for operation in ["Query", "BatchGetItem"] {
        refuses.begin(operation, "", SOME_SECONDS);
        assert_eq!(stack.tracking.groups.open(fanout, 1).await.unwrap().len(), 1, "{operation}");
    }
    refuses.begin("PutItem", "", SOME_SECONDS);
    assert!(stack.tracking.open(OpenRequest::default(), Some("another")).await.unwrap().new);
    refuses.begin("Scan", "", SOME_SECONDS);
    stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
}

/// The messages come again, but what can be done is done.
#[tokio::test(start_paused = true)]
async fn a_group_that_stays_throttled_holds_up_no_other_fanout() {
    let (stack, refuses) = stack().await;
    let (slow, _) = stack.open_as(&OpenRequest::default(), "slow").await;
    let (other, _) = stack.open_as(&OpenRequest::default(), "other").await;
    let (slow, items) = (stack.add(slow, 10, "a").await, stack.add(other, 10, "a").await);
    stack.seal(other).await;
    refuses.begin("UpdateItem", slow[0].group, Duration::from_secs(60));
    let acks = vec![message("slow", &done(&slow[..1])), message("other", &done(&items))];
    assert!(stack.hand(QueueName::Ack, acks).await.contains(&"slow".to_owned()));
    assert!(stack.header(other).await.complete());
}

/// The same among small fan-outs, whose bits are in their headers.
#[tokio::test(start_paused = true)]
async fn a_small_fanout_that_stays_throttled_holds_up_no_other_one() {
    let (stack, refuses) = stack().await;
    let mut small = Vec::new();
    for name in ["slow", "other"] {
        let request = OpenRequest { items: 1, seal: true, ..OpenRequest::default() };
        let (id, items) = stack.open_as(&request, name).await;
        small.push((id, items, name));
    }
    refuses.begin("UpdateItem", small[0].0, Duration::from_secs(60));
    let acks = small.iter().map(|(_, items, name)| message(name, &done(items))).collect();
    assert!(stack.hand(QueueName::Ack, acks).await.contains(&"slow".to_owned()));
    assert!(stack.header(small[1].0).await.complete());
}
