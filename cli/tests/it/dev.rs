//! `fanfold dev`, with a stack that `fanfold up` runs and an SQS on a port.

mod sqs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::stack::command;
use crate::folder::{Folder, PATIENCE, RECORD, policy, read_to, signal, stderr, until, with_batch_api};
use crate::up::Server;
use sqs::Sqs;

const DEV_QUEUES: &str = "arn:aws:sqs:eu-west-1:000000000000:shop-dev-";

/// A stack that allows dev sessions.
struct Stack {
    sqs: Sqs,
    folder: Folder,
    server: Server,
}

/// A session, whose lines are read as they come.
struct Session {
    process: Child,
    lines: mpsc::Receiver<String>,
    /// The same of standard error.
    said: mpsc::Receiver<String>,
}

impl Stack {
    fn start(policy: &str) -> Self {
        let (sqs, folder) = (Sqs::start(), Folder::new());
        std::fs::create_dir(folder.path().join("dev")).unwrap();
        let variables = [&keys()[..], &[("AWS_ENDPOINT_URL_SQS", sqs.endpoint.as_str()), ("DEV_QUEUES", DEV_QUEUES)]];
        let server = Server::start_with(&folder, policy, &variables.concat());
        Self { sqs, folder, server }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command =
            command(&format!("http://{}", self.server.address), &[&["dev", "--kind"], arguments].concat());
        command.current_dir(self.folder.path()).env("PATH", std::env::var_os("PATH").unwrap()).envs(keys());
        command.env("AWS_ENDPOINT_URL_SQS", &self.sqs.endpoint);
        command
    }

    /// Starts a session, and waits until it has the calls.
    fn session(&self, arguments: &[&str]) -> Session {
        let mut process = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(process.stderr.take().unwrap());
        read_to(&mut says, "are handled here");
        Session { lines: lines(BufReader::new(process.stdout.take().unwrap())), said: lines(says), process }
    }

    /// Registers rows, each of a shop of its own and so of a batch of its own. Returns their tasks.
    fn register(&self, rows: std::ops::Range<usize>) -> Vec<String> {
        let task = |n| json!({"kind": "row", "content": {"ref": format!("R-{n}"), "shop": format!("s{n}")}});
        let (status, answer) = self.server.post("/tasks", &json!({"tasks": rows.map(task).collect::<Vec<_>>()}));
        assert_eq!(status, 202, "{answer}");
        let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
        answer["tasks"].as_array().unwrap().iter().map(id).collect()
    }

    fn wait(&self, tasks: &[String]) {
        for task in tasks {
            self.server.wait(&format!("/tasks/{task}"), "status", &json!("succeeded"));
        }
    }

    /// Waits until no queue has a message: a session deletes one after it has told of its batch. Returns the queues.
    fn emptied(&self) -> Vec<(String, usize)> {
        until("an empty queue", || {
            let queues = self.sqs.queues();
            if queues.iter().all(|(_, messages)| *messages == 0) { Ok(queues) } else { Err(format!("{queues:?}")) }
        })
    }

    /// Waits until the session's queue has so many messages, with those that it works on.
    fn filled(&self, messages: usize) {
        until("enough messages", || {
            let queues = self.sqs.queues();
            if queues[0].1 >= messages { Ok(()) } else { Err(format!("{queues:?}")) }
        });
    }

    /// How many calls a folder has of the program that writes them there.
    fn calls(&self, folder: &str) -> usize {
        std::fs::read_dir(self.folder.path().join(folder)).unwrap().count()
    }
}

