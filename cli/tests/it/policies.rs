//! `fanfold policy`, as scripts and people use it.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::stack::{Stack, code};
use crate::folder::stderr;

const LETTER: &str = "kind: letter\ntarget: content.town\nbatch_api: {url: 'https://example.com/letters'}\n";
const PARCEL: &str =
    "kind: parcel\ntarget: content.depot\nkey: content.order\nbatch_api:\n  url: https://example.com/parcels\n";

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A stack, and a file of two policies beside it.
fn stack(text: &str) -> (Stack, String) {
    let stack = Stack::start();
    stack.folder.write("policies.yaml", text);
    let file = stack.folder.path().join("policies.yaml").display().to_string();
    (stack, file)
}

#[test]
fn policies_are_compared_and_applied_and_shown() {
    let (stack, file) = stack(&format!("{LETTER}---\n{PARCEL}"));
    let diff = stack.run(&["policy", "diff", "-f", &file]);
    assert_eq!((code(&diff), stdout(&diff).as_str()), (3, "letter: new\nparcel: new"), "{}", stderr(&diff));
    assert_eq!(stack.ok(&["policy", "apply", "-f", &file]), "letter: stored\nparcel: stored");
    assert_eq!(stack.ok(&["policy", "diff", "-f", &file]), "letter: the same\nparcel: the same");
    let again = stack.json(&["policy", "apply", "-f", &file]);
    assert_eq!(again["policies"][0], json!({"kind": "letter", "change": "same", "fields": []}));
    stack.folder.write("policies.yaml", format!("{LETTER}max_batch: 7\n"));
    let diff = stack.run(&["policy", "diff", "--file", &file]);
    assert_eq!((code(&diff), stdout(&diff).as_str()), (3, "letter: changed\n  max_batch: 100 -> 7"));
    let diff = stack.run(&["policy", "diff", "-f", &file, "--json"]);
    let document: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(document["policies"][0]["fields"], json!([{"field": "max_batch", "from": 100, "to": 7}]));
    stack.ok(&["policy", "apply", "-f", &file]);
    let shown = stack.json(&["policy", "get", "letter"]);
    assert_eq!((&shown["max_batch"], &shown), (&json!(7), &stack.server.get("/policies/letter").1));
    let listed = stack.ok(&["policy", "list"]);
    assert!(listed.starts_with("KIND") && listed.lines().count() == 4, "{listed}");
    assert_eq!(stack.json(&["policy", "list"])["policies"].as_array().unwrap().len(), 3);
}

/// What `get` prints is what `apply` takes.
#[test]
fn all_policies_are_kept_in_a_file_and_put_back() {
    let (stack, file) = stack(&format!("{LETTER}---\n{PARCEL}"));
    stack.ok(&["policy", "apply", "-f", &file]);
    let kept = stack.ok(&["policy", "get"]);
    assert_eq!(kept.matches("---\n").count(), 2, "{kept}");
    for kind in ["letter", "parcel"] {
        assert_eq!(stack.ok(&["policy", "delete", kind]), format!("{kind}: deleted"));
    }
    let applied = stack.fed(&["policy", "apply", "-f", "-"], &kept);
    assert_eq!(
        (code(&applied), stdout(&applied)),
        (0, "letter: stored\nparcel: stored\nrow: the same, nothing to store".to_owned()),
        "{}",
        stderr(&applied)
    );
    assert_eq!(stack.ok(&["policy", "get"]), kept);
}

