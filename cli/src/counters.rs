//! Counts what the steps count, for the progress shown.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::latencies::Latencies;

/// Counters and times by name. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    counters: ByName<AtomicU64>,
    latencies: ByName<Latencies>,
}

type ByName<T> = Arc<Mutex<HashMap<String, Arc<T>>>>;

impl Counters {
    /// Counters that every step of this process counts in.
    pub(crate) fn install() -> Self {
        let counters = Self::default();
        // Refused only if something else is installed; then progress stands still, and nothing else suffers.
        let _ = metrics::set_global_recorder(counters.clone());
        counters
    }

    /// What was counted so far.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counter(name).load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn add(&self, name: &str, count: u64) {
        self.counter(name).fetch_add(count, Ordering::Relaxed);
    }

    fn counter(&self, name: &str) -> Arc<AtomicU64> {
        by_name(&self.counters, name)
    }

    /// The times of that name.
    pub(crate) fn latencies(&self, name: &str) -> Arc<Latencies> {
        by_name(&self.latencies, name)
    }
}

fn by_name<T: Default>(all: &ByName<T>, name: &str) -> Arc<T> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(name.to_owned()).or_default())
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.counter(key.name()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.latencies(key.name()))
    }
}
