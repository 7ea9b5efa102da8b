//! How far a run has come, by what earlier processes did and what this one counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fanfold::metrics::{
    BATCHES_FORMED, ITEMS_ACKED, MEMBERS_FAILED, MEMBERS_SUCCEEDED, RETRIES, TASKS_BATCHED, TASKS_DUPLICATE,
    TASKS_REGISTERED,
};

use super::progress::How;
use super::tally::Tally;
use crate::counters::Counters;

/// What earlier processes did of the run, and what counts what this one does.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) counters: Counters,
    /// Rows whose registration is written down.
    pub(super) registered: Arc<AtomicU64>,
    pub(super) registered_before: u64,
    pub(super) before: Tally,
    pub(super) acked_before: u64,
    pub(super) duplicates_before: u64,
    pub(super) total: u64,
    pub(super) resumed: bool,
    pub(super) how: How,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) registered: u64,
    /// Tasks that were dropped: they are in no batch.
    pub(super) duplicates: u64,
    pub(super) batched: u64,
    pub(super) handled: u64,
    pub(super) failed: u64,
    pub(super) acked: u64,
    pub(super) batches: u64,
    pub(super) retries: u64,
}

impl Reading {
    /// Tasks whose outcome is known, be they acked or not.
    pub(super) fn done(self) -> u64 {
        self.handled + self.duplicates
    }
}

impl Meter {
    /// Duplicates, whose key another task has, by this process.
    pub(super) fn duplicates(&self) -> u64 {
        self.counters.get(TASKS_DUPLICATE)
    }

    /// Whether every task has its outcome.
    pub(super) fn is_handled(&self) -> bool {
        self.reading().done() == self.total
    }

    /// Tasks that are registered and have no outcome yet.
    pub(super) fn ahead(&self) -> u64 {
        let now = self.reading();
        now.registered.saturating_sub(now.done())
    }

    /// How far it is now.
    pub(super) fn reading(&self) -> Reading {
        // Read against the flow: what comes later is never seen ahead of what comes before it.
        let counted = |name| self.counters.get(name);
        let acked = (self.acked_before + counted(ITEMS_ACKED)).min(self.total);
        let failed = self.before.failed.len() as u64 + counted(MEMBERS_FAILED);
        let settled_before = self.before.settled - self.before.failed.len() as u64;
        let handled = (settled_before + failed + counted(MEMBERS_SUCCEEDED)).min(self.total);
        let batched = (self.before.members + counted(TASKS_BATCHED)).clamp(handled, self.total);
        let duplicates = (self.duplicates_before + self.duplicates()).min(self.total - batched);
        // What is stored counts at once; what an earlier process stored of the portion it died in, with that portion.
        let stored = counted(TASKS_REGISTERED) + counted(TASKS_DUPLICATE);
        let known = self.registered_before.max(self.before.members);
        let registered = self.registered.load(Ordering::Relaxed).max(known + stored);
        Reading {
            registered: registered.clamp(batched, self.total),
            duplicates,
            batched,
            handled,
            failed,
            acked,
            batches: self.before.batches + counted(BATCHES_FORMED),
            retries: self.before.retries + counted(RETRIES),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::run) fn meter(counted: &[(&'static str, u64)]) -> Meter {
        let counters = Counters::default();
        counted.iter().for_each(|(name, count)| counters.add(name, *count));
        Meter {
            counters,
            registered: Arc::new(AtomicU64::new(0)),
            registered_before: 0,
            before: Tally::default(),
            acked_before: 0,
            duplicates_before: 0,
            total: 20_000,
            resumed: false,
            how: How::Nothing,
        }
    }

    #[test]
    fn what_is_stored_counts_before_its_portion_is_through() {
        let meter = meter(&[(TASKS_REGISTERED, 700), (TASKS_DUPLICATE, 1)]);
        assert_eq!(meter.reading().registered, 701);
        meter.registered.store(10_000, Ordering::Relaxed);
        assert_eq!(meter.reading().registered, 10_000);
    }

    #[test]
    fn nothing_is_ahead_of_what_comes_before_it() {
        let mut meter = meter(&[(TASKS_BATCHED, 60), (MEMBERS_SUCCEEDED, 100), (MEMBERS_FAILED, 20)]);
        let now = meter.reading();
        assert_eq!((now.registered, now.batched, now.handled, now.failed), (120, 120, 120, 20));
        // An earlier process died in the middle of its first portion.
        meter.before = Tally { batches: 3, members: 3_000, settled: 10, ..Tally::default() };
        meter.resumed = true;
        let now = meter.reading();
        assert_eq!((now.registered, now.batched, now.handled), (3_060, 3_060, 130));
    }

    #[test]
    fn retries_of_earlier_processes_count() {
        let mut meter = meter(&[(RETRIES, 3)]);
        // Of ten batches one was called, three times.
        meter.before = Tally { batches: 10, calls: 3, retries: 2, ..Tally::default() };
        assert_eq!(meter.reading().retries, 5);
    }

    #[test]
    fn duplicates_are_in_no_batch() {
        let mut meter = meter(&[(TASKS_DUPLICATE, 700), (TASKS_BATCHED, 19_000)]);
        meter.duplicates_before = 200;
        assert_eq!((meter.reading().duplicates, meter.reading().batched), (900, 19_000));
        // Those of a process that died may be counted twice: dropped again, as it had not written down that they were.
        meter.duplicates_before = 700;
        assert_eq!(meter.reading().duplicates, 1_000);
    }
}
