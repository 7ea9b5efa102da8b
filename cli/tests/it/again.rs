//! What is done again: `fanfold reissue`, `fanfold reset`, `fanfold redrive`.

use serde_json::{Value, json};

use crate::client::stack::{NOBODY, Stack, code, command};
use crate::folder::stderr;

/// A stack whose kind `brittle` fails until it is mended.
fn stack() -> Stack {
    let stack = Stack::start();
    let call = "sh, -c, 'test -e mended && cat > calls/$FANFOLD_IDEMPOTENCY_KEY'";
    let policy =
        format!("kind: brittle\ntarget: \"'all'\"\nlinger: 0\nmax_attempts: 1\nbatch_api: {{command: [{call}]}}\n");
    stack.folder.write("brittle.yaml", policy);
    stack.ok(&["policy", "apply", "-f", &stack.folder.path().join("brittle.yaml").display().to_string()]);
    stack
}

fn register(stack: &Stack, id: Option<&str>) -> String {
    let mut task = json!({"kind": "brittle", "content": {"order": "4711"}});
    if let Some(id) = id {
        task["id"] = id.into();
    }
    let (status, answer) = stack.server.post("/tasks", &json!({"tasks": [task]}));
    assert_eq!(status, 202, "{answer}");
    answer["tasks"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn failed_items_are_called_again_as_another_fan_out() {
    let stack = stack();
    let id = stack.open(&["--items", "2", "--seal"]);
    let early = stack.run(&["reissue", &id]);
    assert_eq!(code(&early), 1);
    assert!(stderr(&early).contains("409 fanout_not_ended"), "{}", stderr(&early));
    let woken = stack.ok(&["reissue", &id, "--outstanding"]);
    assert_eq!(woken, "0 wait, 0 are in flight, 0 have their outcome, 0 are duplicates, 2 have no task");
    let item = format!("{id}:{id}:1");
    stack.ok(&["ack", &format!("{id}:{id}:0")]);
    register(&stack, Some(&item));
    assert_eq!(code(&stack.run(&["wait", &id, "--timeout", "1m"])), 3);
    stack.folder.write("mended", "");
    let corrected = format!("{item}={}", json!({"order": "4711", "checked": true}));
    let arguments = ["reissue", &id, "--max-batch", "1", "--content", &corrected, "--idempotency-key", "once"];
    let new = stack.ok(&arguments);
    assert_eq!(stack.ok(&arguments), new, "a repetition");
    let waited = stack.ok(&["wait", &new, "--timeout", "1m"]);
    assert!(waited.contains("completed") && waited.contains(&format!("reissue of  {id}")), "{waited}");
    let members: Vec<Value> = stack.folder.calls().into_values().map(|call| call["members"].clone()).collect();
    assert_eq!(members.len(), 1, "{members:?}");
    assert_eq!(members[0][0]["content"]["checked"], true);
    assert_eq!(stack.json(&["status", &id])["reissued_as"], new.as_str());
    let twice = stack.run(&["reissue", &id]);
    assert_eq!(code(&twice), 1);
    assert!(stderr(&twice).contains("409 fanout_reissued") && stderr(&twice).contains(&new), "{}", stderr(&twice));
    let again = stack.json(&["reissue", &id, "--again"]);
    assert_eq!(again["reissue_of"], id.as_str());
    assert_eq!(code(&stack.run(&["reissue", NOBODY])), 2);
}

#[test]
fn failed_tasks_wait_again() {
    let stack = stack();
    let ids = [register(&stack, None), register(&stack, None)];
    for id in &ids {
        stack.server.wait(&format!("/tasks/{id}"), "status", &json!("failed"));
    }
    stack.folder.write("mended", "");
    let new = stack.ok(&["reset", &ids[0]]);
    assert_eq!(stack.ok(&["reset", &ids[0]]), new, "a repetition");
    stack.server.wait(&format!("/tasks/{new}"), "status", &json!("succeeded"));
    let all = stack.json(&["reset", "--kind", "brittle"]);
    assert_eq!(all, json!({"reset": 1, "known": 1, "refused": 0}));
    let text = stack.ok(&["reset", "--kind", "brittle", "--target", "all"]);
    assert_eq!(text, "target all of kind brittle: 0 tasks wait again, 2 were reset before or are duplicates");
    let partly = stack.run(&["reset", &new, NOBODY, &ids[1]]);
    assert_eq!(code(&partly), 1, "{}", stderr(&partly));
    assert!(stderr(&partly).contains("409 task_not_failed") && stderr(&partly).contains("404 unknown_task"));
    assert_eq!(String::from_utf8_lossy(&partly.stdout).lines().count(), 1);
}

#[test]
fn dead_letters_are_listed_and_moved_back() {
    let stack = stack();
    let listed = stack.ok(&["redrive"]);
    assert!(listed.contains("register") && listed.lines().count() == 8, "{listed}");
    assert_eq!(stack.json(&["redrive"])["queues"][6], json!({"step": "notify", "messages": 0}));
    assert_eq!(stack.ok(&["redrive", "--all"]), "There are no dead letters.");
    assert_eq!(stack.ok(&["redrive", "elect", "ack"]), "elect: 0 moved\nack: 0 moved");
    let moved = stack.json(&["redrive", "elect"]);
    assert_eq!(moved, json!({"queues": [{"step": "elect", "moved": 0, "kept": 0, "refused": 0}]}));
    let unknown = stack.run(&["redrive", "api"]);
    assert_eq!(code(&unknown), 2, "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("register, produce, elect"), "{}", stderr(&unknown));
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_asked() {
    let outstanding = ["reissue", NOBODY, "--outstanding", "--missing"];
    for arguments in [
        &["reissue"][..],
        &["reissue", "x"],
        &["reissue", NOBODY, "--content", "a:b:1"],
        &outstanding,
        &["reset"],
        &["reset", NOBODY, "--kind", "row"],
        &["redrive", "ack", "--all"],
    ] {
        let output = command("http://127.0.0.1:1", arguments).output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
    }
}
