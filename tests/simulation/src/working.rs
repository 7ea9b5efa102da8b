//! Who works when at the batch API. A call works there from the moment its request arrives until its work is done or its
//! time-out is over, even if its caller is gone: no server notices that a worker died.

use std::collections::BTreeMap;

use uuid::Uuid;

/// A call that works at the batch API.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) batch: Uuid,
    pub(crate) attempt: u32,
    pub(crate) kind: String,
    /// The batch's lane; its kind alone, if nobody saw the batch being formed.
    pub(crate) lane: String,
}

/// The calls that work now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Working {
    calls: BTreeMap<u64, Work>,
    begun: u64,
}

/// How many calls work at once, the one that just began among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtOnce {
    pub(crate) of_batch: usize,
    pub(crate) of_lane: usize,
    pub(crate) of_kind: usize,
    pub(crate) all: usize,
}

impl Working {
    /// A call begins to work. Returns its number, by which it ends.
    pub(crate) fn begin(&mut self, work: Work) -> (u64, AtOnce) {
        let number = self.begun;
        self.begun += 1;
        self.calls.insert(number, work.clone());
        let count = |same: &dyn Fn(&Work) -> bool| self.calls.values().filter(|other| same(other)).count();
        let at_once = AtOnce {
            of_batch: count(&|other| other.batch == work.batch),
            of_lane: count(&|other| other.lane == work.lane),
            of_kind: count(&|other| other.kind == work.kind),
            all: self.calls.len(),
        };
        (number, at_once)
    }

    /// A call works no more.
    pub(crate) fn end(&mut self, number: u64) {
        self.calls.remove(&number);
    }

    /// The calls of a lane that work now.
    pub(crate) fn of_lane<'a>(&'a self, lane: &'a str) -> impl Iterator<Item = &'a Work> {
        self.calls.values().filter(move |work| work.lane == lane)
    }
}
