//! The server as it is run: a process of its own, spoken to over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Another program may take the port between here and the server; then the next one is tried. One test at a time: two would
    /// be given the same port.
    fn start(manifests: &Path) -> Self {
        static STARTS: Mutex<()> = Mutex::new(());
        let _alone = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let process = command(Some(&port.to_string())).env("MANIFESTS", manifests).spawn().unwrap();
            let mut server = Self { process, port };
            while server.process.try_wait().unwrap().is_none() {
                if matches!(server.is_healthy(), Ok(true)) {
                    return server;
                }
                std::thread::yield_now();
            }
        }
        panic!("the server does not start");
    }

    fn ask(&self, request: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        // A server that hangs fails the test.
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn is_healthy(&self) -> io::Result<bool> {
        Ok(self.ask(HEALTH)?.starts_with("HTTP/1.1 200 "))
    }

    fn call(&self, request: &str) -> (u16, String, Value) {
        let answer = self.ask(request).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), serde_json::from_str(body).unwrap())
    }

    fn book(&self, key: &str, attempt: &str, body: &str) -> (u16, String, Value) {
        let length = body.len();
        self.call(&format!(
            "POST /trucks HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             idempotency-key: {key}\r\nfanfold-attempt: {attempt}\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    }

    /// Closes the server's standard input and waits for its end.
    fn end(mut self) -> Output {
        drop(self.process.stdin.take());
        self.process.wait_with_output().unwrap()
    }
}

fn command(port: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parcels-api"));
    command.env_remove("PORT").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(port) = port {
        command.env("PORT", port);
    }
    command
}

fn body(members: usize) -> String {
    let members: Vec<Value> = (0..members)
        .map(|index| {
            json!({"id": format!("fan:group:{index}"), "content": {"order": format!("ORD-{index:06}"), "depot": "117",
                   "state": "NY", "zip_code": "11742", "city": "Holtsville", "county": "Suffolk", "latitude": "40.9",
                   "longitude": "-72.6", "weight_kg": if index == 1 { "30.0" } else { "4.1" }}})
        })
        .collect();
    json!({"batch_id": "b", "kind": "parcel", "target": "NY/117", "members": members}).to_string()
}

fn outcomes<'a>(answer: &'a Value, outcome: &'a str) -> impl Iterator<Item = &'a Value> {
    answer["members"].as_array().unwrap().iter().filter(move |member| member["outcome"] == outcome)
}

#[test]
fn a_truck_is_booked_once_however_often_it_is_called() {
    let manifests = tempfile::tempdir().unwrap();
    let server = Server::start(manifests.path());
    let health = server.call(HEALTH);
    assert_eq!((health.0, health.2), (200, json!({"status": "ok"})));

    // Ten thousand orders: the largest call that is promised to fit. Attempts in a row are never both turned away.
    let request = body(10_000);
    let attempt = ["1", "2"].into_iter().find(|attempt| server.book("big", attempt, &request).0 == 200).unwrap();
    let (_, _, first) = server.book("big", attempt, &request);
    assert_eq!(first["members"].as_array().unwrap().len(), 10_000);
    assert_eq!(first["members"][1]["error"], "parcel heavier than 29.9 kg");
    let place = manifests.path().join("fan").join("big.csv");
    let manifest = std::fs::read_to_string(&place).unwrap();
    assert_eq!(manifest.lines().count() - 1, outcomes(&first, "succeeded").count());
    assert!(!manifest.contains("ORD-000001"));

    assert!(server.end().status.success());
    let server = Server::start(manifests.path());
    assert_eq!(server.book("big", attempt, &request).2, first);
    assert_eq!(std::fs::read_to_string(&place).unwrap(), manifest);
    assert_eq!(std::fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    assert!(server.end().status.success());
}

#[test]
fn a_busy_depot_says_when_to_come_again() {
    let manifests = tempfile::tempdir().unwrap();
    let server = Server::start(manifests.path());
    let turned_away: Vec<_> =
        (0..25).map(|attempt| server.book("b", &attempt.to_string(), &body(1))).filter(|a| a.0 != 200).collect();
    assert_eq!(turned_away.len(), 1);
    let (status, head, problem) = &turned_away[0];
    assert_eq!((*status, &problem["status"]), (429, &json!(429)));
    assert!(head.contains("\r\nretry-after: 1\r\n"), "{head}");
    assert!(server.end().status.success());
}

#[test]
fn a_bad_call_is_answered_with_what_is_wrong_and_leaves_nothing() {
    let manifests = tempfile::tempdir().unwrap();
    let server = Server::start(manifests.path());
    for (key, attempt, body, word) in [
        ("../../b", "1", body(1), "Idempotency-Key"),
        ("b", "x", body(1), "Fanfold-Attempt"),
        ("b", "1", "{\"members\": ".to_owned(), "line 1"),
        ("b", "1", body(1).replace("zip_code", "zip"), "`zip_code` is missing"),
    ] {
        let (status, head, problem) = server.book(key, attempt, &body);
        assert_eq!(status, 400);
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    assert_eq!(std::fs::read_dir(manifests.path()).unwrap().count(), 0);
    assert!(server.end().status.success());
}

#[test]
fn a_port_that_is_missing_wrong_or_taken_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port().to_string();
    for (port, word) in [(None, "PORT is missing"), (Some("http"), "not a port"), (Some(taken.as_str()), "is taken")] {
        let output = command(port).spawn().unwrap().wait_with_output().unwrap();
        assert!(!output.status.success());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(word), "{message}");
    }
}
