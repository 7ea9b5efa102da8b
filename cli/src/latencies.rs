//! How long things took, as far as percentiles need it.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::HistogramFn;
use serde::{Deserialize, Serialize};

/// The least time that is kept apart from none, in seconds.
const LEAST: f64 = 0.001;
/// What is counted together differs by this factor at most.
const FACTOR: f64 = 1.02;
/// Enough for 18 hours.
const COUNTS: usize = 900;

/// Times, or sizes, counted by their order of magnitude.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: Vec<AtomicU64>,
    /// Bits of their sum, a floating-point number.
    sum: AtomicU64,
}

/// The times that half, nine tenths and all but a hundredth did not exceed, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: (0..COUNTS).map(|_| AtomicU64::new(0)).collect(), sum: AtomicU64::new(0.0_f64.to_bits()) }
    }
}

impl Latencies {
    /// How many there are of each order of magnitude, from the least on.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Their sum.
    pub(crate) fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Ordering::Relaxed))
    }

    /// Which of the counts is that of a value.
    pub(crate) fn place(value: f64) -> usize {
        let steps = (value.max(LEAST) / LEAST).log(FACTOR).round() as usize;
        steps.min(COUNTS - 1)
    }

    /// None if nothing was counted.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let counts = self.counts();
        let all: u64 = counts.iter().sum();
        let percentile = |percent: u64| {
            let rank = (all * percent).div_ceil(100);
            let mut below = 0;
            let at = counts.iter().position(|count| {
                below += count;
                below >= rank
            });
            let milliseconds = 1_000.0 * LEAST * FACTOR.powi(i32::try_from(at.unwrap_or_default()).unwrap_or_default());
            (10.0 * milliseconds).round() / 10.0
        };
        (all > 0).then(|| Percentiles { p50: percentile(50), p90: percentile(90), p99: percentile(99) })
    }
}

impl HistogramFn for Latencies {
    fn record(&self, seconds: f64) {
        self.record_many(seconds, 1);
    }

    fn record_many(&self, seconds: f64, count: usize) {
        if let Some(counted) = self.counts.get(Self::place(seconds)) {
            counted.fetch_add(count as u64, Ordering::Relaxed);
        }
        let more = |sum: u64| Some((f64::from_bits(sum) + seconds * count as f64).to_bits());
        // An update that always gives a value does not fail.
        let _ = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_hundredth() {
        let latencies = Latencies::default();
        assert_eq!(latencies.percentiles(), None);
        (1..=1_000).for_each(|n| latencies.record(f64::from(n) / 100.0));
        let Percentiles { p50, p90, p99 } = latencies.percentiles().unwrap();
        for (found, milliseconds) in [(p50, 5_000.0), (p90, 9_000.0), (p99, 9_900.0)] {
            assert!((found / milliseconds - 1.0).abs() < 0.015, "{found} is not {milliseconds}");
        }
    }

    #[test]
    fn what_takes_no_time_or_all_of_it_counts() {
        let latencies = Latencies::default();
        latencies.record(0.0);
        latencies.record_many(f64::MAX, 98);
        latencies.record(-1.0);
        let Percentiles { p50, p99, .. } = latencies.percentiles().unwrap();
        assert!(p50 > 3_600_000.0 && p50 == p99);
    }
}
