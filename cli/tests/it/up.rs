//! `fanfold up`: the HTTP API, driven as a user would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::folder::{Folder, RECORD, policy, until};

/// The statuses that a task keeps.
const ENDED: [&str; 5] = ["succeeded", "failed", "duplicate", "dropped", "cancelled"];

/// `fanfold up`, until it is dropped.
pub(crate) struct Server {
    process: Child,
    /// HOST:PORT.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &policy("content.shop", RECORD), &[])
    }

    /// The same with another policy, and with variables in its environment.
    pub(crate) fn start_with(folder: &Folder, policy: &str, variables: &[(&str, &str)]) -> Self {
        folder.write("policy.yaml", policy);
        let mut process = Command::new(env!("CARGO_BIN_EXE_fanfold"))
            .current_dir(folder.path())
            .args(["up", "--listen", "127.0.0.1:0", "--policy", "policy.yaml", "--data", "data"])
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split(';').next().unwrap().to_owned();
        Self { process, address }
    }

    fn call(&self, method: &str, path: &str, headers: &str, body: &Value) -> (u16, Value) {
        let (head, body) = self.exchange(method, path, headers, body);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// Head and body of the answer.
    fn exchange(&self, method: &str, path: &str, headers: &str, body: &Value) -> (String, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.call("POST", path, "", body)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, "", &Value::Null)
    }

    /// Asks until the answer says so.
    #[track_caller]
    pub(crate) fn wait(&self, path: &str, field: &str, value: &Value) -> Value {
        until(&format!("{field} {value} at {path}"), || {
            let (status, answer) = self.get(path);
            assert_eq!(status, 200, "{answer}");
            if answer[field] == *value {
                return Ok(answer);
            }
            let ended = field == "status" && ENDED.iter().any(|ended| answer[field] == *ended);
            assert!(!ended, "{path} does not get {value} any more: {answer}");
            Err(answer.to_string())
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_fan_out_is_batched_and_completes() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    assert_eq!(server.get("/health").0, 200);
    let (status, fanout) = server.post("/fanouts", &json!({"items": 3, "seal": true, "user_key": "u"}));
    assert_eq!(status, 201, "{fanout}");
    let (id, group) = (fanout["id"].as_str().unwrap(), fanout["groups"][0]["id"].as_str().unwrap());
    let task = |n: usize| json!({"id": format!("{id}:{group}:{n}"), "kind": "row", "content": {"ref": n, "shop": "a"}});
    let (status, tasks) = server.post("/tasks", &json!({"tasks": [task(0), task(1), task(2)]}));
    assert_eq!(status, 202, "{tasks}");
    let done = server.wait(&format!("/fanouts/{id}"), "complete", &json!(true));
    assert_eq!((&done["total"], &done["failed"], &done["user_key"]), (&json!(3), &json!(0), &json!("u")));
    assert_eq!(folder.calls().len(), 1);
    let task = server.get(&format!("/tasks/{id}:{group}:1")).1;
    assert_eq!(task["status"], "succeeded");
    let batch = server.get(&format!("/batches/{}", task["batch"].as_str().unwrap())).1;
    assert_eq!(batch["members"].as_array().unwrap().len(), 3);
}

#[test]
fn tracking_works_alone_and_survives_a_kill() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let id = server.post("/fanouts", &json!({})).1["id"].as_str().unwrap().to_owned();
    let key = "idempotency-key: page-1\r\n";
    let added = server.call("POST", &format!("/fanouts/{id}/items"), key, &json!({"items": 2})).1;
    assert_eq!(server.call("POST", &format!("/fanouts/{id}/items"), key, &json!({"items": 2})).1, added);
    let item = |n: usize| format!("{id}:{}:{n}", added["groups"][0]["id"].as_str().unwrap());
    assert_eq!(server.post("/acks", &json!({"items": [item(0)]})).0, 200);
    drop(server);
    let server = Server::start(&folder);
    assert_eq!(server.post(&format!("/fanouts/{id}/seal"), &Value::Null).1["complete"], false);
    let answer = server.post("/acks", &json!({"failed": [item(1)]})).1;
    assert_eq!(answer["fanouts"][0]["complete"], true, "{answer}");
    let fanout = server.get(&format!("/fanouts/{id}")).1;
    assert_eq!((&fanout["total"], &fanout["failed"]), (&json!(2), &json!(1)));
}

#[test]
fn batching_works_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let task = |n: usize| json!({"kind": "row", "content": {"ref": n, "shop": "a"}});
    let (status, answer) = server.post("/tasks", &json!({"tasks": [task(0), task(1), task(0)]}));
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["tasks"][2]["outcome"], "duplicate");
    for n in 0..2 {
        let path = format!("/tasks/{}", answer["tasks"][n]["id"].as_str().unwrap());
        server.wait(&path, "status", &json!("succeeded"));
    }
}

