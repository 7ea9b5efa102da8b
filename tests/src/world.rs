//! Time and randomness of tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::clock::{Clock, Random, Timestamp, World};

/// Tokio's time as the time of the steps, and what was skipped of it.
#[derive(Debug)]
pub struct TestClock {
    start: tokio::time::Instant,
    skipped: Mutex<Duration>,
}

impl TestClock {
    /// Lets time pass without sleeping through it: the engine's queues wake up in each second of tokio's, so weeks take long.
    pub fn skip(&self, time: Duration) {
        *self.skipped.lock().unwrap() += time;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000).plus(self.start.elapsed() + *self.skipped.lock().unwrap())
    }
}

/// Numbers from a seed.
struct TestRandom(Mutex<fastrand::Rng>);

impl Random for TestRandom {
    fn next(&self) -> u64 {
        self.0.lock().unwrap().u64(..)
    }
}

/// A world whose time is tokio's, and whose numbers are the same in each test; and its clock.
pub fn world() -> (World, Arc<TestClock>) {
    // The SDK draws jitter and tokens from the thread's generator.
    fastrand::seed(7);
    let clock = Arc::new(TestClock { start: tokio::time::Instant::now(), skipped: Mutex::default() });
    let random = Arc::new(TestRandom(Mutex::new(fastrand::Rng::with_seed(7))));
    (World { clock: Arc::<TestClock>::clone(&clock), random }, clock)
}
