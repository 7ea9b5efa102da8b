//! The policies ready to compute lanes: compiling one takes longer than computing the lane of a task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::aws::StoreError;
use crate::lane::Lane;
use crate::policy::{CompiledPolicy, Policy};
use crate::store::policies::Policies;

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

    /// Whether each of these lanes is paused. If nobody can say, none is: an election finds out.
    pub(crate) async fn paused(&self, lanes: &[&Lane]) -> Vec<bool> {
        match self.policies.holds(lanes).await {
            Ok(holds) => holds.into_iter().map(|hold| hold.paused).collect(),
            Err(error) => {
                tracing::warn!(%error, "the switches cannot be read");
                vec![false; lanes.len()]
            }
        }
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
