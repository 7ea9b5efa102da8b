//! The example that gathers reports from three services, with a part of its customers: it checks each report by itself.

use std::path::Path;
use std::process::Command;

/// Runs the example; what it said.
fn run(folder: &Path, more: &[&str]) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/reports/run.py");
    let arguments = ["--fanfold", env!("CARGO_BIN_EXE_fanfold"), "--customers", "450", "--folder"];
    let run = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(example)
        .args(arguments)
        .arg(folder)
        .args(more)
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{said}{errors}");
    said.into_owned()
}

#[test]
fn every_customer_has_a_report_or_an_error_and_corrections_end_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let pages = || std::fs::read_dir(folder.path().join("html")).unwrap().count();
    let right = "Every customer has a report that is right, or an error.\n";
    let first = run(folder.path(), &[]);
    for line in [
        "450 reports: 447 succeeded, 3 failed",
        "transactions    450 in    3 calls",
        "C0101 has none: invoices: C0101 is locked, say who it is `for` (locked)",
        "C0213 has none: transactions: transaction 4: the amount `12,5O` is not a number (bad_amount)",
        "C0407 has none: orders: there is no record C0407 (no_record)",
    ] {
        assert!(first.contains(line), "{line}: {first}");
    }
    assert!(first.ends_with(right) && pages() == 447, "{first}");
    let corrected = run(folder.path(), &["--correct"]);
    for line in
        ["3 reports are made again, 0 of them failed", "transactions      1 in    1 call\n", "450 of 450 reports"]
    {
        assert!(corrected.contains(line), "{line}: {corrected}");
    }
    assert!(corrected.ends_with(right) && pages() == 450, "{corrected}");
    // Its content has all parts, the corrected one included.
    std::fs::remove_file(folder.path().join("html/C0213.html")).unwrap();
    let again = run(folder.path(), &["--print-again", "C0213"]);
    assert_eq!(again, "C0213: succeeded\n0 calls of the three services\n");
    assert_eq!(pages(), 450);
}
