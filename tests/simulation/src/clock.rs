//! A worker's own world: its clock runs with tokio's paused time but may be wrong; its random numbers follow from the seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fanfold::clock::{Clock, Random, Timestamp, World};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::small::Gate;

/// When a run begins, in epoch milliseconds.
const BEGIN: i64 = 1_800_000_000_000;

/// A clock that is wrong by some milliseconds.
#[derive(Debug)]
pub(crate) struct SkewedClock {
    start: Instant,
    skew: AtomicI64,
    gate: Option<Arc<Gate>>,
}

impl SkewedClock {
    pub(crate) fn new(start: Instant, skew: i64) -> Self {
        Self { start, skew: AtomicI64::new(skew), gate: None }
    }

    /// A clock that stands still while requests wait at a gate.
    pub(crate) fn at(self, gate: Option<Arc<Gate>>) -> Self {
        Self { gate, ..self }
    }

    /// The clock is set anew.
    pub(crate) fn set(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let stands = self.gate.as_ref().is_some_and(|gate| gate.closed());
        let passed = if stands { Duration::ZERO } else { self.start.elapsed() };
        let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        let now = BEGIN.saturating_add(passed).saturating_add(self.skew.load(Ordering::Relaxed));
        Timestamp(u64::try_from(now).unwrap_or(0))
    }
}

/// What a clock that is right says now.
pub(crate) fn right(start: Instant) -> Timestamp {
    SkewedClock::new(start, 0).now()
}

impl Random for Dice {
    fn next(&self) -> u64 {
        self.any()
    }
}

/// The world of one worker.
pub(crate) fn world(clock: Arc<SkewedClock>, seed: u64, name: &str) -> World {
    World { clock, random: Arc::new(Dice::new(seed, name)) }
}
