//! Runs in which a crowd of tasks with head starts waits in lanes of small batches.

use std::time::Duration;

use super::Scenario;
use crate::dice::Dice;
use crate::filled;

impl Scenario {
    /// Has tasks go by their ranks alone, and come faster than small batches are called: leaders are told of more tasks
    /// than a batch takes, while urgent ones come.
    pub(super) fn rush(&mut self, dice: &Dice) {
        for (_, policy) in self.kinds.iter_mut().flat_map(|kind| &mut kind.versions) {
            policy.priority = Some(filled::PRIORITY.to_owned());
            (policy.weight, policy.max_weight, policy.distinct, policy.max_batch_bytes) = (None, None, None, None);
            (policy.min_batch, policy.min_batch_wait) = (None, None);
            (policy.max_batch, policy.max_in_flight) = (Some(1 + dice.below(2) as u32), 2 + dice.below(3) as u32);
        }
        for plan in self.singles.iter_mut().take(1) {
            (plan.tasks, plan.pace) = (plan.tasks.max(60), plan.pace.min(Duration::from_secs(4)));
            plan.chunk = plan.chunk.clamp(3, 6);
        }
    }
}
