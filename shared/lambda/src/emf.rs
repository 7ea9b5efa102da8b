//! Times as metrics of CloudWatch: after an invocation that measured any, a line of the embedded metric format in the log.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::clock::{Timestamp, World};
use fanfold::limits::METRIC_VALUES_MAX;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::{Value, json};

/// Times since the last line, by metric. Counters are not kept: each would be a metric that AWS charges for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Arc<Mutex<BTreeMap<String, Arc<Values>>>>);

/// Values, and how often each was measured.
#[derive(Debug, Default)]
struct Values(Mutex<Vec<(f64, usize)>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Times {
    /// Records the measurements of this process from now on.
    pub(crate) fn install() -> Self {
        let times = Self::default();
        // Fails only if another recorder is installed; then these metrics are missing, and nothing else is affected.
        let _ = metrics::set_global_recorder(times.clone());
        times
    }

    /// Writes the values that were measured, if there are any.
    pub(crate) fn write(&self) {
        if let Some(line) = self.line(World::system().now(), &crate::function()) {
            // A log that cannot be written is no reason to fail.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    fn line(&self, now: Timestamp, function: &str) -> Option<Value> {
        let values = lock(&self.0).iter().map(|(name, values)| (name.clone(), values.take())).collect::<Vec<_>>();
        let values: Vec<_> = values.into_iter().filter(|(_, values)| !values.is_empty()).collect();
        let metrics: Vec<Value> = values.iter().map(|(name, _)| json!({"Name": name, "Unit": "Seconds"})).collect();
        let about = json!({"Namespace": "Fanfold", "Dimensions": [["function"]], "Metrics": metrics});
        let mut line = json!({
            "_aws": {"Timestamp": now.0, "CloudWatchMetrics": [about]}, "function": function,
        });
        for (name, values) in &values {
            line[name] = json!(values);
        }
        (!values.is_empty()).then_some(line)
    }
}

impl Recorder for Times {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(lock(&self.0).entry(key.name().to_owned()).or_default()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::metrics::{ANSWERED_TO_ACKED, REGISTERED_TO_CALLED};

    fn measured(times: &Times, name: &'static str) -> Histogram {
        times.register_histogram(&Key::from_static_name(name), &Metadata::new("", metrics::Level::INFO, None))
    }

    #[test]
    fn an_invocation_that_measured_something_writes_one_line() {
        let times = Times::default();
        assert_eq!(times.line(Timestamp(5), "f"), None);
        let waited = measured(&times, REGISTERED_TO_CALLED);
        assert_eq!(times.line(Timestamp(5), "f"), None);
        waited.record(0.25);
        waited.record_many(0.5, 2);
        measured(&times, ANSWERED_TO_ACKED).record(2.0);
        let metrics = [ANSWERED_TO_ACKED, REGISTERED_TO_CALLED].map(|name| json!({"Name": name, "Unit": "Seconds"}));
        let about = json!({"Namespace": "Fanfold", "Dimensions": [["function"]], "Metrics": metrics});
        let line = json!({
            "_aws": {"Timestamp": 5, "CloudWatchMetrics": [about]}, "function": "f",
            REGISTERED_TO_CALLED: [0.25, 0.5, 0.5], ANSWERED_TO_ACKED: [2.0],
        });
        assert_eq!(times.line(Timestamp(5), "f"), Some(line));
        assert_eq!(times.line(Timestamp(6), "f"), None, "it was written");
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
}
