//! The folder that the README shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/letters")
}

#[test]
fn the_readme_shows_the_folder_as_it_is() {
    let readme = include_str!("../../../README.md");
    for file in std::fs::read_dir(example()).unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(readme.contains(&format!("\n{text}```")), "{} is not shown", file.display());
    }
}

/// Where there is no Python there is nothing to try.
#[test]
fn the_folder_runs() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_fanfold")).arg("run").arg(example()).arg("--json").output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&5.into(), &1.into()), "{summary}");
    assert!(summary["calls"].as_u64() < Some(6), "{summary}");
}
