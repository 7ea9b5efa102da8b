//! Filling a batch with one task after the other.

use std::collections::HashSet;
use std::num::NonZeroU32;

use super::BatchSize;
use crate::grouping::load::Load;
use crate::policy::Weight;

/// A batch that is filled with one task after the other.
#[derive(Clone, Debug)]
pub struct Filling {
    size: BatchSize,
    members: usize,
    /// Members that it may have with those it has.
    most: usize,
    bytes: u64,
    weight: Weight,
    seen: HashSet<NonZeroU32>,
    full: bool,
    flushes: bool,
}

impl Filling {
    /// An empty batch.
    #[must_use]
    pub fn new(size: BatchSize) -> Self {
        Self {
            size,
            members: 0,
            most: size.most,
            bytes: 0,
            weight: Weight::default(),
            seen: HashSet::new(),
            full: false,
            flushes: false,
        }
    }

    /// Takes a task, if there is room for it and no other has its `distinct` value; returns whether it did. The first one is
    /// always taken: a task that is more than a batch may have goes alone.
    pub fn take(&mut self, load: Load) -> bool {
        self.flushes |= self.size.flushes && load.flushes;
        let (bytes, weight) = (self.bytes + u64::from(load.bytes), self.weight.plus(load.weight));
        let over = bytes > self.size.bytes || self.size.weight.is_some_and(|most| weight > most);
        let most = load.at_most.map_or(self.most, |most| self.most.min(usize::from(most.get())));
        if self.members >= most || (over && self.members > 0) {
            self.full = true;
            return false;
        }
        if self.size.distinct && load.distinct.is_some_and(|hash| !self.seen.insert(hash)) {
            return false;
        }
        (self.members, self.most, self.bytes, self.weight) = (self.members + 1, most, bytes, weight);
        true
    }

    /// Whether one of the tasks that were offered ends the linger of its lane, also if it was not taken: it waits for the next
    /// batch, which begins when this one is formed.
    #[must_use]
    pub fn flushes(&self) -> bool {
        self.flushes
    }

    /// Whether it is full: it has as many tasks as it may have, or one of those offered found no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let heavy = self.size.weight.is_some_and(|most| self.weight >= most);
        self.full || heavy || self.bytes >= self.size.bytes || self.members >= self.most
    }
}
