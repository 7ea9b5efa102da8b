//! Policies of tests.

use std::time::Duration;

use fanfold::lane::Lane;
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold::policy::Policy;
use fanfold::store::policies::Policies;
use serde_json::{Value, json};

use crate::stack::TestStack;

/// A policy of parcels by depot, with these changes.
pub fn policy(changes: Value) -> Value {
    let policy = json!({
        "kind": "parcel", "target": "content.depot", "max_batch": 10, "linger": 1, "max_in_flight": 3,
        "max_attempts": 4, "backoff": {"base": 1, "max": 4}, "batch_api": {"command": ["truck"]}
    });
    changed(policy, changes)
}

/// The lane of one depot.
pub fn lane() -> Lane {
    "parcel:0:117".parse().unwrap()
}

/// A policy with these changes.
pub fn changed(mut policy: Value, changes: Value) -> Value {
    policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    policy
}

impl TestStack {
    /// Deletes the policy of a kind, and waits until no step uses it any more.
    pub async fn delete_policy(&self, kind: &str) {
        let table = self.surroundings().table("POLICIES_TABLE").unwrap();
        self.insist(async || Policies::new(table.clone()).delete(kind).await).await;
        tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    }

    /// Stores a policy, and waits until no step goes by the kind's earlier one any more.
    pub async fn put_policy(&self, policy: Value) {
        let policy: Policy = serde_json::from_value(policy).unwrap();
        policy.check().unwrap();
        let table = self.surroundings().table("POLICIES_TABLE").unwrap();
        self.insist(async || Policies::new(table.clone()).put(&policy).await).await;
        tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    }
}