impl Session {
    fn line(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// Waits until it has begun to end.
    fn begins_to_end(&self) {
        while !self.said.recv_timeout(PATIENCE).unwrap().contains("handing the kind back") {}
    }

    /// Asks it to end. Returns its exit status and its last lines.
    fn end(self) -> (Option<i32>, Vec<Value>) {
        signal(&self.process, "-TERM");
        self.ended()
    }

    /// The same of one that was asked to end.
    fn ended(mut self) -> (Option<i32>, Vec<Value>) {
        let code = self.process.wait().unwrap().code();
        (code, self.lines.iter().map(|line| serde_json::from_str(&line).unwrap()).collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lines of a stream, as they come.
fn lines(stream: impl BufRead + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || stream.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

fn keys() -> [(&'static str, &'static str); 3] {
    [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "eu-west-1")]
}

/// Writes each call to a file, and does every member.
const WRITE: &str = "cat > dev/$FANFOLD_IDEMPOTENCY_KEY";

#[test]
fn batches_are_handled_here_until_the_kind_is_handed_back() {
    let stack = Stack::start(&policy("content.shop", RECORD));
    let session = stack.session(&["row", "--json", "--", "sh", "-c", WRITE]);
    let tasks = stack.register(0..3);
    stack.wait(&tasks);
    assert_eq!((stack.calls("dev"), stack.calls("calls")), (3, 0));
    for _ in 0..3 {
        let line = session.line();
        assert!(line["batch"].is_string() && line["ms"].is_u64(), "{line}");
        let counts = ["members", "succeeded", "failed", "retry", "attempt"].map(|name| line[name].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 0, 0, 1]);
    }
    let queues = stack.emptied();
    assert!(queues.len() == 1 && queues[0].0.starts_with("shop-dev-row-"), "{queues:?}");
    let refused: Output = stack.command(&["row", "--", "sh", "-c", WRITE]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("has the calls of the kind until"), "{}", stderr(&refused));
    assert_eq!(stack.sqs.queues(), queues, "its queue is deleted");
    let (code, lines) = session.end();
    assert_eq!((code, lines), (Some(0), vec![json!({"ended": true, "handled": 3, "handed_back": 0})]));
    assert!(stack.sqs.queues().is_empty());
    stack.wait(&stack.register(3..5));
    assert_eq!((stack.calls("dev"), stack.calls("calls")), (3, 2));
}

/// One call runs while others wait. It ends; what waits is called by the stack, although its policy allows one attempt.
#[test]
fn what_was_not_called_here_is_handed_back() {
    let policy = policy("content.shop", RECORD).replace("max_attempts: 4", "max_attempts: 1");
    let stack = Stack::start(&policy.replace("timeout: 5s", "timeout: 60s"));
    // The first call waits for `one`, those after it for `rest`.
    let slow = format!("until rm one 2>/dev/null || [ -e rest ]; do sleep 0.1; done; {WRITE}");
    let session = stack.session(&["row", "--json", "--at-once", "1", "--", "sh", "-c", &slow]);
    let tasks = stack.register(0..6);
    // What is not sent before the session ends is not sent to it any more.
    stack.filled(6);
    stack.folder.write("one", "");
    session.line();
    signal(&session.process, "-TERM");
    session.begins_to_end();
    stack.folder.write("rest", "");
    let (code, lines) = session.ended();
    assert_eq!(code, Some(0));
    let ended = lines.last().unwrap();
    let (handled, back) = (ended["handled"].as_u64().unwrap(), ended["handed_back"].as_u64().unwrap());
    assert!(handled >= 1 && back >= 1 && handled + back == 6, "{lines:?}");
    stack.wait(&tasks);
    assert_eq!((stack.calls("dev") as u64, stack.calls("calls") as u64), (handled, back));
}

/// Answers every request, and notes it.
fn http(answer: &'static str) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/rows", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut buffer) = (String::new(), [0; 4096]);
            let whole = |text: &str| {
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length =
                    head.to_lowercase().split("content-length: ").nth(1)?.lines().next()?.parse::<usize>().ok()?;
                (body.len() >= length).then_some(())
            };
            while whole(&text).is_none() {
                let read = stream.read(&mut buffer).unwrap();
                text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}", answer.len())
                .unwrap();
            let _ = sender.send(text);
        }
    });
    (url, requests)
}

