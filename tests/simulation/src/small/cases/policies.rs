//! A batch whose kind loses its policy, and batches whose kind limits its calls.

use std::time::Duration;

use fanfold::messages::TaskRequest;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, KIND, grouped, policy, register, task};
use crate::lock;
use crate::small::stage::Again;
use crate::small::{Actor, Stage};

fn keyed() -> Value {
    policy(&json!({"key": "content.k"}))
}

/// Two places, each in a record of its own.
fn two_calls() -> Value {
    policy(&json!({"max_calls": 2}))
}

/// An operator deletes the policy by force, and stores it again when everything rests.
fn delete_and_store(stage: &Stage) -> Actor {
    lock(&stage.sim.model).ever_missing = true;
    Actor::request("api", Again::User, |hands| {
        async move {
            let policies = &hands.steps.policies;
            if hands.sim.gate.as_ref().is_some_and(|gate| gate.closed()) {
                // What comes next is for later.
                let _ = policies.delete(KIND).await;
                return false;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            match serde_json::from_value(keyed()) {
                Ok(policy) => policies.put(&policy).await.is_ok(),
                Err(_) => false,
            }
        }
        .boxed()
    })
}

/// A task that fails for good.
fn doomed(key: &str) -> TaskRequest {
    let mut task = task(None, key);
    task.content["doomed"] = json!(true);
    task
}

/// A task of a lane of its own.
fn apart(key: &str) -> TaskRequest {
    let mut task = task(None, key);
    task.content["t"] = json!(key);
    task
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "handle-beside-deletion",
        about: "the policy of a kind is deleted while a task fails, whose key is then free",
        policy: keyed,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &[doomed("a")]).await?;
                Ok(vec![Actor::message("HandleQueue", message), delete_and_store(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-beside-handle-places",
        about: "two batches of a kind call at once, which has two places in two records",
        policy: two_calls,
        prepare: |stage| {
            async move {
                let mut handles = Vec::new();
                for key in ["a", "b"] {
                    register(stage, key, &[apart(key)]).await?;
                    stage.deliver("ElectQueue").await?;
                    stage.deliver("GroupQueue").await?;
                    handles.push(Actor::message("HandleQueue", stage.take("HandleQueue")?));
                }
                Ok(handles)
            }
            .boxed()
        },
    },
];
