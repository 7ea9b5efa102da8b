//! The command as a client of `fanfold up`, as scripts and people use it.

mod aws_cli;
mod doctor;
mod left;
mod many;
mod plotted;
mod producers;
mod shown;
pub(crate) mod stack;

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::folder::stderr;
use stack::{NOBODY, Stack, code, command};

#[test]
fn a_script_opens_acks_and_waits() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "3", "--seal", "--user-key", "order 4711"]);
    let items = stack.ok(&["items", &id]);
    assert_eq!(items, format!("{id}:{id}:0-2"));
    let each: Vec<String> = stack.ok(&["items", &id, "--each"]).lines().map(str::to_owned).collect();
    assert_eq!(each, [0, 1, 2].map(|n| format!("{id}:{id}:{n}")));
    let acked = stack.ok(&["ack", "--failed", &each[0]]);
    assert!(acked.contains("sealed") && acked.contains("order 4711"), "{acked}");
    let acked = stack.fed(&["ack", "-"], &format!("{items}\n"));
    assert!(String::from_utf8_lossy(&acked.stdout).contains("completed"), "{}", stderr(&acked));
    let waited = stack.run(&["wait", &id, "--timeout", "1m"]);
    let text = String::from_utf8_lossy(&waited.stdout);
    assert_eq!(code(&waited), 3, "{text}");
    for part in [
        &format!("fan-out {id}: completed"),
        "user key    order 4711",
        "succeeded           2",
        "failed              1",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(stack.ok(&["items", &id, "--state", "failed"]), each[0]);
    assert_eq!(stack.ok(&["items", &id, "--state", "missing"]), "");
    let listed = stack.ok(&["list", "--state", "completed"]);
    assert!(listed.contains(&id) && listed.lines().count() == 2, "{listed}");
}

#[test]
fn items_are_added_until_it_is_sealed() {
    let stack = Stack::start();
    let id = stack.open(&["--user-key", "pages"]);
    let added = stack.ok(&["add", &id, "7170", "--idempotency-key", "page-1"]);
    assert_eq!(stack.ok(&["add", &id, "7170", "--idempotency-key", "page-1"]), added);
    assert!(added.lines().count() == 2 && added.contains(":0-7167") && added.contains(":0-1"), "{added}");
    let one = stack.json(&["add", &id, "1"]);
    assert_eq!((&one["fanout"], &one["groups"][0]["upto"]), (&json!(id), &json!(1)));
    assert!(stack.ok(&["seal", &id]).starts_with(&format!("fan-out {id}: sealed\n")));
    let refused = stack.run(&["add", &id, "1"]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("409 fanout_not_open"), "{}", stderr(&refused));
    assert_eq!(code(&stack.fed(&["ack", "-"], &added)), 0);
    let exact = stack.json(&["status", &id, "--exact"]);
    assert_eq!((&exact["done"], &exact["total"], &exact["progress"]), (&json!(7_170), &json!(7_171), &json!("exact")));
    assert_eq!(exact, stack.server.get(&format!("/fanouts/{id}?progress=exact")).1);
}

#[test]
fn the_exit_status_of_a_wait_says_how_it_ended() {
    let stack = Stack::start();
    let waits = |id: &str, timeout: &str| stack.run(&["wait", id, "--timeout", timeout]);
    let id = stack.open(&["--items", "1", "--seal"]);
    let output = waits(&id, "50ms");
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("the time is up"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("left                1"));
    stack.ok(&["ack", &format!("{id}:{id}:0")]);
    assert_eq!(code(&waits(&id, "1m")), 0);
    let id = stack.open(&["--items", "2"]);
    assert!(stack.ok(&["cancel", &id]).contains("cancelled"));
    stack.ok(&["cancel", &id]);
    assert_eq!(code(&waits(&id, "1m")), 3);
    let id = stack.open(&["--items", "1", "--seal", "--tolerated-failures", "0"]);
    stack.ok(&["ack", "--failed", &format!("{id}:{id}:0")]);
    assert_eq!(code(&waits(&id, "1m")), 3);
    let refused = stack.run(&["cancel", &id]);
    assert_eq!(code(&refused), 1, "{}", stderr(&refused));
    assert_eq!(code(&waits(NOBODY, "1m")), 2);
}

#[test]
fn a_wait_ends_with_the_fan_out() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "1", "--seal"]);
    let mut command = stack.command(&["wait", &id, "--json"]);
    let mut waiting: Child = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_wait().unwrap().is_none());
    stack.ok(&["ack", &format!("{id}:{id}:0")]);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["state"], "completed");
}

