//! Which tasks go in a batch. No I/O.

use std::collections::HashSet;

use fanfold::ids::TaskId;
use fanfold::limits::{MEMBERS_BYTES_MAX, NAMED_TASKS_MAX};
use fanfold::members::Members;

/// Tasks that could be grouped.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Those chosen for the batch.
    pub(crate) chosen: Members,
    named: Vec<TaskId>,
    pending: Vec<TaskId>,
}

/// Tasks that a batch leaves for the next one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Those the leader's message named: no other workflow names them.
    pub(crate) named: Vec<TaskId>,
    /// Further ones that the index shows.
    pub(crate) others: Vec<TaskId>,
}

impl Rest {
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.others.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.named.len() + self.others.len()
    }

    /// Those a message can name, the ones that nobody else names first.
    pub(crate) fn to_name(&self) -> Members {
        Members::new(self.named.iter().chain(&self.others).take(NAMED_TASKS_MAX).copied())
    }
}

impl Candidates {
    /// Takes the lane's oldest tasks as the index shows them, then named ones that it does not show yet; at most `max`, and no
    /// more than a record can hold beside their outcomes.
    pub(crate) fn choose(named: &[TaskId], pending: Vec<TaskId>, max: usize) -> Self {
        let mut seen = HashSet::with_capacity(named.len() + pending.len());
        let all = pending.iter().chain(named).filter(|id| seen.insert(**id)).copied();
        let mut chosen: Vec<TaskId> = all.take(max).collect();
        while let packed = Members::new(chosen.iter().copied()).pack().len()
            && packed > MEMBERS_BYTES_MAX
        {
            chosen.truncate(chosen.len() * MEMBERS_BYTES_MAX / packed);
        }
        Self { chosen: Members::new(chosen), named: named.to_vec(), pending }
    }

    /// What is left beside the batch's intent. A task of the intent that did not become a member belongs to another batch.
    pub(crate) fn rest(&self, intent: &Members) -> Rest {
        let left = |id: &&TaskId| intent.slot(id).is_none();
        let named: Vec<TaskId> = self.named.iter().filter(left).copied().collect();
        let known: HashSet<TaskId> = named.iter().copied().collect();
        let others = self.pending.iter().filter(left).filter(|id| !known.contains(id)).copied().collect();
        Rest { named, others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn ids(numbers: &[u128]) -> Vec<TaskId> {
        numbers.iter().map(|number| TaskId::Single(Uuid::from_u128(*number))).collect()
    }

    #[test]
    fn the_oldest_go_first() {
        let candidates = Candidates::choose(&ids(&[9, 2]), ids(&[5, 2, 7, 8]), 3);
        assert_eq!(candidates.chosen, Members::new(ids(&[5, 2, 7])));
        assert_eq!(candidates.rest(&candidates.chosen), Rest { named: ids(&[9]), others: ids(&[8]) });
    }

    #[test]
    fn what_another_worker_left_out_of_its_intent_is_left() {
        let candidates = Candidates::choose(&ids(&[2]), ids(&[1]), 2);
        assert_eq!(candidates.rest(&Members::new(ids(&[1]))), Rest { named: ids(&[2]), others: Vec::new() });
    }

    proptest! {
        #[test]
        fn never_more_than_allowed_and_none_lost(
            named in prop::collection::vec(0_u128..50, 0..40),
            pending in prop::collection::vec(0_u128..50, 0..40),
            max in 1_usize..30,
        ) {
            let (named, pending) = (ids(&named), ids(&pending));
            let candidates = Candidates::choose(&named, pending.clone(), max);
            prop_assert!(candidates.chosen.len() <= max);
            let rest = candidates.rest(&candidates.chosen);
            let mut told: Vec<TaskId> = candidates.chosen.ids().iter().chain(&rest.named).chain(&rest.others).copied().collect();
            told.sort_unstable();
            told.dedup();
            let mut all: Vec<TaskId> = named.iter().chain(&pending).copied().collect();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(told, all);
        }
    }
}