#[test]
fn a_policy_in_use_is_deleted_by_force_and_its_tasks_go_on_later() {
    let (stack, file) = stack("kind: slow\ntarget: kind\nlinger: 5m\nbatch_api: {command: ['true']}\n");
    stack.ok(&["policy", "apply", "-f", &file]);
    let registered = stack.fed(&["tasks", "register", "-", "--kind", "slow", "--json", "--each"], "1\n2\n");
    assert_eq!(code(&registered), 0, "{}", stderr(&registered));
    let refused = stack.run(&["policy", "delete", "slow"]);
    assert_eq!(code(&refused), 3, "{}", stderr(&refused));
    for part in ["the policy of kind `slow` is in use", "`slow:0:slow`", "--force", "409 policy_in_use"] {
        assert!(stderr(&refused).contains(part), "`{part}` is not in: {}", stderr(&refused));
    }
    assert!(refused.stdout.is_empty());
    let deleted = stack.json(&["policy", "delete", "slow", "--force"]);
    assert_eq!(deleted["kind"], "slow");
    let unknown = stack.run(&["policy", "delete", "slow"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("404 unknown_policy"), "{}", stderr(&unknown));
}

fn alone(arguments: &[&str], input: &str) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    // No stack is there.
    command.args(arguments).env("FANFOLD_ENDPOINT", "http://127.0.0.1:1").env_remove("RUST_LOG");
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut process.stdin.take().unwrap(), input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn policies_are_checked_without_a_stack() {
    let valid = alone(&["policy", "validate", "-f", "-"], &format!("{LETTER}---\n{PARCEL}"));
    assert_eq!(code(&valid), 0, "{}", stderr(&valid));
    assert!(
        stdout(&valid).starts_with("standard input:1: the policy of kind `letter` can be used\nstandard input:5: ")
    );
    let text = format!("{LETTER}max_batch: 0\n---\nkind: parcel\ntarget: kind\nbatch_api: {{command: [x]}}\n");
    let invalid = alone(&["policy", "validate", "--deployed", "-f", "-"], &text);
    assert_eq!(code(&invalid), 2);
    for part in [
        "standard input:4:12: `max_batch`: is 0, 1 to 10000 is allowed",
        "standard input:8:",
        "`batch_api.command`: is allowed only in the local runner",
    ] {
        assert!(stderr(&invalid).contains(part), "`{part}` is not in: {}", stderr(&invalid));
    }
    let invalid = alone(&["policy", "validate", "--json", "-f", "-"], &text);
    let document: Value = serde_json::from_slice(&invalid.stdout).unwrap();
    assert_eq!(
        (code(&invalid), &document["valid"], document["faults"].as_array().unwrap().len()),
        (2, &json!(false), 1)
    );
    let none = alone(&["policy", "validate", "-f", "nothing.yaml"], "");
    assert!(code(&none) == 2 && stderr(&none).contains("nothing.yaml"), "{}", stderr(&none));
}

#[test]
fn a_policy_is_tried_with_tasks() {
    let (stack, file) = stack(PARCEL);
    let tasks = "{\"depot\": \"117\", \"order\": \"A-1\"}\n{\"depot\": 5}\n";
    let tried = alone(&["policy", "try", "-f", &file, "--json"], tasks);
    assert_eq!(code(&tried), 3, "{}", stderr(&tried));
    let lines: Vec<Value> = stdout(&tried).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["lane"], &lines[0]["key"], &lines[0]["bytes"]),
        (&json!("parcel:0:117"), &json!("A-1"), &json!(256))
    );
    assert_eq!((&lines[1]["line"], &lines[1]["field"]), (&json!(2), &json!("key")));
    stack.ok(&["policy", "apply", "-f", &file]);
    let tried = stack.fed(&["policy", "try", "parcel"], "{\n  \"depot\": \"117\",\n  \"order\": \"A-1\"\n}\n");
    assert_eq!(code(&tried), 0, "{}", stderr(&tried));
    for part in ["line 1\n", "target     117", "key        A-1", "lane       parcel:0:117"] {
        assert!(stdout(&tried).contains(part), "`{part}` is not in: {}", stdout(&tried));
    }
    assert_eq!(code(&stack.fed(&["policy", "try", "nothing"], "1")), 2);
    assert_eq!(code(&alone(&["policy", "try", "-f", "-"], "1")), 2);
    assert_eq!(code(&alone(&["policy", "try"], "1")), 2);
    stack.folder.write("policies.yaml", format!("{LETTER}---\n{PARCEL}"));
    let unclear = alone(&["policy", "try", "-f", &file], "1");
    assert!(code(&unclear) == 2 && stderr(&unclear).contains("`letter`, `parcel`"), "{}", stderr(&unclear));
    assert_eq!(code(&alone(&["policy", "try", "letter", "-f", &file], "{\"town\": \"x\"}")), 0);
}

