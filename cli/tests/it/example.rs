//! The example, with a part of its data: every manifest line against every order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::folder::Folder;

/// Orders of the part: enough for refusals, retries and several trucks of one depot.
const ORDERS: usize = 5_000;

/// Builds the example's batch API, as `cargo run` would, and answers where it is.
fn build_batch_api() -> PathBuf {
    let built = Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "parcels-api"]).status().unwrap();
    assert!(built.success());
    Path::new(env!("CARGO_BIN_EXE_fanfold")).with_file_name("parcels-api")
}

/// The rows of a CSV file as maps.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(file).unwrap().deserialize().map(Result::unwrap).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_order_is_on_one_truck_or_reported() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/parcels");
    let folder = Folder::new();
    for file in ["policy.yaml", "orders.csv"] {
        std::fs::copy(example.join(file), folder.path().join(file)).unwrap();
    }
    let server = serde_json::to_string(&[build_batch_api()]).unwrap();
    folder.write("run.yaml", format!("start: {server}\n"));
    let summary = folder.summary(&["--limit", &ORDERS.to_string()]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    let orders: BTreeMap<String, BTreeMap<String, String>> = rows(&folder.path().join("orders.csv"))
        .into_iter()
        .take(ORDERS)
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
    assert_eq!(counts, [ORDERS as u64, loaded.len() as u64, failed.len() as u64, 1]);
    assert!(summary["retries"].as_u64().unwrap() > 0, "the example's batch API is busy now and then");
}
