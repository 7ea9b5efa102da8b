//! Metrics for CloudWatch: after an invocation that counted or measured something, a line of the embedded metric format in the
//! log. Its only dimension is the stack, since AWS charges for each metric and combination of dimensions.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::clock::{Timestamp, World};
use fanfold::config::variables::METRICS_STACK;
use fanfold::limits::METRIC_VALUES_MAX;
use fanfold::metrics::in_seconds;
use metrics::{Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::{Map, Value, json};

use crate::variable;

/// The namespace of the metrics.
const NAMESPACE: &str = "Fanfold";

/// What was counted and measured since the last line, by metric. Clones record together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    counters: BTreeMap<String, Arc<AtomicU64>>,
    gauges: BTreeMap<String, Arc<Latest>>,
    histograms: BTreeMap<String, Arc<Values>>,
}

/// The latest value, if one was set since the last line.
#[derive(Debug, Default)]
struct Latest(Mutex<Option<f64>>);

/// Values, and how often each was measured.
#[derive(Debug, Default)]
struct Values(Mutex<Vec<(f64, usize)>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GaugeFn for Latest {
    fn increment(&self, value: f64) {
        *lock(&self.0).get_or_insert_default() += value;
    }

    fn decrement(&self, value: f64) {
        *lock(&self.0).get_or_insert_default() -= value;
    }

    fn set(&self, value: f64) {
        *lock(&self.0) = Some(value);
    }
}

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        lock(&self.0).push((value, count));
    }
}

impl Values {
    /// Takes the measured values. If there are more than a line holds, takes values at equal distances, so that percentiles
    /// stay.
    fn take(&self) -> Vec<f64> {
        let mut values = std::mem::take(&mut *lock(&self.0));
        values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let all: usize = values.iter().map(|(_, count)| count).sum();
        let kept = all.min(METRIC_VALUES_MAX);
        let (mut taken, mut seen) = (Vec::with_capacity(kept), 0);
        for (value, count) in values {
            seen += count;
            while taken.len() < kept && (2 * taken.len() + 1) * all < 2 * seen * kept {
                taken.push(value);
            }
        }
        taken
    }
}

impl Metrics {
    /// Records what this process counts and measures from now on, unless the stack writes no metrics.
    pub(crate) fn install() -> Self {
        let recorded = Self::default();
        if variable(METRICS_STACK).is_some() {
            // Fails only if another recorder is installed; then these metrics are missing, and nothing else is affected.
            let _ = metrics::set_global_recorder(recorded.clone());
        }
        recorded
    }

