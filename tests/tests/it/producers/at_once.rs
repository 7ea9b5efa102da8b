//! What several workers write at once, and what is read just after it was written.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use fanfold::producing::ReissueRequest;
use fanfold::registering::Registrar;
use fanfold::store::producers::{KeysOfKinds, Page};
use fanfold_batch_api::{CallError, Cause};
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::{called, open, partitions, producer};

/// It would be moved on with the error of the failed try, and with the time that it waits for.
#[tokio::test(start_paused = true)]
async fn a_partition_is_not_moved_on_by_a_worker_that_does_not_know_of_a_failure() {
    let stack = TestStack::with(json!({})).await;
    let id = open(&stack, producer(1, &json!({}))).await;
    let before = partitions(&stack, id).await.remove(0);
    let (producers, due) = (&stack.producing.producers, Some(stack.world.now()));
    assert!(producers.failed(&before, "the database is down", due).await.unwrap().is_done());
    let late = producers.advance(&before, &Page::default(), 0, Uuid::from_u128(7)).await.unwrap();
    assert!(!late.is_done(), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_noted_at_once_are_all_noted() {
    // The second request of the worker, its write, is late.
    let crash = Crash::new(2, Moment::Late(Duration::from_secs(2))).waiting();
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let (producers, fanout) = (&stack.producing.producers, Uuid::from_u128(7));
    let keys = |kind: &str, key: u128| KeysOfKinds::from([(kind.to_owned(), Uuid::from_u128(key))]);
    let [first, second, third, other] = [("a", 1), ("b", 2), ("c", 3), ("c", 4)].map(|(kind, key)| keys(kind, key));
    assert_eq!(producers.share_by(fanout, &first).await.unwrap(), None);
    stack.crash.begin();
    let beside = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        producers.share_by(fanout, &third).await
    };
    let (late, soon) = futures::join!(producers.share_by(fanout, &second), beside);
    assert_eq!((late.unwrap(), soon.unwrap()), (None, None));
    assert_eq!(producers.share_by(fanout, &other).await.unwrap().as_deref(), Some("c"));
}

/// What is read of corrected contents shows nothing yet, unless the read is strongly consistent.
#[derive(Debug)]
struct Lags;

impl Interceptor for Lags {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let body = String::from_utf8_lossy(&call.body);
        let lags = call.operation == "GetItem" && body.contains("/corrected");
        let nothing = || Fate::Answered(ServiceAnswer { status: 200, body: "{}".into() });
        let consistent = body.contains(r#""ConsistentRead":true"#);
        ready(if lags && !consistent { nothing() } else { Fate::Pass }).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reissue_finds_the_contents_that_were_corrected_just_now() {
    let api = ScriptedApi::new(|_| Err(CallError { retriable: false, ..CallError::new(Cause::Status(400), "no") }));
    let stack = TestStack::new(policy(json!({})), api, Crash::meeting(Arc::new(Lags))).await;
    let (old, ids) = stack.open(1, true).await;
    stack.register_items(&ids).await;
    stack.rest().await;
    let contents = json!({"contents": [{"id": ids[0], "content": {"depot": "117", "order": "corrected"}}]});
    let request: ReissueRequest = serde_json::from_value(contents).unwrap();
    let registrar = Registrar::from_environment(stack.surroundings()).unwrap();
    let from = (&stack.tracking, &registrar, &stack.tasks);
    stack.producing.reissue(from, old, &request, Some("again")).await.unwrap();
    stack.rest().await;
    assert_eq!(called(&stack), ["ORD-0", "corrected"]);
}
