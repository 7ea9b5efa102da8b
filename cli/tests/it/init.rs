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
        let run = Command::new(env!("CARGO_BIN_EXE_fanfold")).args(["run", folder, "--json"]).output().unwrap();
        let summary = summary(&run);
        assert_eq!((&summary["total"], &summary["failed"]), (&12.into(), &failed.into()), "{language}: {summary}");
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