#[test]
fn the_request_is_the_one_of_the_policy_at_another_address() {
    let api = "{url: 'https://example.invalid/rows', request: {method: PUT, query: {refresh: 'true'}, headers: {X-Kind: '${kind}', \
               X-Key: '${secret.NOT_HERE}'}, body: {rows: {'${members}': '${content.ref}'}}}, response: {match: none}}";
    let stack = Stack::start(&with_batch_api(api));
    let (url, requests) = http("{}");
    let session = stack.session(&["row", "--json", "--call", &url]);
    stack.wait(&stack.register(0..1));
    let request = requests.recv_timeout(PATIENCE).unwrap();
    let lower = request.to_lowercase();
    assert!(request.starts_with("PUT /rows?refresh=true "), "{request}");
    assert!(lower.contains("x-kind: row\r\n") && !lower.contains("x-key:"), "{request}");
    assert!(lower.contains("idempotency-key: ") && lower.contains("fanfold-attempt: 1\r\n"), "{request}");
    assert!(request.ends_with(r#"{"rows":["R-0"]}"#), "{request}");
    assert_eq!(session.end().0, Some(0));
}

/// Nobody listens: the calls wait here, and no attempt is used up.
#[test]
fn a_batch_api_that_is_not_there_is_waited_for() {
    let stack = Stack::start(&policy("content.shop", RECORD).replace("max_attempts: 4", "max_attempts: 1"));
    let session = stack.session(&["row", "--json", "--call", "http://127.0.0.1:1/"]);
    let tasks = stack.register(0..2);
    stack.filled(2);
    std::thread::sleep(Duration::from_secs(4));
    let (code, lines) = session.end();
    assert_eq!((code, lines.last().unwrap()), (Some(0), &json!({"ended": true, "handled": 0, "handed_back": 2})));
    stack.wait(&tasks);
    assert_eq!(stack.calls("calls"), 2);
}

#[test]
fn an_operator_finds_a_session_and_ends_it() {
    let stack = Stack::start(&policy("content.shop", RECORD));
    let client = |arguments: &[&str]| {
        let output = command(&format!("http://{}", stack.server.address), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let end = ["dev", "--kind", "row", "--end"];
    assert_eq!(client(&end), "kind row: no dev session has its calls");
    let mut session = stack.session(&["row", "--json", "--", "sh", "-c", WRITE]);
    let doctor = client(&["doctor"]);
    let (queue, fix) = (&stack.sqs.queues()[0].0, "\n           fanfold dev --end --kind row");
    assert!(
        doctor.contains(&format!("a dev session has the calls of kind row, by its queue {queue}{fix}")),
        "{doctor}"
    );
    let ended: Value = serde_json::from_str(&client(&[&end[..], &["--json"]].concat())).unwrap();
    assert!(ended["kind"] == "row" && ended["ended"]["session"].is_string(), "{ended}");
    assert_eq!(session.process.wait().unwrap().code(), Some(1), "it notices by itself");
    assert!(stack.sqs.queues().is_empty());
    assert!(!client(&["doctor"]).contains("dev session"));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let stack = Stack::start(&policy("content.shop", RECORD).replace("timeout: 5s", "timeout: 60s"));
    let mut session = stack.session(&["row", "--", "sh", "-c", "touch begun; sleep 30"]);
    stack.register(0..1);
    stack.folder.wait_for("begun", &mut session.process);
    signal(&session.process, "-INT");
    // Two that come together would be one.
    session.begins_to_end();
    signal(&session.process, "-INT");
    assert_eq!(session.process.wait().unwrap().code(), Some(130));
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_taken() {
    let stack = Stack::start(&policy("content.shop", RECORD));
    let fails = |arguments: &[&str], parts: &[&str]| {
        let output = stack.command(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    };
    fails(&["row"], &["--call <URL>"]);
    fails(&["row", "--call", "http://localhost:1/", "--", "true"], &["cannot be used with"]);
    fails(&["row", "--call", "http://example.com/"], &["--call", "http://example.com/"]);
    fails(&["row", "--end", "--call", "http://localhost:1/"], &["cannot be used with"]);
    fails(&["letter", "--end"], &["unknown_policy"]);
    fails(&["row", "--", "no-such-program"], &["COMMAND", "no-such-program"]);
    fails(&["letter", "--", "true"], &["letter", "unknown_policy"]);
    fails(&["row", "--answers-within", "10s", "--", "true"], &["--answers-within", "1m 5s to 1h is allowed"]);
    assert!(stack.sqs.queues().is_empty());
    let folder = Folder::new();
    let server = Server::start(&folder);
    let output =
        command(&format!("http://{}", server.address), &["dev", "--kind", "row", "--call", "http://localhost:1/"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("calls it anyway") && stderr(&output).contains("batch_api: {url: "),
        "{}",
        stderr(&output)
    );
}
