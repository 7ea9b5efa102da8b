//! `fanfold plan`: what it measures is what a run costs.

use std::process::{Command, Output};

use serde_json::Value;

use crate::folder::stderr;

fn plan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fanfold")).arg("plan").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = plan(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_plan_costs_what_was_measured() {
    let plan = json(&["--items", "1000000", "--targets", "500", "--rate", "100"]);
    let number = |pointer: &str| plan.pointer(pointer).unwrap().as_f64().unwrap();
    assert_eq!((number("/calls"), number("/measured/sample")), (10_000.0, 20_000.0));
    // A task is written once, and bundles and batches share the rest.
    assert!((1.0..1.3).contains(&number("/measured/write_units")), "{plan}");
    let writes = number("/measured/write_units") * 1e6 * 0.625e-6;
    assert!((number("/dollars/dynamodb_writes") - writes).abs() < 0.001, "{plan}");
    let first = &plan["limits"][0];
    assert_eq!((&first["what"], first["seconds"].as_f64()), (&"the rate".into(), Some(10_000.0)));
    let keyed = json(&["--items", "1000000", "--targets", "500", "--keys"]);
    let more = keyed["measured"]["write_units"].as_f64().unwrap() - number("/measured/write_units");
    assert!((0.99..1.1).contains(&more), "a key takes a unit: {more}");
}

#[test]
fn a_plan_can_be_read() {
    let output = plan(&["--items", "1000", "--targets", "1000"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in
        ["1,000 items, 1,000 targets, up to 100 per call: 1,000 calls", "one call per item", "a distributed map"]
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(text.contains("The first bottleneck is the batch API"), "{text}");
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, [""; 0], "a terminal wraps them");
}

#[test]
fn what_cannot_be_planned_is_named() {
    for (arguments, part) in [
        (&["--items", "5", "--targets", "9"][..], "--targets 9: at most one per item is expected, that is 5"),
        (&["--items", "0"], "--items"),
        (&["--items", "5", "--batch", "10001"], "--batch"),
        (&["--items", "5", "--call", "soon"], "--call"),
        (&["--items", "5", "--call", "2h"], "at most 1m 30s is allowed, the longest `timeout` of a policy"),
        (&["--items", "5", "--call", "91s"], "answers later, which `answers_within` of a policy allows"),
    ] {
        let output = plan(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}
