//! What must hold holds.

use fanfold_simulation::SeedReport;

use crate::runs;

/// The trace of a run that failed, and how to see it again.
fn report(outcome: &SeedReport) -> String {
    let seed = outcome.seed;
    let (trace, violations) = (outcome.trace.join("\n"), outcome.violations.join("\n"));
    format!("{trace}\n\nseed {seed}:\n{violations}\ncargo run --release -p fanfold-simulation -- --seed {seed} --trace")
}

#[test]
fn what_must_hold_holds() {
    let runs = runs();
    let seeds: Vec<u64> = runs.failed.iter().map(|outcome| outcome.seed).collect();
    assert!(seeds.is_empty(), "{}\nfailed of {}: {seeds:?}", report(&runs.failed[0]), runs.count);
}

/// Nothing is shown by runs in which nothing goes wrong.
#[test]
fn every_kind_of_fault_is_injected() {
    let faults = &runs().stats.faults;
    for kind in [
        "500 after it was applied",
        "ThrottlingException",
        "InternalServerError",
        "answer lost",
        "request lost",
        "request applied late",
        "request slow",
        "answer slow",
        "crash before",
        "crash after",
        "crash before a call",
        "crash after a call",
        "entries of an index that lagged",
        "records read as they were before",
        "keys left unread",
        "statement refused",
        "requests of a kind that is out",
        "entry of a send refused",
        "transaction cancelled",
        "write met a transaction",
        "messages again",
        "messages late",
        "messages lost",
        "restarts of everything",
        "timeouts of invocations",
    ] {
        assert!(faults.get(kind).is_some_and(|count| *count > 0), "no `{kind}` among {faults:?}");
    }
}
