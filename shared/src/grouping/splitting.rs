//! When a batch is split.

use crate::policy::Policy;
use crate::store::batches::Batch;

/// Whether the members of a call that failed as a whole are called in halves next. After an answer that is final, always. After
/// a fault that may pass: once the batch is split, at once; before that, when its attempts are used up. But not if an earlier
/// call for one of them may have worked, as halves have other keys; nor if the policy allows a single attempt.
///
/// `called`: their slots. `retriable`: the fault may pass. `attempts`: those that count, this one among them.
#[must_use]
pub fn is_split_after(batch: &Batch, called: &[usize], retriable: bool, attempts: u32, policy: &Policy) -> bool {
    if !retriable {
        return true;
    }
    let may_have_worked = batch.lost_in_a_row() > 0 || called.iter().any(|slot| batch.silent.get(*slot));
    let used_up = !batch.parts.is_empty() || attempts >= policy.max_attempts;
    used_up && !may_have_worked && policy.max_attempts > 1
}