/// A stack that takes no commands refuses them, and the policy that was refused is named.
#[test]
fn what_the_stack_refuses_is_named_with_its_place() {
    let (stack, file) =
        stack(&format!("{LETTER}---\nkind: bad one\ntarget: kind\nbatch_api: {{url: 'https://example.com/'}}\n"));
    let refused = stack.run(&["policy", "apply", "-f", &file]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("policies.yaml:5:7: `kind`: is `bad one`"), "{}", stderr(&refused));
    assert_eq!(code(&stack.run(&["policy", "get", "letter"])), 2, "nothing was stored");
    for (arguments, part) in [
        (&["policy", "get", "a b"][..], "a kind is expected"),
        (&["policy", "delete"], "<KIND>"),
        (&["policy", "apply"], "--file"),
    ] {
        let output = stack.run(arguments);
        assert!(code(&output) == 2 && stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
    let nobody = alone(&["policy", "apply", "-f", "-"], LETTER);
    assert!(code(&nobody) == 1 && stderr(&nobody).contains("no stack answers"), "{}", stderr(&nobody));
}

const SEARCH: &str = "kind: doc\ntarget: kind\nbatch_api:\n  use: elasticsearch\n  url: https://example.com/docs/_bulk\n  request:\n    \
                      headers: {Authorization: 'ApiKey ${secret.SEARCH_KEY}'}\n";

#[test]
fn the_request_of_several_tasks_is_shown_and_how_an_answer_would_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let policy = write("search.yaml", SEARCH);
    let items = json!({"errors": true, "items": [
        {"index": {"_id": "x", "status": 201}},
        {"index": {"status": 400, "error": {"type": "document_parsing_exception", "reason": "failed to parse"}}},
    ]});
    let answer = write("answer.json", &items.to_string());
    let tasks = "{\"a\": 1}\n\n{\"a\": \"x\"}\n";
    let tried = alone(&["policy", "try", "-f", &policy, "--answer", &answer], tasks);
    assert_eq!(code(&tried), 0, "{}", stderr(&tried));
    let request = "request\n  POST https://example.com/docs/_bulk\n  Authorization: ApiKey [secret SEARCH_KEY]\n  \
                   Content-Type: application/x-ndjson\n  Idempotency-Key: ";
    let rest = "\n\n  {\"index\":{\"_id\":\"00000000-0000-0000-0000-000000000001\"}}\n  {\"a\":1}\n  \
                {\"index\":{\"_id\":\"00000000-0000-0000-0000-000000000003\"}}\n  {\"a\":\"x\"}\nanswer 200\n  \
                line 1     succeeded   x\n  line 3     failed      document_parsing_exception: failed to parse";
    let shown = stdout(&tried);
    assert!(shown.contains(request) && shown.ends_with(rest), "{shown}");
    let tried = alone(&["policy", "try", "-f", &policy, "--answer", &answer, "--json"], tasks);
    let lines: Vec<Value> = stdout(&tried).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[2]["lines"], &lines[2]["request"]["method"]), (&json!([1, 3]), &json!("POST")));
    let failed = json!({"line": 3, "outcome": "failed", "said": "document_parsing_exception: failed to parse"});
    assert_eq!(lines[3]["answer"]["members"][1], failed);
    let busy = write("busy.json", "{\"error\": \"busy\"}");
    let tried = alone(&["policy", "try", "-f", &policy, "--answer", &busy, "--status", "429"], tasks);
    assert!(
        stdout(&tried)
            .ends_with("answer 429\n  the batch API answered 429: {\"error\": \"busy\"}; the call is repeated"),
        "{}",
        stdout(&tried)
    );
    let short = write("short.json", "{\"items\": []}");
    for (status, then) in
        [("404", "the kind waits, unless the policy has `refusals: fail`"), ("400", "the batch is split")]
    {
        let tried = alone(&["policy", "try", "-f", &policy, "--answer", &busy, "--status", status], tasks);
        assert!(stdout(&tried).trim_end().ends_with(&format!("; {then}")), "{status}: {}", stdout(&tried));
    }
    let tried = alone(&["policy", "try", "-f", &policy, "--answer", &short], tasks);
    assert!(stdout(&tried).contains("the answer has 0 items for 2 members"), "{}", stdout(&tried));
    let by_target = write("by-target.yaml", &SEARCH.replace("target: kind", "target: content.a"));
    let apart = alone(&["policy", "try", "-f", &by_target, "--answer", &answer], tasks);
    assert!(code(&apart) == 2 && stderr(&apart).contains("the tasks make 2 batches"), "{}", stderr(&apart));
    let none = alone(&["policy", "try", "-f", &policy, "--answer", "nothing.json"], tasks);
    assert!(code(&none) == 2 && stderr(&none).contains("nothing.json"), "{}", stderr(&none));
}

#[test]
fn a_task_that_does_not_fit_the_request_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.yaml");
    let policy = "kind: doc\ntarget: kind\nbatch_api:\n  url: https://example.com/\n  request:\n    body:\n      ${members}: ${content.a}\n";
    std::fs::write(&file, policy).unwrap();
    let file = file.display().to_string();
    let tried = alone(&["policy", "try", "-f", &file], "{\"a\": 1}\n{\"b\": 1}\n");
    assert_eq!(code(&tried), 3);
    let shown = stdout(&tried);
    assert!(shown.ends_with("\n\n  [1]\n  without line 2: `content.a` finds no field `a`"), "{shown}");
    std::fs::write(&file, policy.replace("content.a}", "content.a +}")).unwrap();
    let wrong = alone(&["policy", "try", "-f", &file], "1");
    let expected = "`batch_api.request.body.${members}`: `content.a +` ends where a value is expected";
    assert!(code(&wrong) == 2 && stderr(&wrong).contains(expected), "{}", stderr(&wrong));
}
