//! The example: every manifest line against every order; with a part of its data, and killed again and again with all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::folder::{Folder, stderr, summary};

#[path = "../../../tests/programs.rs"]
mod programs;

/// Orders of a part: enough for refusals, retries and several trucks of one depot.
const ORDERS: usize = 5_000;

/// Builds another program of the workspace, and returns where it is.
pub(crate) fn build(program: &str) -> PathBuf {
    let own = env!("CARGO_BIN_EXE_fanfold");
    programs::build(own, &[program]);
    Path::new(own).with_file_name(program)
}

/// The rows of a CSV file as maps.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(file).unwrap().deserialize().map(Result::unwrap).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The example in a folder of its own.
pub(crate) fn example() -> Folder {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/parcels");
    let folder = Folder::new();
    for file in ["policy.yaml", "orders.csv"] {
        std::fs::copy(example.join(file), folder.path().join(file)).unwrap();
    }
    let server = serde_json::to_string(&[build("parcels-api")]).unwrap();
    folder.write("run.yaml", format!("start: {server}\n"));
    folder
}

/// Checks that each of the first `count` orders is on one truck or reported as failed, and that the summary says so.
fn assert_each_order_once(folder: &Folder, summary: &Value, count: usize) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let orders: BTreeMap<String, BTreeMap<String, String>> = rows(&folder.path().join("orders.csv"))
        .into_iter()
        .take(count)
        .map(|row| (row["order"].clone(), row))
        .collect();
    let failed: BTreeSet<String> =
        summary["failed_tasks"].as_array().unwrap().iter().map(|task| text(&task["key"])).collect();
    let mut loaded = BTreeSet::new();
    for manifest in files(&folder.path().join("manifests").join(text(&summary["fanout"]))) {
        let lines = rows(&manifest);
        let depots: BTreeSet<(&String, &String)> = lines.iter().map(|line| (&line["state"], &line["depot"])).collect();
        assert_eq!(depots.len(), 1, "{} has one target", manifest.display());
        assert!(lines.len() <= 60, "{} has {} parcels", manifest.display(), lines.len());
        for line in &lines {
            let order = &orders[&line["order"]];
            for (column, value) in line.iter().filter(|(column, _)| *column != "truck") {
                assert_eq!(value, &order[column], "{column} of {}", line["order"]);
            }
            assert!(loaded.insert(line["order"].clone()), "{} is on two trucks", line["order"]);
        }
    }
    assert!(!failed.is_empty() && loaded.is_disjoint(&failed));
    assert_eq!(loaded.union(&failed).cloned().collect::<BTreeSet<_>>(), orders.keys().cloned().collect());
    let counts = ["total", "succeeded", "failed", "notices"].map(|field| summary[field].as_u64().unwrap());
    assert_eq!(counts, [count as u64, loaded.len() as u64, failed.len() as u64, 1]);
}

#[test]
fn every_order_is_on_one_truck_or_reported() {
    let folder = example();
    let summary = folder.summary(&["--limit", &ORDERS.to_string()]);
    assert_each_order_once(&folder, &summary, ORDERS);
    assert!(summary["retries"].as_u64().unwrap() > 0, "the example's batch API is busy now and then");
}

/// A number that the environment may give.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{variable} is `{value}`")))
}

/// Kills at random moments, `KILLS` of them, of as many runs as that takes; each run that comes to its end is checked.
#[test]
#[ignore = "kills the example a hundred times, which takes minutes: `just kills`"]
#[allow(clippy::disallowed_methods, reason = "each run kills at other moments, and says how to repeat them")]
fn killed_at_random_moments_it_loses_and_doubles_nothing() {
    let (kills, seed) = (number("KILLS", 100), number("KILLS_SEED", fastrand::u64(..)));
    eprintln!("{kills} kills, KILLS_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut killed, mut runs, mut folder) = (0, 0, example());
    loop {
        let mut child = folder.start();
        if killed < kills {
            std::thread::sleep(Duration::from_millis(random.u64(10..1_500)));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                continue;
            }
        }
        let output = child.wait_with_output().unwrap();
        eprintln!("after {killed} kills: {}", stderr(&output));
        let summary = summary(&output);
        assert_each_order_once(&folder, &summary, rows(&folder.path().join("orders.csv")).len());
        runs += 1;
        eprintln!(
            "run {runs} ended, {killed} kills so far: {} loaded, {} reported",
            summary["succeeded"], summary["failed"]
        );
        if killed == kills {
            return;
        }
        folder = example();
    }
}
