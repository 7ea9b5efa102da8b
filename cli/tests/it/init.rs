//! `fanfold init`: a folder that runs as it is.

use std::process::{Command, Output};

use crate::folder::{Folder, stderr, summary};

fn init(folder: &str, language: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fanfold")).args(["init", folder, "--language", language]).output().unwrap()
}

#[test]
fn a_new_folder_runs_in_every_language() {
    let place = Folder::new();
    for (language, failed) in [("python", 1), ("javascript", 1), ("shell", 0)] {
        let folder = place.path().join(format!("new/{language}"));
        let folder = folder.to_str().unwrap();
        let made = init(folder, language);
        assert!(
            made.status.success() && stderr(&made).contains(&format!("Next: fanfold run {folder}")),
            "{}",
            stderr(&made)
        );
        // And once more: what the first run wrote is no file of tasks.
        for _ in 0..2 {
            let run = Command::new(env!("CARGO_BIN_EXE_fanfold")).args(["run", folder, "--json"]).output().unwrap();
            let summary = summary(&run);
            assert_eq!((&summary["total"], &summary["failed"]), (&12.into(), &failed.into()), "{language}: {summary}");
        }
    }
}

#[test]
fn every_field_that_is_commented_out_can_be_used() {
    let place = Folder::new();
    let folder = place.path().join("new").display().to_string();
    assert!(init(&folder, "shell").status.success());
    let policy = std::fs::read_to_string(place.path().join("new/policy.yaml")).unwrap();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let with_fields = policy.lines().map(|line| match line.strip_prefix("# ") {
        Some(field) if field.split_once(": ").is_some_and(|(name, _)| is_name(name)) => format!("{field}\n"),
        _ => format!("{line}\n"),
    });
    let with_fields: String = with_fields.collect();
    assert!(["max_calls", "kind_rate", "weight"].iter().all(|name| with_fields.contains(&format!("\n{name}: "))));
    place.write("new/policy.yaml", with_fields);
    let checked = Command::new(env!("CARGO_BIN_EXE_fanfold")).args(["run", &folder, "--check"]).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
}

#[test]
fn with_json_it_prints_what_it_made() {
    let place = Folder::new();
    let folder = place.path().join("new");
    let folder = folder.to_str().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fanfold")).args(["init", folder, "--json"]).output().unwrap();
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["folder"], folder);
    let mut files: Vec<&str> = made["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, ["batch_api.py", "orders.csv", "policy.yaml", "run.yaml"]);
    assert!(files.iter().all(|name| place.path().join("new").join(name).is_file()));
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
}

#[test]
fn a_file_is_no_folder() {
    let folder = Folder::new();
    folder.write("r.csv", "mine");
    for name in ["r.csv", "r.csv/orders"] {
        let output = init(folder.path().join(name).to_str().unwrap(), "shell");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("/r.csv: is a file, a folder is expected"), "{}", stderr(&output));
    }
}

#[test]
fn no_file_is_overwritten() {
    let folder = Folder::new();
    folder.write("orders.csv", "mine");
    let output = init(folder.path().to_str().unwrap(), "shell");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("orders.csv: exists already"), "{}", stderr(&output));
    assert!(!folder.path().join("policy.yaml").exists());
    assert_eq!(std::fs::read_to_string(folder.path().join("orders.csv")).unwrap(), "mine");
}
