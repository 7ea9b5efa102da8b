//! Writes that meet the transaction of another worker: DynamoDB refuses them, and they are sent again.

use std::collections::HashSet;
use std::future::ready;
use std::sync::{Arc, Mutex};

use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

/// Every update meets a transaction the first time that it is sent.
#[derive(Debug, Default)]
struct Conflicts(Mutex<HashSet<Vec<u8>>>);

impl Interceptor for Conflicts {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let meets = call.operation == "UpdateItem" && self.0.lock().unwrap().insert(call.body.to_vec());
        let conflict = || ServiceAnswer::error(400, "TransactionConflictException", "a transaction is in progress");
        ready(if meets { Fate::Answered(conflict()) } else { Fate::Pass }).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_meet_a_transaction_are_answered() {
    let conflicts = Arc::new(Conflicts::default());
    let crash = Crash::meeting(Arc::<Conflicts>::clone(&conflicts));
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let (fanout, items) = stack.open(3, false).await;
    stack.tracking.seal(fanout).await.unwrap();
    let tasks = stack.register_items(&items).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    assert!(stack.header(fanout).await.complete());
    let met = conflicts.0.lock().unwrap().len();
    assert!(met > 5, "{met} updates");
}
