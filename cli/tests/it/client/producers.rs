//! A producer whose partition failed: it is shown, and resumed by command.

use serde_json::json;

use super::stack::{NOBODY, Stack, code};
use crate::folder::{RECORD, policy, stderr, until};

/// Opens a fan-out whose source is the file `page.json`, and waits until its partition has failed.
fn failed(stack: &Stack, page: &str) -> String {
    stack.folder.write("page.json", page);
    let source = json!({"source": {"command": ["cat", "page.json"]}});
    let (status, fanout) = stack.server.post("/fanouts", &json!({"producer": source}));
    assert_eq!(status, 201, "{fanout}");
    let id = fanout["id"].as_str().unwrap().to_owned();
    until("a partition that has failed", || {
        let partition = &stack.server.get(&format!("/fanouts/{id}")).1["producer"]["partitions"][0];
        if partition["state"] == "failed" { Ok(()) } else { Err(partition.to_string()) }
    });
    id
}

const PAGE: &str = r#"{"tasks": [{"kind": "late", "content": {"ref": "R-1", "shop": "a"}}]}"#;

#[test]
fn a_failed_partition_is_shown_with_its_error_and_resumed() {
    let stack = Stack::start();
    let id = failed(&stack, PAGE);
    let text = stack.ok(&["status", &id]);
    for part in [
        "producer    0 of 1 partition read, 1 failed, 0 rows",
        "partition 0 failed after 0 rows:\n    ",
        "there is no policy of this kind",
        &format!("\n  fanfold resume --producer {id}"),
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    stack.folder.write("late.yaml", policy("content.shop", RECORD).replace("kind: row", "kind: late"));
    let late = stack.folder.path().join("late.yaml");
    stack.ok(&["policy", "apply", "-f", late.to_str().unwrap()]);
    let resumed = stack.ok(&["resume", "--producer", &id]);
    assert!(resumed.starts_with(&format!("producer of {id}: 1 partition resumed\n  ")), "{resumed}");
    let waited = stack.run(&["wait", &id, "--timeout", "1m"]);
    let text = String::from_utf8_lossy(&waited.stdout);
    assert_eq!(code(&waited), 0, "{text}{}", stderr(&waited));
    assert!(text.contains("producer    1 of 1 partition read, 1 row") && !text.contains("--producer"), "{text}");
    let refused = stack.run(&["resume", "--producer", &id]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("409 fanout_not_open"), "{}", stderr(&refused));
}

#[test]
fn what_has_not_failed_is_not_resumed() {
    let stack = Stack::start();
    let plain = stack.open(&["--items", "1"]);
    for (id, status, part) in [(plain.as_str(), 1, "409 no_producer"), (NOBODY, 2, "404 unknown_fanout")] {
        let refused = stack.run(&["resume", "--producer", id]);
        assert_eq!(code(&refused), status, "{}", stderr(&refused));
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
    let id = failed(&stack, PAGE);
    let document = stack.json(&["resume", "--producer", &id]);
    assert_eq!(document["partitions"][0]["partition"], 0, "{document}");
    for arguments in [&["--producer", &id, "--kind", "row"][..], &["--producer", &id, "--all"], &[]] {
        let refused = stack.run(&[&["resume"], arguments].concat());
        assert_eq!(code(&refused), 2, "{arguments:?}: {}", stderr(&refused));
    }
}
