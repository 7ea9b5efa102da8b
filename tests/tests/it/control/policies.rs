//! A pause and the policies of what it holds: changed, deleted, stored anew, and stored later.

use std::sync::{Arc, Mutex};

use fanfold::control::Scope;
use fanfold::limits::SWITCHES_PER_KIND_MAX;
use fanfold::store::policies::{Policies, SwitchError};
use fanfold_local::{Fate, Interceptor, ServiceRequest};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{drain, kind, lose_all, pause, resume, settled, target};

/// The scans of the table of policies.
#[derive(Debug, Default)]
struct Scans(Mutex<Vec<Value>>);

impl Interceptor for Scans {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        if call.operation == "Scan" {
            let scan: Value = serde_json::from_slice(&call.body).unwrap();
            self.0.lock().unwrap().extend(Some(scan).filter(|scan| scan["TableName"] == "PoliciesTable"));
        }
        async { Fate::Pass }.boxed()
    }
}

/// The engine's scans are consistent, whatever they ask for; DynamoDB's are if they ask for it.
#[tokio::test(start_paused = true)]
async fn switches_and_policies_are_read_as_they_are_now() {
    let scans = Arc::new(Scans::default());
    let crash = Crash::meeting(Arc::<Scans>::clone(&scans));
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    stack.control.switchboard().await.unwrap();
    stack.sweep_now().await;
    let scans = scans.0.lock().unwrap();
    assert!(scans.len() == 3 && scans.iter().all(|scan| scan["ConsistentRead"] == true), "{scans:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_stays_paused_when_its_policy_changes() {
    let stack = TestStack::with(json!({})).await;
    pause(&stack, &kind()).await;
    stack.put_policy(policy(json!({"linger": 0}))).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert!(stack.api.seen().is_empty());
    resume(&stack, &kind()).await;
    settled(&stack, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_policy_cannot_be_paused_and_targets_only_so_many() {
    let stack = TestStack::with(json!({})).await;
    let policies = Policies::new(stack.surroundings().table("POLICIES_TABLE").unwrap());
    let unknown = Scope::Kind("letter".to_owned());
    let refused = policies.switch(&unknown, |switches, now| switches.pause(&unknown, now)).await;
    assert!(matches!(refused, Err(SwitchError::UnknownKind(_))));
    for n in 0..SWITCHES_PER_KIND_MAX {
        let scope = target(&format!("{n:0>1024}"));
        policies.switch(&scope, |switches, now| switches.pause(&scope, now)).await.unwrap();
    }
    let error = stack.control.pause(&target("one more")).await.unwrap_err().to_string();
    assert!(error.contains("300 targets and lanes") && error.contains("as a whole"), "{error}");
    assert_eq!(policies.get("parcel").await.unwrap().unwrap().kind, "parcel");
    resume(&stack, &target(&format!("{:0>1024}", 7))).await;
    stack.sweep().await;
    pause(&stack, &target("one more")).await;
}

/// Whoever deletes the policy and stores it again does not end the pause, and it can be ended while there is no policy.
#[tokio::test(start_paused = true)]
async fn a_pause_outlives_its_policy() {
    for resumed_between in [false, true] {
        let stack = TestStack::with(json!({"linger": 0})).await;
        pause(&stack, &kind()).await;
        let tasks = stack.register_orders("117", 0..3).await;
        stack.delete_policy("parcel").await;
        let policies = Policies::new(stack.surroundings().table("POLICIES_TABLE").unwrap());
        assert_eq!((policies.kinds().await.unwrap(), policies.list().await.unwrap()), (vec![], vec![]));
        assert!(policies.read("parcel").await.unwrap().is_none() && policies.get("parcel").await.unwrap().is_none());
        if resumed_between {
            resume(&stack, &kind()).await;
        }
        stack.minutes(3).await;
        stack.put_policy(policy(json!({"linger": 0}))).await;
        stack.minutes(3).await;
        assert_eq!(stack.api.seen().is_empty(), !resumed_between);
        resume(&stack, &kind()).await;
        settled(&stack, &tasks).await;
    }
}

/// Without a switch nothing of a deleted policy is left.
#[tokio::test(start_paused = true)]
async fn a_kind_whose_policy_was_deleted_cannot_be_paused() {
    let stack = TestStack::with(json!({})).await;
    stack.delete_policy("parcel").await;
    let refused = stack.control.pause(&kind()).await.unwrap_err().to_string();
    assert!(refused.contains("no policy"), "{refused}");
    assert_eq!(stack.control.switchboard().await.unwrap().iter().count(), 0);
}

/// Its policy was replaced, and everything was paused before there was a kind.
#[tokio::test(start_paused = true)]
async fn everything_is_paused_with_kinds_that_come_later() {
    let stack = TestStack::with(json!({})).await;
    pause(&stack, &Scope::All).await;
    stack.put_policy(policy(json!({"kind": "letter", "linger": 0}))).await;
    let letter = fanfold::messages::TaskRequest { kind: "letter".to_owned(), ..fanfold_tests::order(None, "117", 1) };
    stack.register(vec![letter]).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert!(stack.api.seen().is_empty());
    assert_eq!(stack.control.switchboard().await.unwrap().iter().count(), 1);
    drain(&stack, &Scope::All).await;
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1);
    lose_all(&stack).await;
}