#[test]
fn fan_outs_are_listed_as_they_are_asked_for() {
    let stack = Stack::start();
    let empty = stack.ok(&["list"]);
    assert_eq!(empty.split_whitespace().next(), Some("ID"));
    let mut opened = Vec::new();
    for key in ["order 1", "order 2", "nightly"] {
        opened.push(stack.open(&["--items", "1", "--user-key", key]));
        std::thread::sleep(Duration::from_millis(5));
    }
    stack.ok(&["cancel", &opened[2]]);
    let [first, second, third] = opened.iter().map(String::as_str).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(stack.list(&[]), [third, second, first]);
    assert_eq!(stack.list(&["--oldest"]), [first, second, third]);
    assert_eq!(stack.list(&["--state", "open,sealed"]), [second, first]);
    assert_eq!(stack.list(&["--state", "cancelled", "--opened-after", "1h"]), [third]);
    assert_eq!(stack.list(&["--user-key", "order 1"]), [first]);
    assert_eq!(stack.list(&["--user-key-prefix", "order "]), [first, second]);
    assert!(stack.list(&["--opened-before", "1h"]).is_empty());
    assert!(stack.list(&["--opened-after", "2100-01-01"]).is_empty());
    let created = stack.json(&["status", second])["created_at"].to_string();
    assert_eq!(stack.list(&["--opened-before", &created]), [first]);
    let listed = stack.json(&["list", "--limit", "2"]);
    assert_eq!((listed["fanouts"].as_array().unwrap().len(), &listed["more"]), (2, &json!(true)));
    assert_eq!(stack.json(&["list", "--limit", "3"])["more"], false);
    let listed = stack.run(&["list", "--limit", "1"]);
    assert!(stderr(&listed).contains("There are more: --limit 1"));
}

#[test]
fn what_acks_do_not_fit_is_named_and_the_others_count() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "3", "--seal"]);
    let nobody = format!("{NOBODY}:{NOBODY}:0");
    let refused = stack.run(&["ack", &format!("{id}:{id}:0"), &format!("{id}:{id}:9"), &nobody]);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("there is no item 9") && stderr(&refused).contains(NOBODY),
        "{}",
        stderr(&refused)
    );
    assert_eq!(stack.json(&["status", &id])["done"], 1);
    let refused = stack.run(&["ack", &nobody, &format!("{NOBODY}:{NOBODY}:3-4"), "--json"]);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    let document: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(document["refused"][0]["fanout"], NOBODY, "{document}");
    assert_eq!(document["refused"][0]["items"], json!(["0", "3-4"]));
    // What is no item spoils all: nothing was sent.
    let refused = stack.fed(&["ack", "-"], &format!("{id}:{id}:1\n\nnonsense\n"));
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("`nonsense` is not an item id"), "{}", stderr(&refused));
    assert_eq!(stack.json(&["status", &id])["done"], 1);
}

