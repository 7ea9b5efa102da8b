//! The command of the benches works in its smallest size, and docs/BENCHMARKS.md is what it writes.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

#[path = "../../tests/programs.rs"]
mod programs;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The command; none where there is no Python.
fn run(arguments: &[&str]) -> Option<()> {
    Command::new("python3").arg("--version").output().ok()?;
    let output = Command::new("python3").arg(root().join("benches/run.py")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn the_committed_page_is_the_written_one() {
    let written = TempDir::new().unwrap();
    if run(&["--render", "--docs", written.path().to_str().unwrap()]).is_none() {
        return;
    }
    let charts = std::fs::read_dir(written.path().join("benchmarks")).unwrap();
    let charts = charts.map(|chart| PathBuf::from("benchmarks").join(chart.unwrap().file_name()));
    for file in charts.chain([PathBuf::from("BENCHMARKS.md")]) {
        let (committed, written) = (text(&root().join("docs").join(&file)), text(&written.path().join(&file)));
        assert!(committed == written, "docs/{} is not what benches/run.py --render writes", file.display());
    }
}

/// Peers are not installed for this.
#[test]
fn the_smallest_size_is_measured_and_exact() {
    let own = env!("CARGO_BIN_EXE_fanfold-benches");
    programs::build(own, &["fanfold", "parcels-api", "fanfold-elect", "empty-function"]);
    let binaries = Path::new(own).parent().unwrap();
    let written = TempDir::new().unwrap();
    let (results, docs) = (written.path().join("results"), written.path().join("docs"));
    let places = [binaries, &results, &docs].map(|place| place.to_str().unwrap());
    let arguments = ["--smallest", "--binaries", places[0], "--results", places[1], "--docs", places[2]];
    if run(&arguments).is_none() {
        return;
    }
    let page = text(&docs.join("BENCHMARKS.md"));
    for section in [
        "The example",
        "One lane",
        "Acks",
        "From ten",
        "Latency",
        "Windows",
        "Functions",
        "Beside simpler",
        "Beside peers",
    ] {
        assert!(page.contains(&format!("\n## {section}")), "there is no section {section}:\n{page}");
    }
    assert!(!page.contains("| NO |"), "counts are not exact:\n{page}");
}
