//! `max_calls`: concurrent calls of a kind, over all its lanes.

use std::sync::Arc;
use std::time::Duration;

use fanfold::delivery::Step;
use fanfold::policy::BatchApi;
use fanfold_batch_api::{CallError, Caller, Calling, Request};
use fanfold_handle::Handle;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use super::{register, taking, work};

#[tokio::test(start_paused = true)]
async fn a_kind_makes_no_more_calls_at_once_than_it_may() {
    let api = taking(Duration::from_millis(700));
    let stack = TestStack::new(policy(json!({"max_calls": 4})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 30, 3).await;
    work(&stack, tasks.len()).await;
    assert_eq!(api.most_at_once(|_| true), 4);
    stack.assert_settled(&tasks, 10).await;
}

/// `max_calls` does not raise what the stack gives to one kind.
#[tokio::test(start_paused = true)]
async fn a_kind_gets_no_more_than_its_share() {
    let api = taking(Duration::from_secs(3));
    let stack = TestStack::new(policy(json!({"max_calls": 1_000})), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 60, 1).await;
    work(&stack, tasks.len()).await;
    assert_eq!(api.most_at_once(|_| true), 15);
}

/// The calls of workers that died count until their leases end.
#[tokio::test(start_paused = true)]
async fn calls_of_the_dead_count_until_their_leases_end() {
    let api = taking(Duration::from_secs(9));
    let changes = json!({"max_calls": 2, "max_in_flight": 1, "batch_api": {"command": ["truck"], "timeout": "10s"}});
    let stack = TestStack::new(policy(changes), api.clone(), Crash::never()).await;
    let tasks = register(&stack, "parcel", 6, 1).await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
    }
    // Six workers; two of them call, and all die.
    let messages = stack.take(QueueName::Handle).await;
    let calls = messages.into_iter().map(|message| stack.hand(QueueName::Handle, vec![message]));
    assert!(tokio::time::timeout(Duration::from_millis(500), futures::future::join_all(calls)).await.is_err());
    assert_eq!((api.seen().len(), stack.places("parcel").await), (2, 2));
    let killed = tokio::time::Instant::now();
    for _ in 0..6 {
        stack.minutes(1).await;
    }
    stack.drain().await;
    assert_eq!(api.most_at_once(|_| true), 2);
    let again = api.seen()[2].at;
    assert!(again - killed >= Duration::from_secs(38), "{:?}", again - killed);
    stack.assert_settled(&tasks, 10).await;
}

/// What calls need is fetched slowly.
struct Slow(Arc<ScriptedApi>);

impl Caller for Slow {
    fn prepare<'a>(&'a self, _: &'a BatchApi) -> BoxFuture<'a, Result<(), CallError>> {
        tokio::time::sleep(Duration::from_secs(35)).map(Ok).boxed()
    }

    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        self.0.call(batch_api, request)
    }
}

/// Its place would be free before the call ends.
#[tokio::test(start_paused = true)]
async fn a_call_that_would_outlast_its_place_is_not_made() {
    let stack = TestStack::with(json!({"max_calls": 1, "batch_api": {"command": ["truck"], "timeout": "10s"}})).await;
    let tasks = register(&stack, "parcel", 1, 1).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let messages = stack.take(QueueName::Handle).await;
    assert_eq!(messages.len(), 1);
    let slow = Handle::from_environment(stack.surroundings(), Arc::new(Slow(Arc::clone(&stack.api)))).unwrap();
    assert!(slow.deliver(messages).await.is_empty());
    assert!(stack.api.seen().is_empty());
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.assert_settled(&tasks, 10).await;
}