#[test]
fn files_and_programs_are_sources() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    folder
        .write("rows.csv", "ref,shop\n".to_owned() + &(0..20).map(|n| format!("{n},{}\n", n % 2)).collect::<String>());
    let file = json!({"file": {"path": "rows.csv", "kind": "row"}});
    let rows = r#"{"tasks": [{"kind": "row", "content": {"ref": "x", "shop": "a"}}, {"kind": "row", "content": {"ref": "y", "shop": "a"}}]}"#;
    // It answers each partition with all rows, as a source may.
    let command = json!({"command": ["sh", "-c", format!("grep -q '\"of\":3' && echo '{rows}'")]});
    for (source, total) in [(file, 20), (command, 2)] {
        let (status, fanout) = server.post("/fanouts", &json!({"producer": {"source": source, "partitions": 3}}));
        assert_eq!(status, 201, "{fanout}");
        let path = format!("/fanouts/{}", fanout["id"].as_str().unwrap());
        let done = server.wait(&path, "complete", &json!(true));
        assert_eq!((&done["total"], &done["failed"]), (&json!(total), &json!(0)), "{done}");
    }
    let fails = json!({"source": {"command": ["sh", "-c", "echo no licence >&2; exit 3"]}});
    let fanout = server.post("/fanouts", &json!({"producer": fails})).1;
    let path = format!("/fanouts/{}", fanout["id"].as_str().unwrap());
    let error = until("the error of the partition", || {
        let partition = &server.get(&path).1["producer"]["partitions"][0];
        partition["error"].as_str().map(str::to_owned).ok_or_else(|| partition.to_string())
    });
    assert!(error.contains("exit status: 3: no licence"), "{error}");
}

#[test]
fn web_pages_are_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let (status, problem) = server.call("GET", "/policies", "origin: https://example.com\r\n", &Value::Null);
    assert_eq!((status, &problem["code"]), (403, &json!("not_for_browsers")));
}

#[test]
fn what_was_counted_is_served_to_prometheus() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let task = json!({"kind": "row", "content": {"ref": 1, "shop": "a"}});
    let answer = server.post("/tasks", &json!({"tasks": [task, task]})).1;
    let path = format!("/tasks/{}", answer["tasks"][0]["id"].as_str().unwrap());
    server.wait(&path, "status", &json!("succeeded"));
    let expected = [
        "# TYPE fanfold_tasks_registered counter",
        "fanfold_tasks_registered 1",
        "fanfold_tasks_duplicate 1",
        "fanfold_members_succeeded 1",
        "fanfold_batch_size_count 1",
        "fanfold_called_to_answered_seconds_bucket{le=\"+Inf\"} 1",
    ];
    // What is done is counted only after it can be read.
    until("every line", || {
        let (head, text) = server.exchange("GET", "/metrics", "", &Value::Null);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
        let lines: Vec<&str> = text.lines().collect();
        match expected.iter().find(|line| !lines.contains(line)) {
            None => Ok(()),
            Some(line) => Err(format!("{line} is not in\n{text}")),
        }
    });
    let (head, _) = server.exchange("GET", "/metrics", "origin: https://example.com\r\n", &Value::Null);
    assert!(head.starts_with("HTTP/1.1 403"), "web pages read nothing: {head}");
}

/// The document that a command prints once it serves; the command is ended.
fn addresses(command: &mut Command) -> Value {
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut documents = serde_json::Deserializer::from_reader(process.stdout.take().unwrap()).into_iter::<Value>();
    let document = documents.next().unwrap().unwrap();
    let url = document["dashboard"].as_str().unwrap();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/dashboard/")).unwrap();
    TcpStream::connect(address).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "", "the document has it all");
    document
}

#[test]
fn scripts_learn_where_it_is_served() {
    let (folder, listen) = (Folder::new(), ["--listen", "127.0.0.1:0", "--json"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    let served = addresses(command.current_dir(folder.path()).arg("up").args(listen));
    assert_eq!(served["dashboard"], format!("{}/dashboard/", served["url"].as_str().unwrap()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    let served = addresses(command.args(["dashboard", "--endpoint", "http://127.0.0.1:1"]).args(listen));
    assert!(served["url"].is_null(), "the stack is elsewhere: {served}");
}