#[test]
fn what_else_may_be_said_of_a_new_fan_out_is_said() {
    let stack = Stack::start();
    let parent = stack.open(&["--items", "1"]);
    let item = stack.ok(&["items", &parent]);
    let arguments = [
        "open",
        "--items",
        "2",
        "--idle-open",
        "2h",
        "--idle-sealed",
        "3h",
        "--tolerated-failures",
        "5%",
        "--parent",
        &item,
        "--then",
        r#"{"kind": "row", "content": {"ref": 1, "shop": "a"}}"#,
        "--notify",
        r#"{"url": "http://localhost:9/ended"}"#,
        "--idempotency-key",
        "once",
    ];
    let opened = stack.json(&arguments);
    assert_eq!((&opened["total"], &opened["then"]["kind"]), (&json!(2), &json!("row")), "{opened}");
    assert_eq!(stack.json(&arguments)["id"], opened["id"]);
    let shown = stack.ok(&["status", opened["id"].as_str().unwrap()]);
    for part in [&format!("parent      {item}"), "of kind row, not registered yet", "opened      20"] {
        assert!(shown.contains(part), "`{part}` is not in: {shown}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let stack = Stack::start();
    for (arguments, part) in [
        (&["status", "x"][..], "`fanfold list` print it"),
        (&["status", NOBODY], "404 unknown_fanout"),
        (&["wait", NOBODY, "--timeout", "soon"], "`10m`"),
        (&["list", "--state", "done"], "possible values: open, sealed"),
        (&["list", "--opened-after", "yesterday"], "`2026-11-23`"),
        (&["list", "--limit", "0"], "--limit"),
        (&["list", "--user-key", "a", "--user-key-prefix", "a"], "cannot be used with"),
        (&["items", NOBODY, "--state", "open"], "possible values: pending"),
        (&["open", "--items", "800000"], "422"),
        (&["open", "--tolerated-failures", "many"], "`5%`"),
        (&["open", "--notify", "{"], "is not JSON"),
        (&["open", "--then", "[]"], "a JSON object is expected"),
        (&["add", NOBODY, "0"], "0 is not in"),
        (&["ack"], "<ITEM>"),
        (&["list", "--endpoint", "localhost:8080"], "--endpoint: `localhost:8080`: the address of the HTTP API"),
        (&["list", "--endpoint", "http://0.0.0.0:1"], "AWS_ACCESS_KEY_ID"),
    ] {
        let output = stack.run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_a_server_the_error_says_what_to_do() {
    let output = command("http://127.0.0.1:1", &["list"]).output().unwrap();
    assert_eq!(code(&output), 1);
    for part in ["no stack answers at http://127.0.0.1:1", "refused", "GET /fanouts", "tried 3 times", "`fanfold up`"] {
        assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
    }
}

/// Registers rows of a shop, each on its own.
fn rows(stack: &Stack, shop: &str, number: usize) -> Vec<String> {
    let row = |n: usize| {
        let tasks = json!({"tasks": [{"kind": "row", "content": {"ref": format!("{shop}-{n}"), "shop": shop}}]});
        let (status, answer) = stack.server.post("/tasks", &tasks);
        assert_eq!(status, 202, "{answer}");
        answer["tasks"][0]["id"].as_str().unwrap().to_owned()
    };
    (0..number).map(row).collect()
}

#[test]
fn a_kind_is_paused_its_tasks_cancelled_and_it_is_resumed() {
    let stack = Stack::start();
    let paused = stack.ok(&["pause", "--kind", "row"]);
    assert!(paused.starts_with("kind row: paused since 20"), "{paused}");
    assert!(stack.ok(&["pause", "--all"]).starts_with("everything: paused"));
    let switches = stack.ok(&["switches"]);
    assert!(switches.contains("(everything)") && switches.lines().count() == 3, "{switches}");
    let resumed = stack.ok(&["resume", "--all"]);
    assert!(resumed.starts_with("everything: resumed"), "{resumed}");
    let target = stack.ok(&["resume", "--kind", "row", "--target", "a"]);
    assert!(target.ends_with("it is paused, as kind row is"), "{target}");
    let (a, b) = (rows(&stack, "a", 4), rows(&stack, "b", 2));
    let lanes = stack.ok(&["lanes", "--paused"]);
    assert!(lanes.contains("row:0:a") && lanes.contains("row:0:b") && lanes.contains("paused"), "{lanes}");
    let lane = &stack.json(&["lanes", "--kind", "row", "--target", "a"])["lanes"][0];
    assert_eq!((&lane["pending"]["tasks"], &lane["in_flight"], &lane["paused"]), (&json!(4), &json!(0), &json!(true)));
    assert_eq!(stack.ok(&["tasks", "cancel", &a[0], &a[1]]), "2 of 2 tasks are cancelled");
    let partly = stack.run(&["tasks", "cancel", &a[2], NOBODY]);
    assert_eq!(code(&partly), 2, "{}", stderr(&partly));
    assert!(stderr(&partly).contains("404 unknown_task"));
    assert_eq!(stack.json(&["tasks", "cancel", "--kind", "row", "--target", "b"]), json!({"cancelled": 2}));
    assert_eq!(stack.server.get(&format!("/tasks/{}", b[1])).1["status"], "cancelled");
    stack.ok(&["drain", "--kind", "row"]);
    stack.server.wait(&format!("/tasks/{}", a[3]), "status", &json!("succeeded"));
    let refused = stack.run(&["tasks", "cancel", &a[3]]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("409 task_not_waiting"), "{}", stderr(&refused));
}

#[test]
fn what_works_page_by_page_says_how_far_it_is() {
    let stack = Stack::start();
    stack.ok(&["pause", "--kind", "row"]);
    rows(&stack, "a", 120);
    let output = stack.run(&["tasks", "cancel", "--kind", "row", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({"cancelled": 120}));
    assert!(stderr(&output).contains("100 tasks are cancelled so far\n"), "{}", stderr(&output));
    let output = stack.run(&["tasks", "cancel", "--kind", "row"]);
    assert_eq!(stderr(&output), "", "a single page is done at once");
}

#[test]
fn scopes_are_checked_before_anything_is_asked() {
    let endpoint = "http://127.0.0.1:1";
    for arguments in [
        &["pause"][..],
        &["pause", "--all", "--kind", "row"],
        &["drain", "--target", "a"],
        &["resume", "--kind", "row", "--partition", "1"],
        &["tasks", "cancel"],
        &["tasks", "cancel", NOBODY, "--kind", "row"],
    ] {
        let output = command(endpoint, arguments).output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("Usage") || stderr(&output).contains("required"), "{}", stderr(&output));
    }
}
