//! Some seeds, and whether a seed always runs the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fanfold_simulation::{Outcome, digest, run};

/// Seeds run unless `SIMULATION_SEEDS` says otherwise.
const SEEDS: u64 = 40;

fn seeds() -> u64 {
    std::env::var("SIMULATION_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("SIMULATION_SEEDS is a number"))
}

/// The trace of a run that failed, and how to see it again.
fn report(outcome: &Outcome) -> String {
    let seed = outcome.seed;
    let (trace, violations) = (outcome.trace.join("\n"), outcome.violations.join("\n"));
    format!("{trace}\n\nseed {seed}:\n{violations}\ncargo run --release -p fanfold-simulation -- --seed {seed} --trace")
}

#[test]
fn what_must_hold_holds() {
    let (next, failed) = (AtomicU64::new(1), Mutex::new(Vec::new()));
    let end = seeds();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > end {
                        return;
                    }
                    let outcome = run(seed).unwrap();
                    if !outcome.violations.is_empty() {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let seeds: Vec<u64> = failed.iter().map(|outcome| outcome.seed).collect();
    assert!(failed.is_empty(), "{}\nfailed of {end}: {seeds:?}", report(&failed[0]));
}

#[test]
fn a_seed_always_runs_the_same() {
    for seed in 1..=4 {
        let first = run(seed).unwrap();
        let second = run(seed).unwrap();
        let differs = first.trace.iter().zip(&second.trace).find(|(a, b)| a != b);
        assert_eq!(first.trace, second.trace, "seed {seed}, first in {differs:?}");
        let other = Command::new(env!("CARGO_BIN_EXE_fanfold-simulation"))
            .args(["--digest", "--seed", &seed.to_string()])
            .output()
            .unwrap();
        let other = String::from_utf8(other.stdout).unwrap();
        assert_eq!(other.trim(), format!("{:016x}", digest(&first.trace)), "seed {seed} in another process");
    }
}

#[test]
fn another_seed_runs_otherwise() {
    assert_ne!(run(1).unwrap().trace, run(2).unwrap().trace);
}
