//! What a run counts when it ends: failures without a batch, and those by which `--fail-fast` stops it.

use serde_json::json;

use super::{ROWS, client, listening, wait_for_a_call};
use crate::folder::{Folder, RECORD, policy, stderr, summary};

#[test]
fn tasks_that_were_cancelled_are_among_the_reasons_of_failures() {
    let folder = Folder::with_rows(ROWS, &format!("{RECORD}; sleep 1"));
    let (mut child, endpoint, _said) = listening(&folder, &[]);
    wait_for_a_call(&folder, &mut child);
    client(&endpoint, &["tasks", "cancel", "--kind", "row"]);
    let ended = summary(&child.wait_with_output().unwrap());
    let failed = ended["failed"].as_u64().unwrap();
    assert!(failed > 0 && ended["ended"] == "completed", "{ended}");
    assert_eq!(ended["failures"], json!({"cancelled, or acked as failed by somebody else": failed}));
}

#[test]
fn a_limit_of_failures_that_the_last_task_reaches_stops_nothing() {
    let folder = Folder::with_rows(1, "exit 1");
    folder.write("policy.yaml", policy("content.shop", "exit 1").replace("max_attempts: 4", "max_attempts: 1"));
    let output = folder.run(&["--json", "--fail-fast", "1"]);
    let ended = summary(&output);
    assert_eq!((&ended["ended"], &ended["notices"], &ended["failed"]), (&json!("completed"), &json!(1), &json!(1)));
    assert!(!stderr(&output).contains("--fail-fast"), "{}", stderr(&output));
}

/// A stack that others use counts their failures, too.
#[test]
fn fail_fast_goes_without_listen() {
    let output = Folder::with_rows(1, RECORD).run(&["--listen", "127.0.0.1:0", "--fail-fast", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be used with '--"), "{}", stderr(&output));
}