    /// Writes what was recorded, if there is anything.
    pub(crate) fn write(&self) {
        let level = variable("AWS_LAMBDA_LOG_LEVEL").unwrap_or_else(|| "INFO".to_owned());
        let about =
            About { stack: &variable(METRICS_STACK).unwrap_or_default(), function: &crate::function(), level: &level };
        if let Some(line) = self.line(World::system().now(), &about) {
            // A log that cannot be written is no reason to fail.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// Takes what was recorded.
    fn take(&self) -> Map<String, Value> {
        let recorded = lock(&self.0);
        let mut taken = Map::new();
        for (name, count) in &recorded.counters {
            let count = count.swap(0, Ordering::Relaxed);
            taken.extend((count > 0).then(|| (name.clone(), json!(count))));
        }
        for (name, latest) in &recorded.gauges {
            taken.extend(lock(&latest.0).take().map(|value| (name.clone(), json!(value))));
        }
        for (name, values) in &recorded.histograms {
            let values = values.take();
            taken.extend((!values.is_empty()).then(|| (name.clone(), json!(values))));
        }
        taken
    }

    fn line(&self, now: Timestamp, about: &About<'_>) -> Option<Value> {
        let recorded = self.take();
        if recorded.is_empty() {
            return None;
        }
        let unit = |name: &str| if in_seconds(name) { "Seconds" } else { "Count" };
        let metrics: Vec<Value> = recorded.keys().map(|name| json!({"Name": name, "Unit": unit(name)})).collect();
        let directive = json!({"Namespace": NAMESPACE, "Dimensions": [["stack"]], "Metrics": metrics});
        // Lambda drops lines below the function's level of logging. A line that has no level, or no time, has the level INFO.
        let mut line = json!({
            "_aws": {"Timestamp": now.0, "CloudWatchMetrics": [directive]}, "timestamp": now.rfc3339(),
            "level": about.level, "stack": about.stack, "function": about.function,
        });
        if let Some(line) = line.as_object_mut() {
            line.extend(recorded);
        }
        Some(line)
    }
}

/// What a line says beside its metrics.
#[derive(Clone, Copy, Debug)]
struct About<'a> {
    stack: &'a str,
    function: &'a str,
    /// The lowest level that the function logs.
    level: &'a str,
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(lock(&self.0).counters.entry(key.name().to_owned()).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(lock(&self.0).gauges.entry(key.name().to_owned()).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(lock(&self.0).histograms.entry(key.name().to_owned()).or_default()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::metrics::{ANSWERED_TO_ACKED, BATCH_SIZE, FINDINGS, OLDEST_WAITING, RETRIES, TASKS_REGISTERED};

    const ABOUT: About<'static> = About { stack: "shop", function: "f", level: "WARN" };

    fn metadata() -> Metadata<'static> {
        Metadata::new("", metrics::Level::INFO, None)
    }

    fn histogram(metrics: &Metrics, name: &'static str) -> Histogram {
        metrics.register_histogram(&Key::from_static_name(name), &metadata())
    }

    #[test]
    fn an_invocation_that_counted_or_measured_something_writes_one_line() {
        let metrics = Metrics::default();
        let counter = |name| metrics.register_counter(&Key::from_static_name(name), &metadata());
        assert_eq!(metrics.line(Timestamp(5), &ABOUT), None);
        let (waited, retries) = (histogram(&metrics, ANSWERED_TO_ACKED), counter(RETRIES));
        assert_eq!(metrics.line(Timestamp(5), &ABOUT), None, "what was never counted is no metric");
        waited.record(0.25);
        waited.record_many(0.5, 2);
        histogram(&metrics, BATCH_SIZE).record(40.0);
        counter(TASKS_REGISTERED).increment(3);
        counter(TASKS_REGISTERED).increment(4);
        metrics.register_gauge(&Key::from_static_name(OLDEST_WAITING), &metadata()).set(90.5);
        let unit = |name, unit| json!({"Name": name, "Unit": unit});
        let metric = [
            unit(ANSWERED_TO_ACKED, "Seconds"),
            unit(BATCH_SIZE, "Count"),
            unit(OLDEST_WAITING, "Seconds"),
            unit(TASKS_REGISTERED, "Count"),
        ];
        let directive = json!({"Namespace": "Fanfold", "Dimensions": [["stack"]], "Metrics": metric});
        let line = json!({
            "_aws": {"Timestamp": 5, "CloudWatchMetrics": [directive]}, "stack": "shop", "function": "f",
            "level": "WARN", "timestamp": "1970-01-01T00:00:00.005Z", TASKS_REGISTERED: 7, OLDEST_WAITING: 90.5,
            ANSWERED_TO_ACKED: [0.25, 0.5, 0.5], BATCH_SIZE: [40.0],
        });
        let mut written = metrics.line(Timestamp(5), &ABOUT).unwrap();
        let metrics_of = &mut written["_aws"]["CloudWatchMetrics"][0]["Metrics"];
        metrics_of.as_array_mut().unwrap().sort_by_key(|metric| metric["Name"].to_string());
        assert_eq!(written, line);
        assert_eq!(metrics.line(Timestamp(6), &ABOUT), None, "it was written");
        retries.increment(1);
        assert_eq!(metrics.line(Timestamp(7), &ABOUT).unwrap()[RETRIES], 1);
    }

    #[test]
    fn a_gauge_that_is_zero_is_written() {
        let metrics = Metrics::default();
        metrics.register_gauge(&Key::from_static_name(FINDINGS), &metadata()).set(0.0);
        assert_eq!(metrics.line(Timestamp(5), &ABOUT).unwrap()[FINDINGS], 0.0);
    }

    #[test]
    fn percentiles_of_many_values_stay() {
        let values = Values::default();
        (0..10_000).rev().for_each(|n| values.record(f64::from(n)));
        values.record_many(1e6, 10_000);
        let taken = values.take();
        assert_eq!((taken.len(), taken[0], taken[25], taken[49], taken[50]), (100, 100.0, 5_100.0, 9_900.0, 1e6));
        assert!(values.take().is_empty());
    }

    #[test]
    fn all_metrics_fit_one_line() {
        // The embedded metric format takes no more in one directive.
        assert!(fanfold::metrics::ALL.len() <= 100);
    }
}
