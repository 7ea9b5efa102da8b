//! Some seeds: what must hold holds, a seed always runs the same, and the steps may do what they do and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod permissions;
mod same;
mod seeds;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use fanfold_simulation::{SeedReport, Stats, run};

/// Seeds run unless `SIMULATION_SEEDS` says otherwise.
const SEEDS: u64 = 40;

/// What the seeds came to.
#[derive(Default)]
struct Runs {
    count: u64,
    stats: Stats,
    failed: Vec<SeedReport>,
}

/// Runs the seeds, once for all tests.
fn runs() -> &'static Runs {
    static RUNS: OnceLock<Runs> = OnceLock::new();
    RUNS.get_or_init(|| {
        let count = std::env::var("SIMULATION_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("SIMULATION_SEEDS"));
        let (next, runs) = (AtomicU64::new(1), Mutex::new(Runs { count, ..Runs::default() }));
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed > count {
                            return;
                        }
                        let outcome = run(seed).unwrap();
                        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
                        runs.stats.merge(&outcome.stats);
                        if !outcome.violations.is_empty() {
                            runs.failed.push(outcome);
                        }
                    }
                });
            }
        });
        runs.into_inner().unwrap_or_else(PoisonError::into_inner)
    })
}
