//! How much a batch takes, and when it is full.

mod filling;

use std::collections::HashMap;
use std::num::NonZeroU32;

use crate::control::Hold;
use crate::grouping::Linger;
use crate::grouping::load::Load;
use crate::limits::{BATCH_BYTES_DEFAULT, CONTENT_BYTES_MAX, MEMBER_BYTES, SMALL_TASK_BYTES};
use crate::policy::{Policy, Weight};

pub use self::filling::Filling;

/// The size of a policy's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    most: usize,
    bytes: u64,
    /// Whether the policy sets the number of bytes: then the bytes of its tasks are counted exactly.
    to_the_byte: bool,
    weight: Option<Weight>,
    distinct: bool,
    flushes: bool,
    /// Whether tasks may have head starts.
    ranks: bool,
    linger: Linger,
}

impl BatchSize {
    /// Batches that take nothing more: of a kind without a policy.
    pub const NONE: Self = Self {
        most: 0,
        bytes: 0,
        to_the_byte: false,
        weight: None,
        distinct: false,
        flushes: false,
        ranks: false,
        linger: Linger::NONE,
    };

    /// The size of this policy's batches.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        Self {
            most: policy.max_batch() as usize,
            bytes: u64::from(policy.max_batch_bytes.unwrap_or(BATCH_BYTES_DEFAULT)),
            to_the_byte: policy.max_batch_bytes.is_some(),
            weight: policy.max_weight,
            distinct: policy.distinct.is_some(),
            flushes: policy.flush_when.is_some(),
            ranks: policy.priority.is_some(),
            linger: Linger::of(policy),
        }
    }

    /// The same in a lane: in one that drains, leaders do not linger.
    #[must_use]
    pub fn under(policy: &Policy, hold: Hold) -> Self {
        Self { linger: Linger::under(policy, hold), ..Self::of(policy) }
    }

    /// Tasks to find before a batch is formed: twice as many as it takes show whether the next one is full, too.
    #[must_use]
    pub fn with_next(self) -> usize {
        2 * self.most
    }

    /// Whether a task may end its lane's linger.
    #[must_use]
    pub fn may_flush(self) -> bool {
        self.flushes
    }

    /// Whether tasks go by their ranks: those that came last may go first.
    #[must_use]
    pub fn goes_by_rank(self) -> bool {
        self.ranks
    }

    /// Whether this number of tasks fills a batch. None: it depends on their loads whether they do, or whether they wait for more.
    #[must_use]
    pub fn is_full_of(self, tasks: usize) -> Option<bool> {
        match tasks >= self.most {
            true if !self.distinct => Some(true),
            false if !self.distinct && !self.to_the_byte && self.weight.is_none() && !self.flushes => Some(false),
            _ => None,
        }
    }

    /// Whether this number of tasks is all that a leader reads: waiting for more would not change its choice.
    #[must_use]
    pub fn is_all_it_sees(self, tasks: usize) -> bool {
        tasks >= self.with_next()
    }

    /// Whether the loads of this number of tasks matter: they do not, if a batch has room for as many large ones, and nothing else
    /// of a task counts.
    #[must_use]
    pub fn depends_on_loads(self, tasks: usize) -> bool {
        let largest = (CONTENT_BYTES_MAX + MEMBER_BYTES) as u64;
        self.weight.is_some() || self.distinct || self.flushes || largest.saturating_mul(tasks as u64) > self.bytes
    }

    /// For how long a leader waits for more tasks.
    #[must_use]
    pub fn linger(self) -> Linger {
        self.linger
    }

    /// Bytes that a task with a content of this size takes. They are rounded up if the policy does not limit bytes, so that
    /// most tasks of one kind are alike.
    #[must_use]
    pub fn bytes_of(self, content: usize) -> u32 {
        let bytes = u32::try_from(content + MEMBER_BYTES).unwrap_or(u32::MAX);
        if self.to_the_byte { bytes } else { bytes.div_ceil(SMALL_TASK_BYTES).saturating_mul(SMALL_TASK_BYTES) }
    }

    /// The number of batches that this number of tasks fills at least.
    pub(crate) fn batches(self, tasks: usize, loads: impl Iterator<Item = Load>) -> usize {
        // A task that is more than a batch may have takes one batch, too.
        let (most_bytes, most_weight) = (self.bytes.max(1), self.weight.map_or(u64::MAX, |most| most.0.max(1)));
        let (mut bytes, mut weight) = (0_u64, 0_u64);
        // Parts of a batch, in millionths, that those take which may only be in smaller ones.
        let (mut parts, most) = (0_u64, self.most.max(1) as u64);
        let mut alike: HashMap<NonZeroU32, usize> = HashMap::new();
        for load in loads {
            bytes += u64::from(load.bytes).min(most_bytes);
            weight = weight.saturating_add(load.weight.0.min(most_weight));
            parts += 1_000_000 / load.at_most.map_or(most, |at_most| most.min(u64::from(at_most.get())));
            load.distinct.into_iter().for_each(|hash| *alike.entry(hash).or_default() += 1);
        }
        let alike = alike.into_values().max().unwrap_or(0);
        let by_load = bytes.div_ceil(most_bytes).max(weight.div_ceil(most_weight)).max(parts / 1_000_000);
        let by_load = usize::try_from(by_load).unwrap_or(usize::MAX);
        tasks.div_ceil(self.most.max(1)).max(by_load).max(alike).min(tasks)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::grouping::distinct;
    use crate::testing::parcels;
    use proptest::prelude::*;
    use serde_json::json;

    fn size(changes: serde_json::Value) -> BatchSize {
        BatchSize::of(&parcels(changes))
    }

    fn load(bytes: u32, weight: u64) -> Load {
        Load { bytes, weight: Weight(weight * 1_000), ..Load::default() }
    }

    /// Which of these are taken, and whether the batch is full then.
    fn taken(size: BatchSize, loads: &[Load]) -> (Vec<usize>, bool) {
        let mut filling = Filling::new(size);
        let taken = loads.iter().enumerate().filter(|(_, load)| filling.take(**load)).map(|(at, _)| at).collect();
        (taken, filling.is_full())
    }

    #[test]
    fn a_batch_is_full_with_as_many_tasks_as_it_takes() {
        let size = size(json!({"max_batch": 7, "linger": 3}));
        assert_eq!(size.with_next(), 14);
        assert_eq!(
            [0, 6, 7, 8].map(|tasks| size.is_full_of(tasks)),
            [Some(false), Some(false), Some(true), Some(true)]
        );
        let full = |tasks| taken(size, &vec![Load::default(); tasks]);
        assert_eq!([0, 6, 7, 8].map(|tasks| full(tasks).1), [false, false, true, true]);
        assert_eq!(full(9).0, (0..7).collect::<Vec<_>>());
    }

    #[test]
    fn a_lane_that_drains_has_batches_of_the_same_size_without_linger() {
        let policy = parcels(json!({"linger": 3}));
        let draining = Hold { draining: true, ..Hold::default() };
        assert_eq!(BatchSize::under(&policy, Hold::default()), BatchSize::of(&policy));
        assert_eq!(BatchSize::under(&policy, draining), BatchSize { linger: Linger::NONE, ..BatchSize::of(&policy) });
    }

    #[test]
    fn what_has_no_room_waits_and_what_has_goes() {
        let size = size(json!({"weight": "content.kg", "max_weight": 10}));
        let weights = |weights: &[u64]| {
            let loads: Vec<Load> = weights.iter().map(|weight| load(1, *weight)).collect();
            taken(size, &loads)
        };
        assert_eq!(weights(&[4, 4]), (vec![0, 1], false));
        assert_eq!(weights(&[4, 4, 4]), (vec![0, 1], true), "there was no room");
        assert_eq!(weights(&[4, 4, 4, 2]), (vec![0, 1, 3], true));
        assert_eq!(weights(&[4, 6]), (vec![0, 1], true), "nothing has room any more");
        assert_eq!(weights(&[0, 0, 10]), (vec![0, 1, 2], true));
    }

    #[test]
    fn what_is_more_than_a_batch_may_have_goes_alone() {
        let heavy = size(json!({"weight": "content.kg", "max_weight": 10}));
        assert_eq!(taken(heavy, &[load(1, 11), load(1, 0), load(1, 1)]), (vec![0], true));
        assert_eq!(taken(heavy, &[load(1, 1), load(1, 11), load(1, 2)]), (vec![0, 2], true), "it will be the first");
        let large = size(json!({"max_batch_bytes": 1_024}));
        assert_eq!(taken(large, &[load(1_025, 0), load(1, 0)]), (vec![0], true));
        assert_eq!(taken(large, &[load(1_000, 0), load(24, 0), load(1, 0)]), (vec![0, 1], true));
    }

    #[test]
    fn a_call_is_not_larger_than_a_function_bears_whatever_the_policy_says() {
        let most = size(json!({"max_batch": 10_000}));
        let small = most.bytes_of(100);
        assert_eq!(taken(most, &vec![load(small, 0); 10_000]).0.len(), 10_000);
        let large = most.bytes_of(CONTENT_BYTES_MAX);
        let (taken, full) = taken(most, &vec![load(large, 0); 100]);
        assert!(full && taken.len() == 31, "{taken:?}");
        // With no more tasks than fit by number, their loads need not be read.
        assert!(!most.depends_on_loads(31) && most.depends_on_loads(32));
    }

    #[test]
    fn two_tasks_with_one_value_do_not_ride_together() {
        let size = size(json!({"distinct": "content.account", "max_batch": 3}));
        let load = |value: &str| Load { distinct: Some(distinct(value)), ..Load::default() };
        let all = |values: &[&str]| taken(size, &values.iter().map(|value| load(value)).collect::<Vec<_>>());
        assert_eq!(all(&["a", "a", "b", "a", "c", "d"]), (vec![0, 2, 4], true));
        assert_eq!(all(&["a", "a", "a", "a"]), (vec![0], false), "others may come");
        // Those that came before the policy had a value ride with any.
        assert_eq!(taken(size, &[load("a"), Load::default(), Load::default()]).0.len(), 3);
        assert_eq!([2, 3, 9].map(|tasks| size.is_full_of(tasks)), [None; 3]);
        assert_eq!([5, 6].map(|tasks| size.is_all_it_sees(tasks)), [false, true]);
        assert_eq!(size.batches(4, ["a", "b", "a", "a"].map(load).into_iter()), 3);
        // Without the field it is not read.
        let without = self::size(json!({"max_batch": 3}));
        assert_eq!(taken(without, &[load("a"), load("a")]).0.len(), 2);
    }

    #[test]
    fn a_task_that_flushes_ends_the_linger_whether_it_is_taken_or_not() {
        let flushing = size(json!({"flush_when": "content.last", "distinct": "content.account", "max_batch": 3}));
        let flushes = |size, loads: &[Load]| {
            let mut filling = Filling::new(size);
            loads.iter().for_each(|load| _ = filling.take(*load));
            (filling.flushes(), filling.is_full())
        };
        let plain = Load { distinct: Some(distinct("a")), ..Load::default() };
        let last = Load { flushes: true, ..plain };
        assert_eq!(flushes(flushing, &[plain, plain]), (false, false));
        assert_eq!(flushes(flushing, &[last]), (true, false));
        assert_eq!(flushes(flushing, &[plain, last]), (true, false), "it waits for the next batch");
        // Who does not know the loads has to look; a full batch goes anyway.
        let flushing = size(json!({"flush_when": "content.last", "max_batch": 3}));
        assert_eq!([2, 3].map(|tasks| flushing.is_full_of(tasks)), [None, Some(true)]);
        assert!(flushing.depends_on_loads(1) && flushing.may_flush());
        // Once the policy does not say when, it is not read.
        let without = size(json!({"max_batch": 3}));
        assert_eq!(flushes(without, &[last]), (false, false));
        assert!(!without.depends_on_loads(3) && !without.may_flush());
    }

    #[test]
    fn a_task_that_was_reissued_for_smaller_batches_is_in_no_larger_one() {
        let size = size(json!({"max_batch": 4}));
        let load = |at_most| Load { at_most: std::num::NonZeroU16::new(at_most), ..Load::default() };
        let all = |limits: &[u16]| taken(size, &limits.iter().map(|most| load(*most)).collect::<Vec<_>>());
        assert_eq!(all(&[1, 1, 1]), (vec![0], true));
        assert_eq!(all(&[2, 0, 0]), (vec![0, 1], true));
        assert_eq!(all(&[0, 2, 0]), (vec![0, 1], true));
        assert_eq!(all(&[0, 0, 2, 0, 0]), (vec![0, 1, 3, 4], true), "it waits for the next batch");
        assert_eq!(all(&[9, 9, 9, 9, 9]).0.len(), 4, "never more than the policy says");
        assert_eq!(size.batches(4, [1, 1, 2, 2].map(load).into_iter()), 3);
    }

    #[test]
    fn bytes_are_counted_where_the_policy_says_how_many() {
        let bytes = |size: BatchSize| [0, 128, 129, 1_000].map(|content| size.bytes_of(content));
        assert_eq!(bytes(size(json!({}))), [256, 256, 512, 1_280]);
        assert_eq!(bytes(size(json!({"max_batch_bytes": 100_000}))), [128, 256, 257, 1_128]);
    }

    proptest! {
        #[test]
        fn no_batch_has_more_than_it_may_and_the_first_task_is_always_taken(
            loads in prop::collection::vec((1_u32..400, 0_u64..40), 1..60),
            (max_batch, bytes, weight) in (1_u32..20, 256_u32..1_000, 1_u32..60),
        ) {
            let size = size(json!({
                "max_batch": max_batch, "max_batch_bytes": bytes, "weight": "content.kg", "max_weight": weight,
            }));
            let mut rest: Vec<Load> = loads.iter().map(|(bytes, weight)| load(*bytes, *weight)).collect();
            let mut batches = 0;
            while !rest.is_empty() {
                let (members, _) = taken(size, &rest);
                prop_assert_eq!(members.first(), Some(&0));
                let (most, bytes, weight) = (max_batch as usize, u64::from(bytes), u64::from(weight) * 1_000);
                let sum = |of: fn(&Load) -> u64| members.iter().map(|at| of(&rest[*at])).sum::<u64>();
                prop_assert!(members.len() <= most);
                prop_assert!(members.len() == 1 || sum(|load| load.bytes.into()) <= bytes);
                prop_assert!(members.len() == 1 || sum(|load| load.weight.0) <= weight);
                let mut at = 0;
                rest.retain(|_| (!members.contains(&at), at += 1).0);
                batches += 1;
            }
            let least = size.batches(loads.len(), loads.iter().map(|(bytes, weight)| load(*bytes, *weight)));
            prop_assert!(least <= batches, "{} of at least {}", batches, least);
        }
    }
}
