//! `fanfold sandbox`, as the batch API of a run.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::folder::{Folder, with_batch_api};

const FANFOLD: &str = env!("CARGO_BIN_EXE_fanfold");

const API: &str = "{url: \"http://127.0.0.1:${PORT}/\", timeout: 5s}";

/// A policy with short pauses between attempts.
fn impatient() -> String {
    with_batch_api(API).replace("{base: 1s, max: 2s}", "{base: 100ms, max: 1s}")
}

/// A folder whose batch API is a sandbox with these options; it logs its calls to `calls.ndjson`.
fn folder(rows: usize, options: &[&str]) -> Folder {
    let folder = Folder::with_rows(rows, "true");
    folder.write("policy.yaml", with_batch_api(API));
    let log = folder.path().join("calls.ndjson");
    let start = [&[FANFOLD, "sandbox", "--log", log.to_str().unwrap()], options].concat();
    folder.write("run.yaml", json!({ "start": start }).to_string());
    folder
}

/// The calls that the sandbox logged.
fn calls(folder: &Folder) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("calls.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(calls: &[Value], because: &str) -> usize {
    calls.iter().filter(|call| call["because"] == because).count()
}

#[test]
fn a_run_against_a_faulty_sandbox_ends_with_every_task_done_once() {
    let options = ["--errors", "20%", "--lose", "20%", "--retry", "10%", "--latency", "1ms..5ms"];
    // 85 batches, of which one in five loses its answer, and more do when members are sent again: that none does happens less
    // than once in a billion runs.
    let folder = folder(400, &options);
    folder.write("policy.yaml", impatient().replace("max_in_flight: 2", "max_in_flight: 8"));
    let summary = folder.summary(&[]);
    let calls = calls(&folder);
    assert!(count(&calls, "error") > 0 && count(&calls, "lost") > 0, "{calls:?}");
    // What was lost is repeated under its key, and gets its answer again.
    assert_eq!(count(&calls, "key conflict"), 0);
    assert!(count(&calls, "repeated") > 0);
    assert_eq!((&summary["total"], &summary["open"]), (&json!(400), &json!(0)), "{summary}");
    let done = calls.iter().filter(|call| call["because"] == "done" || call["because"] == "lost");
    let members: usize = done.map(|call| call["members"].as_array().unwrap().len()).sum();
    assert!(members >= 400, "{members}");
}

/// A batch of one member comes again under the same key.
#[test]
fn members_that_are_sent_again_are_drawn_anew() {
    let folder = folder(40, &["--retry", "30%"]);
    let policy = impatient().replace("max_batch: 8", "max_batch: 1");
    folder.write("policy.yaml", policy.replace("max_attempts: 4", "max_attempts: 20"));
    let summary = folder.summary(&[]);
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(40), &json!(0)), "{summary}");
}

#[test]
fn a_run_waits_for_answers_that_come_later() {
    let folder = folder(60, &["--later", "50%", "--later-for", "1s", "--fail", "10%"]);
    let api = "{url: \"http://127.0.0.1:${PORT}/\", timeout: 5s, answers_within: 1h}";
    folder.write("policy.yaml", with_batch_api(api));
    let summary = folder.summary(&[]);
    assert_eq!((&summary["total"], &summary["open"]), (&json!(60), &json!(0)), "{summary}");
    let done: usize = calls(&folder).iter().map(|call| call["members"].as_array().unwrap().len()).sum();
    assert_eq!(done, 60, "each task was called once");
}

#[test]
fn a_tenth_of_the_members_fails() {
    let folder = folder(200, &["--fail", "10%"]);
    let summary = folder.summary(&[]);
    let failed = summary["failed"].as_u64().unwrap();
    assert!((5..50).contains(&failed), "{summary}");
    assert_eq!(summary["succeeded"].as_u64().unwrap() + failed, 200);
    assert_eq!(summary["failures"]["the sandbox is set to fail this content"], failed);
}

/// A sandbox on its own; it is killed when this is dropped.
struct Sandbox(Child, String);

impl Sandbox {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(FANFOLD);
        command.args(["sandbox", "--listen", "127.0.0.1:0"]).args(options).env_remove("PORT");
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
        Self(process, address)
    }

    fn ask(&self, request: &str) -> String {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(&self.1).unwrap();
        write!(stream, "{request}").unwrap();
        let mut answer = String::new();
        // A lost answer ends in an error.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn post(&self, key: &str, body: &str) -> String {
        let length = body.len();
        self.ask(&format!(
            "POST /any HTTP/1.1\r\nhost: x\r\nconnection: close\r\nidempotency-key: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    }

    fn counts(&self) -> Value {
        let answer = self.ask("GET /counts HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn what_it_was_told_is_answered_and_counted() {
    let sandbox = Sandbox::start(&["--rate", "3"]);
    let body = r#"{"members": [{"id": "a", "content": {"n": 1}}]}"#;
    assert!(sandbox.post("k", body).ends_with(r#"{"members":[{"id":"a","outcome":"succeeded"}]}"#));
    let other = sandbox.post("k", r#"{"members": [{"id": "b", "content": 2}]}"#);
    assert!(other.starts_with("HTTP/1.1 422") || other.starts_with("HTTP/1.1 429"), "{other}");
    let unreadable = sandbox.post("l", "[]");
    assert!(unreadable.starts_with("HTTP/1.1 400"), "{unreadable}");
    let busy = (0..20).map(|_| sandbox.post("k", body)).find(|answer| answer.starts_with("HTTP/1.1 429")).unwrap();
    assert!(busy.contains("retry-after: 1"), "{busy}");
    let counts = sandbox.counts();
    assert_eq!((&counts["succeeded"], &counts["done_again"], &counts["unreadable"]), (&json!(1), &json!(0), &json!(1)));
}

/// Started with `PORT`, it ends with its standard input.
#[test]
fn with_json_it_prints_its_addresses_and_then_its_counts() {
    let mut command = Command::new(FANFOLD);
    command.args(["sandbox", "--json"]).env("PORT", "0").stdin(Stdio::null());
    let output = command.output().unwrap();
    let printed: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
    let [addresses, counts] = &printed[..] else { panic!("{printed:?}") };
    let url = addresses["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && !url.ends_with(":0"), "{url}");
    assert_eq!(addresses["counts"], format!("{url}/counts"));
    assert_eq!((&counts["calls"], &counts["done_again"]), (&json!(0), &json!(0)), "{counts}");
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn a_lost_answer_breaks_off() {
    let sandbox = Sandbox::start(&["--lose", "100%"]);
    let answer = sandbox.post("k", r#"{"members": [{"id": "a", "content": 1}]}"#);
    assert!(!answer.contains("succeeded") && !answer.ends_with("0\r\n\r\n"), "{answer}");
    assert_eq!((&sandbox.counts()["lost"], &sandbox.counts()["succeeded"]), (&json!(1), &json!(1)));
}

#[test]
fn wrong_options_are_named() {
    for (option, value, expected) in [
        ("--fail", "1", "a percentage from `0%` to `100%`"),
        ("--latency", "2s..1s", "the shorter time comes first"),
        ("--rate", "0", "invalid value '0' for '--rate <CALLS>'"),
        ("--listen", "here", "HOST:PORT is expected"),
    ] {
        let output = Command::new(FANFOLD).args(["sandbox", option, value]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
