//! The policies ready to compute lanes: compiling one takes longer than computing the lane of a task.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::aws::StoreError;
use crate::control::Hold;
use crate::lane::Lane;
use crate::policy::{CompiledPolicy, Policy, is_kind};
use crate::store::policies::Policies;

/// Policies by kind; none, where a kind has none.
pub type PoliciesOfKinds = HashMap<String, Option<Arc<CompiledPolicy>>>;

/// Policies, each compiled once as long as it does not change.
#[derive(Debug)]
pub(crate) struct CompiledPolicies {
    policies: Policies,
    compiled: Mutex<HashMap<String, Arc<CompiledPolicy>>>,
}

impl CompiledPolicies {
    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies, compiled: Mutex::default() }
    }

    /// The policies of these kinds; none, where a kind has none.
    pub(crate) async fn of_kinds(&self, kinds: &BTreeSet<&str>) -> Result<PoliciesOfKinds, StoreError> {
        let mut policies = HashMap::new();
        // A text that cannot be a kind cannot be looked up: DynamoDB refuses keys that are empty or too long.
        for kind in kinds.iter().copied().filter(|kind| is_kind(kind)) {
            policies.insert(kind.to_owned(), self.get(kind).await?);
        }
        Ok(policies)
    }

    /// Those of these lanes that are not paused. If the switches cannot be read, all: the election reads them again.
    pub(crate) async fn perhaps_not_paused<T>(&self, all: Vec<T>, lane: impl Fn(&T) -> &Lane) -> Vec<(T, Hold)> {
        self.policies.perhaps_not_paused(all, lane).await
    }

    /// The policy of a kind, if there is one.
    pub(crate) async fn get(&self, kind: &str) -> Result<Option<Arc<CompiledPolicy>>, StoreError> {
        let Some(policy) = self.policies.get(kind).await? else { return Ok(None) };
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(kind).filter(|known| known.policy == *policy) {
            return Ok(Some(Arc::clone(known)));
        }
        let new = CompiledPolicy::new(Policy::clone(&policy)).map(Arc::new).map_err(|error| StoreError::Corrupt {
            table: "policies",
            id: kind.to_owned(),
            attribute: "policy",
            problem: error.to_string(),
        })?;
        compiled.insert(kind.to_owned(), Arc::clone(&new));
        Ok(Some(new))
    }
}
