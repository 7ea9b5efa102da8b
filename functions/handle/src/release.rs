//! Keys of members that failed: another task may take them, so that the same can be asked for again.

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::policy::{KeyAfterFailure, Policy};
use fanfold::store::batches::Batch;

use crate::{Handle, HandleError};

impl Handle {
    /// Releases the keys of members whose failure the batch API answered. What failed in silence may have worked, and keeps
    /// its key. Comes before anything else that follows from a failure: whoever hears of it may ask again at once.
    pub(crate) async fn release(&self, batch: &Batch, policy: Option<&Policy>) -> Result<(), HandleError> {
        let releases = |policy: &Policy| policy.key.is_some() && policy.key_after_failure == KeyAfterFailure::Release;
        let slots = answered(batch);
        if slots.is_zero() || !policy.is_some_and(releases) {
            return Ok(());
        }
        let ids: Vec<TaskId> = slots.iter().filter_map(|slot| batch.members.ids().get(slot)).copied().collect();
        Ok(self.tasks.release_keys(&ids).await?)
    }
}

/// The slots whose failure the batch API answered.
fn answered(batch: &Batch) -> Bits {
    batch.failed.minus(&batch.silent)
}
