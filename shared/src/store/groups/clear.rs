//! Clearing bits: how acks change a bitfield. No I/O.

use super::GroupRecord;
use crate::bits::Bits;

/// Bits to be cleared in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Items that are done: succeeded, failed or duplicates.
    pub done: Bits,
    /// Those of them that failed.
    pub failed: Bits,
    /// Those of them that are duplicates. An item that is also given as failed counts as failed.
    pub duplicates: Bits,
    /// Those of them that are missing: their fan-out ended before they were done. Only Fanfold reports that. An item that is
    /// also given as failed, or as a duplicate, counts as that.
    pub missing: Bits,
}

impl Mask {
    /// Adds another mask. An item that is given as failed in one and as succeeded in the other counts as failed.
    pub fn merge(&mut self, other: &Self) {
        self.done.merge(&other.done);
        self.failed.merge(&other.failed);
        self.duplicates.merge(&other.duplicates);
        self.missing.merge(&other.missing);
    }
}

/// A bitfield after a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Items not done now.
    pub pending: Bits,
    /// Items failed now.
    pub failed: Bits,
    /// Items that are duplicates now.
    pub duplicates: Bits,
    /// Items that are missing now.
    pub missing: Bits,
    /// How many the mask cleared.
    pub newly: u64,
}

/// Clears bits. Bits that were cleared before stay as they were, so any order and repetition of acks ends in the same state.
/// Bits beyond the group's size are not pending and change nothing.
#[must_use]
pub fn clear(group: &GroupRecord, mask: &Mask) -> Cleared {
    let newly = group.pending.and(&mask.done);
    let GroupRecord { mut failed, mut duplicates, mut missing, .. } = group.clone();
    failed.merge(&newly.and(&mask.failed));
    duplicates.merge(&newly.and(&mask.duplicates).minus(&mask.failed));
    missing.merge(&newly.and(&mask.missing).minus(&mask.failed).minus(&mask.duplicates));
    Cleared { pending: group.pending.minus(&mask.done), failed, duplicates, missing, newly: newly.count() }
}

/// Clears every bit: items that are not done become missing.
#[must_use]
pub fn close(group: &GroupRecord) -> Cleared {
    let left = || group.pending.clone();
    clear(group, &Mask { done: left(), missing: left(), ..Mask::default() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::clock::Timestamp;

    fn bits(indices: &[usize]) -> Bits {
        indices.iter().copied().collect()
    }

    fn group(size: usize) -> GroupRecord {
        GroupRecord::new(Uuid::nil(), Uuid::nil(), size as u32, Timestamp(0))
    }

    fn mask(done: &[usize], failed: &[usize], duplicates: &[usize]) -> Mask {
        Mask { done: bits(done), failed: bits(failed), duplicates: bits(duplicates), missing: Bits::default() }
    }

    #[test]
    fn a_cleared_bit_keeps_its_first_outcome() {
        let first = clear(&group(8), &mask(&[1, 2, 3], &[2], &[3]));
        assert_eq!((first.newly, first.failed.count(), first.duplicates.count()), (3, 1, 1));
        let again = clear(&group(8).after(&first, Timestamp(1)), &mask(&[1, 2, 3], &[1, 3], &[1, 2]));
        assert_eq!((again.newly, &again.failed, &again.duplicates), (0, &first.failed, &first.duplicates));
        assert_eq!(again.pending.count(), 5);
    }

    #[test]
    fn what_is_not_done_does_not_count() {
        let cleared = clear(&group(8), &mask(&[1], &[5], &[6]));
        assert!(cleared.failed.is_zero() && cleared.duplicates.is_zero());
    }

    #[test]
    fn an_item_counts_once() {
        let cleared = clear(&group(8), &mask(&[1, 2], &[1], &[1, 2]));
        assert_eq!((cleared.failed, cleared.duplicates), (bits(&[1]), bits(&[2])));
    }

    #[test]
    fn what_is_left_is_missing_and_what_is_done_is_not() {
        let some = group(8).after(&clear(&group(8), &mask(&[1, 2, 3], &[2], &[3])), Timestamp(1));
        let closed = close(&some);
        assert_eq!((closed.missing.clone(), closed.newly), (bits(&[0, 4, 5, 6, 7]), 5));
        assert_eq!((closed.pending.count(), closed.failed, closed.duplicates), (0, bits(&[2]), bits(&[3])));
        let said = Mask { missing: bits(&[1, 2, 3]), ..mask(&[1, 2, 3], &[2], &[3]) };
        assert_eq!(clear(&group(8), &said).missing, bits(&[1]), "an item counts once");
    }

    proptest! {
        #[test]
        fn any_order_and_repetition_ends_the_same(
            size in 1_usize..200,
            items in prop::collection::vec((0_usize..220, 0_u8..3), 0..60),
            repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            order in any::<u64>(),
        ) {
            // An item has one outcome, however often it is acked.
            let outcomes: BTreeMap<usize, u8> = items.iter().copied().collect();
            let mut acks: Vec<(usize, u8)> = outcomes.iter().map(|(item, outcome)| (*item, *outcome)).collect();
            if !acks.is_empty() {
                acks.extend(repeats.iter().map(|at| acks[at.index(outcomes.len())]).collect::<Vec<_>>());
            }
            fastrand::Rng::with_seed(order).shuffle(&mut acks);
            let mut state = group(size);
            let mut newly = 0;
            for chunk in acks.chunks(3) {
                let of = |outcome: u8| chunk.iter().filter(|ack| ack.1 == outcome).map(|ack| ack.0).collect();
                let done = chunk.iter().map(|ack| ack.0).collect();
                let cleared = clear(&state, &Mask { done, failed: of(1), duplicates: of(2), missing: Bits::default() });
                newly += cleared.newly;
                state = state.after(&cleared, Timestamp(1));
            }
            let within = |item: &&usize| **item < size;
            prop_assert_eq!(newly as usize, outcomes.keys().filter(within).count());
            for item in 0..size {
                prop_assert_eq!(state.pending.get(item), !outcomes.contains_key(&item));
                prop_assert_eq!(state.failed.get(item), outcomes.get(&item) == Some(&1));
                prop_assert_eq!(state.duplicates.get(item), outcomes.get(&item) == Some(&2));
            }
        }
    }
}
