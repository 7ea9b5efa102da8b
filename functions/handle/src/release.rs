//! Keys of members that failed: another task may take them, so that the same work can be requested again.

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::policy::{KeyAfterFailure, Policy};
use fanfold::store::batches::Batch;

use crate::{Handle, HandleError};

impl Handle {
    /// Releases the keys of members that the batch API reported as failed, and of those that were dropped as their fan-outs
    /// were cut short. A call without an answer may have worked, so its members keep their keys. This comes before anything
    /// else that follows from a failure: a client that learns of the failure may register the same again at once. Without a policy,
    /// what was recorded with the outcomes counts. `but`: slots whose keys are released already.
    pub(crate) async fn release(&self, batch: &Batch, policy: Option<&Policy>, but: &Bits) -> Result<(), HandleError> {
        let slots = policy.map_or_else(|| batch.freed.clone(), |policy| freed(batch, policy)).minus(but);
        if slots.is_zero() {
            return Ok(());
        }
        let ids: Vec<TaskId> = slots.iter().filter_map(|slot| batch.members.ids().get(slot)).copied().collect();
        Ok(self.tasks.release_keys_of(batch.id, &ids).await?)
    }
}

/// The slots of a batch whose keys are free by now.
pub(crate) fn freed(batch: &Batch, policy: &Policy) -> Bits {
    let Batch { failed, dropped, silent, .. } = batch;
    freed_of(policy, failed, dropped, silent)
}

/// The slots whose keys are free, of those that failed, were dropped, or were silent.
pub(crate) fn freed_of(policy: &Policy, failed: &Bits, dropped: &Bits, silent: &Bits) -> Bits {
    let mut slots = Bits::default();
    if policy.key.is_some() && policy.key_after_failure == KeyAfterFailure::Release {
        slots.merge(failed);
    }
    // Without a scope only tasks of the same fan-out could have the same key, and that fan-out has ended.
    if policy.scope.is_some() {
        slots.merge(dropped);
    }
    slots.minus(silent)
}
