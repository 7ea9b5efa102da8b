//! What is shown of a fan-out that is followed, of tasks and of batches; and scripts that complete the command.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::json;

use super::stack::{NOBODY, Stack, code, command};
use crate::folder::stderr;

#[test]
fn a_fan_out_is_followed_to_its_end() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "2", "--seal"]);
    let mut command = stack.command(&["status", &id, "--watch"]);
    let mut following = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut says, mut said) = (BufReader::new(following.stderr.take().unwrap()), String::new());
    says.read_line(&mut said).unwrap();
    assert_eq!(said, "sealed: 0 of 2 done, 0 failed\n");
    stack.ok(&["ack", "--failed", &format!("{id}:{id}:0")]);
    stack.ok(&["ack", &format!("{id}:{id}:1")]);
    says.read_to_string(&mut said).unwrap();
    let output = following.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.ends_with("completed: 2 of 2 done, 1 failed\n"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with(&format!("fan-out {id}: completed")));
    assert_eq!(stack.json(&["status", &id, "--watch"])["state"], "completed");
}

#[test]
fn a_task_leads_to_its_batch() {
    let stack = Stack::start();
    let tasks = json!({"tasks": [{"kind": "row", "content": {"ref": "R-1", "shop": "a"}}]});
    let id = stack.server.post("/tasks", &tasks).1["tasks"][0]["id"].as_str().unwrap().to_owned();
    let task = stack.server.wait(&format!("/tasks/{id}"), "status", &json!("succeeded"));
    let batch = task["batch"].as_str().unwrap();
    let text = stack.ok(&["tasks", "get", &id]);
    for part in [&format!("task {id}: succeeded"), batch, "row:0:a", r#"{"ref":"R-1","shop":"a"}"#] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(stack.json(&["tasks", "get", &id])["tasks"][0], task);
    let text = stack.ok(&["batches", batch]);
    for part in [&format!("batch {batch}: "), "row:0:a", "attempts      1", &id, "succeeded"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let both = stack.json(&["batches", batch, batch]);
    assert_eq!((both["batches"].as_array().unwrap().len(), &both["batches"][0]["id"]), (2, &task["batch"]));
    for arguments in [["tasks", "get", NOBODY], ["tasks", "get", "../policies"]] {
        let output = stack.run(&arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(code(&stack.run(&["batches", NOBODY])), 2);
}

#[test]
fn shells_complete_the_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = command("http://127.0.0.1:1", &["completions", shell]).output().unwrap();
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(code(&output) == 0 && script.contains("reissue") && script.contains("fanfold"), "{shell}: {script}");
    }
}
