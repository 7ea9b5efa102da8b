//! What happens to a key's owner between the reads by which it is decided whether another task may have the key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fanfold_local::{Fate, Interceptor, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::*;

/// Holds up the second read that names a fan-out, or an item of it.
#[derive(Debug, Default)]
struct SecondRead {
    of: Mutex<Option<Uuid>>,
    reads: AtomicUsize,
}

impl Interceptor for SecondRead {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            let of = *self.of.lock().unwrap();
            let body = String::from_utf8_lossy(&call.body);
            let names = call.operation == "BatchGetItem" && of.is_some_and(|fanout| body.contains(&fanout.to_string()));
            if names && self.reads.fetch_add(1, Ordering::Relaxed) == 1 {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
            Fate::Pass
        }
        .boxed()
    }
}

/// Its call begins, and then its fan-out is cancelled.
#[tokio::test(start_paused = true)]
async fn an_owner_whose_call_begins_between_the_reads_keeps_its_key() {
    let second = Arc::new(SecondRead::default());
    let api = ScriptedApi::slow(|_| Duration::from_secs(60), |_| Ok(Answer::AllSucceeded));
    let policy = fanfold_tests::changed(scoped(), json!({"batch_api": {"command": ["truck"], "timeout": 90}}));
    let stack = TestStack::new(policy, api, Crash::meeting(Arc::<SecondRead>::clone(&second))).await;
    let (fanout, items) = opened(&stack, "one", 1).await;
    let owner = TaskId::Item(items[0]);
    assert_eq!(register(&stack, pushed(owner, "spring", 1)).await, Registration::Registered);
    *second.of.lock().unwrap() = Some(fanout);
    let cancels = async {
        while stack.api.seen().is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stack.tracking.cancel(fanout).await.unwrap()
    };
    let other = register(&stack, pushed(alone(1), "spring", 1));
    let (other, _, ()) = futures::join!(other, cancels, stack.drain());
    assert_eq!(other, Registration::Duplicate { of: owner });
    stack.drain().await;
    assert_eq!(called(&stack), BTreeMap::from([("\"spring\" \"ORD-1\"".into(), 1)]));
}
