//! `fanfold tasks register`, as scripts and people use it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::stack::{Stack, code};
use crate::folder::stderr;

/// The documents that a command printed, one per line.
#[track_caller]
fn documents(output: &std::process::Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row(n: usize) -> String {
    json!({"ref": n, "shop": "a"}).to_string() + "\n"
}

fn ids(documents: &[Value]) -> Vec<&str> {
    documents.iter().filter_map(|document| document["id"].as_str()).collect()
}

/// The counts of a summary: registered, known, duplicates, refused.
fn summary(documents: &[Value]) -> [u64; 4] {
    let summary = &documents.last().unwrap()["summary"];
    ["registered", "known", "duplicates", "refused"].map(|name| summary[name].as_u64().unwrap())
}

const FROM_INPUT: [&str; 5] = ["tasks", "register", "-", "--kind", "row"];

#[test]
fn rows_are_registered_whatever_their_form() {
    let stack = Stack::start();
    stack.folder.write("rows.csv", "ref,shop\nR-1,a\nR-2,b\n");
    stack.folder.write("rows.jsonl", r#"{"kind": "row", "content": {"ref": "R-3", "shop": "a"}}"#);
    let file = |name: &str| stack.folder.path().join(name).display().to_string();
    assert_eq!(stack.ok(&["tasks", "register", &file("rows.csv"), "--kind", "row"]), "registered            2");
    assert_eq!(stack.ok(&["tasks", "register", &file("rows.jsonl")]), "registered            1");
    let piped =
        stack.fed(&[&FROM_INPUT[..], &["--format", "csv", "--json", "--each"]].concat(), "ref;shop\nR-4;a\nR-1;a\n");
    let shown = documents(&piped);
    assert_eq!((shown[0]["line"].clone(), summary(&shown)), (json!(2), [1, 0, 1, 0]), "{}", stderr(&piped));
    let task = stack.server.get(&format!("/tasks/{}", ids(&shown)[0])).1;
    assert_eq!(task["content"], json!({"ref": "R-4", "shop": "a"}));
}

#[test]
fn bad_rows_are_shown_by_their_lines_and_the_others_are_registered() {
    let stack = Stack::start();
    let input = format!("{}nonsense\n\n{{\"ref\": 1}}\n{}", row(0), row(1));
    let output = stack.fed(&FROM_INPUT, &input);
    assert_eq!(code(&output), 3);
    let shown = stderr(&output);
    assert!(
        shown.contains("standard input:2: is not JSON") && shown.contains("standard input:4: `target`: "),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "registered            2\nrefused               2\n");
    let tasks = r#"{"kind": "none", "content": 1}
{"kind": "row"}
{"kind": "row", "content": {"ref": 9, "shop": "a"}, "id": "x"}"#;
    let output = stack.fed(&["tasks", "register", "-", "--json"], tasks);
    let shown = documents(&output);
    let codes: Vec<&Value> = shown.iter().filter_map(|document| document.get("code")).collect();
    assert_eq!(
        (code(&output), codes),
        (3, vec![&json!("invalid_tasks"), &json!("invalid_body"), &json!("invalid_body")])
    );
    assert_eq!(summary(&shown), [0, 0, 0, 3]);
}

/// Rows before and after it are rows of their own.
#[test]
fn a_row_of_csv_with_wrong_quotes_is_shown_by_its_line() {
    let stack = Stack::start();
    let csv = [&FROM_INPUT[..], &["--format", "csv"]].concat();
    let output = stack.fed(&csv, "ref,shop\nR-1,a\nR-2,\"a\"b\nR-3,a\nR-4,\"a\nR-5,a\n");
    assert_eq!(code(&output), 3);
    assert_eq!(
        stderr(&output),
        "standard input:3: field 2: text follows the closing quote\n\
         standard input:5: field 2: a quote is opened and not closed\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), "registered            2\nrefused               2\n");
    let output = stack.fed(&csv, "ref,\"shop\nR-6,a\n");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("standard input:1: field 2: a quote is opened"), "{}", stderr(&output));
}

/// More than one request, and the same again: what was corrected or added is registered, and nothing twice.
#[test]
fn a_repeated_command_registers_nothing_twice() {
    let stack = Stack::start();
    let arguments = [&FROM_INPUT[..], &["--idempotency-key", "rows-1", "--json", "--each"]].concat();
    let rows = |numbers: std::ops::Range<usize>| numbers.map(row).collect::<String>();
    let first = documents(&stack.fed(&arguments, &(rows(0..1_500) + "nonsense\n" + &rows(1_500..2_300))));
    assert_eq!(summary(&first), [2_300, 0, 0, 1]);
    let all: BTreeSet<&str> = ids(&first).into_iter().collect();
    assert_eq!(all.len(), 2_300);
    let again = documents(&stack.fed(&arguments, &(rows(0..1_500) + &row(9_000) + &rows(1_500..2_305))));
    assert_eq!(summary(&again), [6, 2_300, 0, 0]);
    // Another key, other tasks; the policy's own key says that they are the same.
    let others = documents(&stack.fed(&[&FROM_INPUT[..], &["--json", "--each"]].concat(), &rows(0..10)));
    assert_eq!(summary(&others), [0, 0, 10, 0]);
}

/// The stack does not answer: the command says how to go on, and going on registers the rest.
#[test]
fn a_command_that_broke_off_goes_on() {
    let stack = Stack::start();
    let rows: String = (0..1_200).map(row).collect();
    let arguments = [&FROM_INPUT[..], &["--idempotency-key", "k", "--endpoint", "http://127.0.0.1:1"]].concat();
    let output = stack.fed(&arguments, &rows);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    for part in ["from line 1 on", "--idempotency-key k", "no stack answers"] {
        assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
    }
    let output = stack.fed(&[&FROM_INPUT[..], &["--idempotency-key", "k"]].concat(), &rows);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "registered        1,200\n", "{}", stderr(&output));
}

#[test]
fn what_cannot_be_used_is_named() {
    let stack = Stack::start();
    stack.folder.write("rows.txt", "1");
    stack.folder.write("rows.csv", "ref,ref\n1,2\n");
    let file = |name: &str| stack.folder.path().join(name).display().to_string();
    for (arguments, part) in [
        (vec!["nothing.csv".to_owned(), "--kind".to_owned(), "row".to_owned()], "nothing.csv"),
        (vec![file("rows.txt")], "--format"),
        (vec![file("rows.csv")], "--kind: is missing"),
        (vec![file("rows.csv"), "--kind".to_owned(), "row".to_owned()], "two columns are named `ref`"),
        (vec![file("rows.txt"), "--kind".to_owned(), "a b".to_owned()], "a kind is expected"),
    ] {
        let arguments: Vec<&str> =
            ["tasks", "register"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let output = stack.run(&arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
    }
    let nothing = stack.fed(&FROM_INPUT, "\n");
    assert_eq!((code(&nothing), String::from_utf8_lossy(&nothing.stdout).as_ref()), (0, "registered            0\n"));
}
