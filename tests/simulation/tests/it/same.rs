//! A seed always runs the same.

use std::process::Command;

use fanfold_simulation::{digest, run};

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
