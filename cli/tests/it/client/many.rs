//! Cancelling and reissuing several fan-outs, and lists of those that need it.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::stack::{NOBODY, Stack, code};
use crate::folder::stderr;

/// Three fan-outs of an import, two of them open, and one of something else.
fn imports(stack: &Stack) -> Vec<String> {
    let open = |key: &str, items: &str| stack.open(&["--items", items, "--user-key", key, "--seal"]);
    vec![open("import 1", "1"), open("import 2", "2"), open("import 3", "0"), open("other", "1")]
}

fn state(stack: &Stack, id: &str) -> Value {
    stack.json(&["status", id])["state"].clone()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

#[test]
fn those_that_a_filter_finds_are_cancelled_once_somebody_agrees() {
    let stack = Stack::start();
    let ids = imports(&stack);
    let found = ["cancel", "--user-key-prefix", "import "];
    // Nobody can be asked.
    let refused = stack.command(&found).stdin(Stdio::null()).output().unwrap();
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("--yes: is missing: it would cancel 2 fan-outs"), "{}", stderr(&refused));
    assert_eq!(state(&stack, &ids[0]), "sealed");
    let cancelled = stack.json(&[&found[..], &["--yes"]].concat());
    let named: Vec<&Value> = cancelled["cancelled"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!((named, &cancelled["refused"]), (vec![&json!(ids[0]), &json!(ids[1])], &json!([])));
    let states: Vec<Value> = ids.iter().map(|id| state(&stack, id)).collect();
    assert_eq!(states, ["cancelled", "cancelled", "completed", "sealed"]);
    let again = stack.run(&[&found[..], &["--yes"]].concat());
    assert_eq!((code(&again), stderr(&again).as_str()), (0, "no fan-out is found that can be cancelled\n"));
}

#[test]
fn those_that_are_named_are_cancelled_whatever_becomes_of_others() {
    let stack = Stack::start();
    let ids = imports(&stack);
    assert_eq!(stack.ok(&["cancel", &ids[0], &ids[1]]), "2 of 2 fan-outs cancelled");
    let partly = stack.run(&["cancel", &ids[2], &ids[3], "--json"]);
    assert_eq!(code(&partly), 1, "{}", stderr(&partly));
    assert!(stderr(&partly).contains(&format!("{}: ", ids[2])), "{}", stderr(&partly));
    assert_eq!(
        (&document(&partly)["cancelled"][0]["id"], &document(&partly)["refused"][0]["id"]),
        (&json!(ids[3]), &json!(ids[2]))
    );
    assert_eq!(code(&stack.run(&["cancel", NOBODY, &ids[3]])), 2);
}

/// Opens a fan-out of which one item fails.
fn with_failure(stack: &Stack, key: &str) -> String {
    let id = stack.open(&["--items", "2", "--seal", "--user-key", key]);
    stack.ok(&["ack", &format!("{id}:{id}:0")]);
    stack.ok(&["ack", "--failed", &format!("{id}:{id}:1")]);
    id
}

#[test]
fn what_a_filter_finds_is_reissued_once() {
    let stack = Stack::start();
    let failed = [with_failure(&stack, "import 1"), with_failure(&stack, "import 2")];
    imports(&stack);
    let found = ["reissue", "--user-key-prefix", "import ", "--yes"];
    let new = stack.ok(&found);
    let of: Vec<Value> = new.lines().map(|id| stack.json(&["status", id])["reissue_of"].clone()).collect();
    assert_eq!(of, failed);
    let again = stack.run(&found);
    assert_eq!((code(&again), stderr(&again).as_str()), (0, "no fan-out is found that can be reissued\n"));
    let twice = stack.json(&["reissue", "--opened-after", "1h", "--again", "--yes"]);
    assert_eq!(twice["reissued"].as_array().unwrap().len(), 2, "{twice}");
    let partly = stack.run(&["reissue", &failed[0], &failed[1]]);
    assert_eq!((code(&partly), partly.stdout.is_empty()), (1, true));
    assert_eq!(stderr(&partly).matches("409 fanout_reissued").count(), 2, "{}", stderr(&partly));
}

#[test]
fn a_filter_must_say_something_and_fit() {
    let stack = Stack::start();
    let id = stack.open(&[]);
    for (arguments, part) in [
        (&["cancel"][..], "ID: is missing: name fan-outs, or give a filter: --state"),
        (&["reissue"], "ID: is missing"),
        (&["cancel", "--user-key-prefix", "", "--yes"], "ID: is missing"),
        (&["cancel", "--state", "completed"], "--state: is `completed`, and open, sealed are allowed"),
        (&["reissue", "--state", "open"], "completed, failed, cancelled, expired are allowed"),
        (&["cancel", "--yes"], "ID: is missing"),
        (&["cancel", &id, "--state", "open"], "cannot be used with"),
        (&["reissue", &id, NOBODY, "--idempotency-key", "k"], "--idempotency-key: is allowed for one fan-out"),
        (&["reissue", &id, NOBODY, "--outstanding"], "--outstanding: is allowed for one fan-out"),
        (&["reissue", "--state", "failed", "--outstanding"], "cannot be used with"),
    ] {
        let output = stack.run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
    }
    assert_eq!(state(&stack, &id), "open");
}

#[test]
fn lists_are_of_what_went_wrong() {
    let stack = Stack::start();
    let failed = with_failure(&stack, "a");
    let ids = imports(&stack);
    stack.ok(&["cancel", &ids[0]]);
    assert_eq!(stack.list(&["--with-failures"]), [ids[0].as_str(), &failed], "an item is missing, or failed");
    assert_eq!(stack.list(&["--with-failures", "--state", "completed"]), [failed.as_str()]);
    assert_eq!(stack.list(&["--ended-after", "1h"]), [ids[2].as_str(), &ids[0], &failed]);
    assert_eq!(stack.list(&["--ended-after", "1h", "--state", "cancelled,open"]), [ids[0].as_str()]);
    let ended = stack.json(&["status", &failed])["updated_at"].as_u64().unwrap();
    assert!(!stack.list(&["--ended-after", &ended.to_string()]).contains(&failed), "it ended at that time, not later");
    assert!(stack.list(&["--ended-after", &(ended - 1).to_string()]).contains(&failed));
    let first = stack.json(&["list", "--with-failures", "--limit", "1"]);
    assert_eq!((first["fanouts"].as_array().unwrap().len(), &first["more"]), (1, &json!(true)));
}
