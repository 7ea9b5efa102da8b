//! `fanfold mcp`: the protocol, spoken as assistants speak it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::client::stack::Stack;
use crate::example::build;

/// A session with a server.
struct Session {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Session {
    fn start(stack: &Stack, arguments: &[&str]) -> Self {
        let program: PathBuf = build("fanfold-mcp");
        assert!(program.is_file());
        let mut process = Command::new(env!("CARGO_BIN_EXE_fanfold"))
            .arg("mcp")
            .args(arguments)
            .args(["--", "--endpoint", &format!("http://{}", stack.server.address)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut session = Self { process, input, output, id: 0 };
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = session.ask("initialize", &client);
        assert_eq!(answer["result"]["serverInfo"]["name"], "fanfold", "{answer}");
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.id {
                return answer;
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        answer["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The text of a call, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        (
            result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            result["isError"] == true || result.is_null(),
        )
    }

    fn document(&mut self, tool: &str, arguments: &Value) -> Value {
        let (text, error) = self.call(tool, arguments);
        assert!(!error, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The server ends with its input.
    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn an_assistant_reads_and_changes_nothing() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "3", "--seal", "--user-key", "order 4711"]);
    let mut session = Session::start(&stack, &[]);
    let tools = session.tools();
    assert!(tools.contains(&"get_fanout".to_owned()) && !tools.contains(&"cancel_fanout".to_owned()), "{tools:?}");
    let listed = session.document("list_fanouts", &json!({"user_key": "order 4711"}));
    assert_eq!(listed["fanouts"][0]["id"], json!(id));
    assert_eq!(session.document("get_fanout", &json!({"id": id}))["total"], 3);
    assert_eq!(session.document("check_stack", &json!({}))["ok"], true);
    let (problem, error) = session.call("get_fanout", &json!({"id": "x"}));
    assert!(error && problem.contains("the id of a fan-out is expected"), "{problem}");
    let (problem, error) = session.call("get_fanout", &json!({}));
    assert!(error && problem == "`id` is missing");
    assert!(session.call("cancel_fanout", &json!({"id": id})).1);
    assert_eq!(stack.json(&["status", &id])["state"], "sealed");
    session.end();
}

#[test]
fn what_is_allowed_is_done() {
    let stack = Stack::start();
    let id = stack.open(&["--items", "3"]);
    let mut session = Session::start(&stack, &["--allow-actions"]);
    session.document("pause", &json!({"kind": "row"}));
    assert_eq!(session.document("list_switches", &json!({}))["switches"][0]["kind"], "row");
    assert_eq!(session.document("cancel_fanout", &json!({"id": id}))["state"], "cancelled");
    let (problem, error) = session.call("redrive", &json!({}));
    assert!(error && problem == "`steps` or `all` is needed", "{problem}");
    assert_eq!(session.document("redrive", &json!({"all": true}))["queues"], json!([]));
    assert_eq!(session.document("cancel_tasks", &json!({"kind": "row"})), json!({"cancelled": 0}));
    assert_eq!(session.document("get_results", &json!({"id": id, "limit": 1}))["results"], json!([]));
    assert_eq!(session.document("wake_fanout", &json!({"id": stack.open(&["--items", "2"])}))["without_task"], 2);
    let (problem, error) = session.call("resume_producer", &json!({"producer": id}));
    assert!(error && problem.contains("409 no_producer"), "{problem}");
    let (problem, error) = session.call("pause", &json!({"kind": "none"}));
    assert!(error && problem.contains("none"), "{problem}");
    session.end();
}
