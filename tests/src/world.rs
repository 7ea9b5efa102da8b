//! Time and randomness of tests.

use std::sync::{Arc, Mutex};

use fanfold::clock::{Clock, Random, Timestamp, World};

/// Tokio's time as the time of the steps.
struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000).plus(self.0.elapsed())
    }
}

/// Numbers from a seed.
struct TestRandom(Mutex<fastrand::Rng>);

impl Random for TestRandom {
    fn next(&self) -> u64 {
        self.0.lock().unwrap().u64(..)
    }
}

/// A world whose time is tokio's, and whose numbers are the same in each test.
pub fn world() -> World {
    World {
        clock: Arc::new(TestClock(tokio::time::Instant::now())),
        random: Arc::new(TestRandom(Mutex::new(fastrand::Rng::with_seed(7)))),
    }
}
