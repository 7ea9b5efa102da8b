//! What `fanfold status` says of the items that are left.

use serde_json::json;

use super::stack::Stack;
use crate::folder::{policy, until};

/// Opens a fan-out with these many tasks of a shop. Returns its id.
fn opened(stack: &Stack, number: usize) -> String {
    let id = stack.open(&["--items", &number.to_string(), "--seal"]);
    let task = |n: usize| json!({"id": format!("{id}:{id}:{n}"), "kind": "row", "content": {"ref": format!("R-{n}"), "shop": "a"}});
    let (status, answer) = stack.server.post("/tasks", &json!({"tasks": (0..number).map(task).collect::<Vec<_>>()}));
    assert_eq!(status, 202, "{answer}");
    id
}

/// What is shown, as soon as a part is in it.
fn shown(stack: &Stack, id: &str, part: &str) -> String {
    until(&format!("`{part}`"), || {
        let text = stack.ok(&["status", id]);
        assert!(!text.contains("completed"), "`{part}` is not in: {text}");
        if text.contains(part) { Ok(text) } else { Err(text) }
    })
}

#[test]
fn items_are_named_with_what_they_wait_for() {
    let stack = Stack::start();
    stack.ok(&["pause", "--kind", "row", "--target", "a"]);
    let id = opened(&stack, 2);
    let text = stack.ok(&["status", &id]);
    let expected =
        format!("\n\n  What is left, and why:\n  {id}:{id}:0\n  {id}:{id}:1\n    target a of kind row is paused");
    assert!(text.ends_with(&expected), "{text}");
    assert!(stack.json(&["status", &id])["left"].is_null(), "JSON is what the API returns");
    let alone = stack.open(&["--items", "12", "--seal"]);
    let text = stack.ok(&["status", &alone]);
    let expected = format!(
        "  {alone}:{alone}:9\n    it has no task: whoever handles it acks it\n  and 2 others: fanfold items {alone}"
    );
    assert!(text.ends_with(&expected), "{text}");
    let many = stack.open(&["--items", "21"]);
    assert!(!stack.ok(&["status", &many]).contains("What is left"), "more than a few are left");
    stack.ok(&["cancel", &alone]);
    assert!(!stack.ok(&["status", &alone]).contains("What is left"), "it has ended");
}

#[test]
fn a_batch_that_is_called_again_is_named_with_its_error() {
    let policy = policy("content.shop", "echo the depot is closed >&2; exit 1")
        .replace("base: 1s, max: 2s", "base: 1m, max: 1m");
    let stack = Stack::with(&policy);
    let id = opened(&stack, 1);
    let text = shown(&stack, &id, "next attempt");
    for part in ["    batch ", ": 1 attempt\n    next attempt 20", "    last error: ", "the depot is closed"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(shown(&stack, &id, "last error").lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_lane_names_its_batches_in_flight() {
    let stack = Stack::with(&policy("content.shop", "sleep 60").replace("timeout: 5s", "timeout: 90s"));
    let id = opened(&stack, 1);
    shown(&stack, &id, "is being called: 1 attempt");
    let lanes = stack.ok(&["lanes", "--kind", "row"]);
    let batch = lanes.lines().find_map(|line| line.strip_prefix("  batch ")).unwrap_or_else(|| panic!("{lanes}"));
    assert!(lanes.lines().all(|line| line.chars().count() <= 80), "{lanes}");
    assert!(stack.ok(&["batches", batch]).contains("row:0:a"));
    let named = stack.json(&["lanes", "--kind", "row"])["lanes"][0]["batches"][0].clone();
    assert_eq!(named, batch);
}

#[test]
fn a_batch_shows_what_became_of_its_notice() {
    let notified = policy("content.shop", "exit 1").replace("max_attempts: 4", "max_attempts: 1");
    let stack = Stack::with(&format!("{notified}notify: {{url: \"http://127.0.0.1:1/failed\"}}\n"));
    let tasks = json!({"tasks": [{"kind": "row", "content": {"ref": "R-1", "shop": "a"}}]});
    let task = stack.server.post("/tasks", &tasks).1["tasks"][0]["id"].as_str().unwrap().to_owned();
    let task = stack.server.wait(&format!("/tasks/{task}"), "status", &json!("failed"));
    let batch = task["batch"].as_str().unwrap();
    let text = until("a try of the notice", || {
        let text = stack.ok(&["batches", batch]);
        if text.contains("next try at") { Ok(text) } else { Err(text) }
    });
    let notice = text.lines().find_map(|line| line.strip_prefix("  notice        pending, next try at 20"));
    assert!(notice.is_some_and(|notice| notice.contains("the receiver cannot be reached")), "{text}");
}
