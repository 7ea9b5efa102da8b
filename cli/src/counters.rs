//! Counts what the steps count, for the progress shown and for `GET /metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::latencies::Latencies;

/// Counters, gauges and distributions by name. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    counters: ByName<AtomicU64>,
    /// Bits of floating-point numbers.
    gauges: ByName<AtomicU64>,
    latencies: ByName<Latencies>,
}

type ByName<T> = Arc<Mutex<BTreeMap<String, Arc<T>>>>;

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

    /// The times, or sizes, of that name.
    pub(crate) fn latencies(&self, name: &str) -> Arc<Latencies> {
        by_name(&self.latencies, name)
    }

    /// All counters so far.
    pub(crate) fn counted(&self) -> Vec<(String, u64)> {
        all(&self.counters).into_iter().map(|(name, count)| (name, count.load(Ordering::Relaxed))).collect()
    }

    /// All gauges as they are now.
    pub(crate) fn gauged(&self) -> Vec<(String, f64)> {
        let value = |gauge: Arc<AtomicU64>| f64::from_bits(gauge.load(Ordering::Relaxed));
        all(&self.gauges).into_iter().map(|(name, gauge)| (name, value(gauge))).collect()
    }

    /// All distributions so far.
    pub(crate) fn measured(&self) -> Vec<(String, Arc<Latencies>)> {
        all(&self.latencies)
    }
}

fn by_name<T: Default>(all: &ByName<T>, name: &str) -> Arc<T> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(all.entry(name.to_owned()).or_default())
}

fn all<T>(all: &ByName<T>) -> Vec<(String, Arc<T>)> {
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|(name, one)| (name.clone(), Arc::clone(one))).collect()
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.counter(key.name()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(by_name(&self.gauges, key.name()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.latencies(key.name()))
    }
}
