//! How many tasks a batch takes, and when it has enough of them.

use std::time::Duration;

use crate::policy::Policy;

/// The size of a policy's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    most: usize,
    linger: Duration,
}

impl BatchSize {
    /// The size of this policy's batches.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        Self { most: policy.max_batch as usize, linger: policy.linger.0 }
    }

    /// Members that a batch may have.
    #[must_use]
    pub fn most(self) -> usize {
        self.most
    }

    /// Tasks to know of before a batch is formed: twice as many as it takes show whether the next one is full, too.
    #[must_use]
    pub fn with_next(self) -> usize {
        2 * self.most
    }

    /// Whether so many tasks fill a batch.
    #[must_use]
    pub(crate) fn is_full(self, tasks: usize) -> bool {
        tasks >= self.most
    }

    /// How long a leader that knows of so many tasks waits for more: a full batch is formed at once.
    #[must_use]
    pub fn linger(self, tasks: usize) -> Duration {
        if self.is_full(tasks) { Duration::ZERO } else { self.linger }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn size(max_batch: u32, linger: u32) -> BatchSize {
        let policy = serde_json::from_value(serde_json::json!({
            "kind": "parcel", "target": "content.state", "batch_api": {"command": ["x"]},
            "max_batch": max_batch, "linger": linger
        }));
        BatchSize::of(&policy.unwrap())
    }

    #[test]
    fn a_batch_is_full_with_as_many_tasks_as_it_takes() {
        let size = size(7, 3);
        assert_eq!((size.most(), size.with_next()), (7, 14));
        assert_eq!([0, 6, 7, 8].map(|tasks| size.is_full(tasks)), [false, false, true, true]);
    }

    #[test]
    fn a_leader_lingers_until_its_batch_is_full() {
        let waits = |tasks| size(7, 3).linger(tasks);
        assert_eq!([0, 6, 7, 8].map(|tasks| waits(tasks).as_secs()), [3, 3, 0, 0]);
        assert_eq!(size(1, 3).linger(1), Duration::ZERO);
    }
}
