//! docs/RELIABILITY.md names the tests that hold its promises: they must be there.

use std::path::{Path, PathBuf};

const DOCUMENT: &str = include_str!("../../../docs/RELIABILITY.md");

/// Folders whose tests are named.
const FOLDERS: [&str; 3] = ["tests/tests/it", "cli/tests/it", "infra/tests/it"];

fn find(file: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    FOLDERS.iter().map(|folder| root.join(folder).join(file)).find(|path| path.is_file())
}

/// What is written in the document as code.
fn code() -> impl Iterator<Item = &'static str> {
    DOCUMENT.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_that_is_named_exists() {
    let named: Vec<(&str, &str)> = code().filter_map(|code| code.split_once(".rs::")).collect();
    assert!(named.len() > 40, "{}", named.len());
    for (file, test) in named {
        let file = format!("{file}.rs");
        let path = find(&file).unwrap_or_else(|| panic!("there is no {file}"));
        let text = std::fs::read_to_string(path).unwrap();
        let is_there = [format!("fn {test}("), format!("    {test}: ")].iter().any(|line| text.contains(line));
        assert!(is_there, "{file} has no test {test}");
    }
    for file in code().filter(|code| code.ends_with(".rs") && code.contains('/') && !code.starts_with("tests/")) {
        assert!(find(file).is_some(), "there is no {file}");
    }
}

/// Every row of the promises names what holds it.
#[test]
fn no_promise_stands_alone() {
    let rows = DOCUMENT.split("## Promises").nth(1).unwrap().split("\n## ").next().unwrap().lines();
    let rows: Vec<&str> = rows.filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() >= 15);
    for row in rows {
        let held_by = row.split(" | ").nth(2).unwrap();
        assert!(held_by.contains(".rs"), "{row}");
    }
}
