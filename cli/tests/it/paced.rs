//! Rates and concurrent calls, as a batch API that keeps its own log sees them, while runs are killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::folder::{Folder, RECORD, with_batch_api};

const ROWS: usize = 240;
const A_SECOND: f64 = 20.0;
const BURST: f64 = 60.0;
const AT_ONCE: usize = 3;
/// How long a call works, whether its caller lives or not.
const WORKS: Duration = Duration::from_millis(150);
/// By how much a busy machine may deliver requests to the batch API sooner or later: that hides 30 tasks. If a killed run left a
/// full bucket, up to 60 too many would follow, less 20 for each second until the next run calls: two kills would show.
const JITTER: Duration = Duration::from_millis(1_500);

/// A call: when it came, how many members it had, and how many calls ran then.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: Instant,
    members: usize,
    at_once: usize,
}

#[derive(Default)]
struct Log {
    working: usize,
    calls: Vec<Came>,
}

/// Serves calls for as long as the test runs. Returns the URL.
fn serve(log: &Arc<Mutex<Log>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let log = Arc::clone(log);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            thread::spawn(move || while call(&stream, &log).is_some() {});
        }
    });
    url
}

/// Serves one call of a connection. None: the connection is closed.
fn call(mut stream: &TcpStream, log: &Mutex<Log>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let call: Value = serde_json::from_slice(&body).ok()?;
    {
        let mut log = log.lock().unwrap();
        log.working += 1;
        let came = Came { at: Instant::now(), members: call["members"].as_array()?.len(), at_once: log.working };
        log.calls.push(came);
    }
    thread::sleep(WORKS);
    log.lock().unwrap().working -= 1;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

/// Fails if some span saw more than a burst plus what the rate allows in that span.
fn assert_rate_kept(calls: &[Came]) {
    for (first, from) in calls.iter().enumerate() {
        let mut sum = 0.0;
        for to in &calls[first..] {
            sum += to.members as f64;
            let span = to.at - from.at;
            let allowed = BURST + A_SECOND * (span + JITTER).as_secs_f64();
            assert!(sum <= allowed, "{sum} tasks within {span:?}, {allowed} are allowed");
        }
    }
}

#[test]
fn a_batch_api_that_counts_sees_no_more_than_it_allows_over_kills() {
    let log = Arc::new(Mutex::new(Log::default()));
    let folder = Folder::with_rows(ROWS, RECORD);
    let paces = format!("kind_rate: {{tasks: {A_SECOND}, per: second, burst: {BURST}}}\nmax_calls: {AT_ONCE}\n");
    folder.write("policy.yaml", with_batch_api(&format!("{{url: '{}', timeout: 3s}}\n{paces}", serve(&log))));
    let seen = || log.lock().unwrap().calls.iter().map(|call| call.members).sum::<usize>();
    let mut killed = 0;
    for tasks in [1, 80, 150] {
        let mut child = folder.start();
        while seen() < tasks && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
    }
    assert!(killed > 1, "the runs were too quick to be killed");
    let data = folder.data();
    let summary = folder.summary(&["--data", data.to_str().unwrap()]);
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(ROWS), &json!(0)));
    let calls = log.lock().unwrap().calls.clone();
    assert!(seen() >= ROWS);
    assert_rate_kept(&calls);
    assert!(calls.iter().all(|call| call.at_once <= AT_ONCE), "{calls:?}");
}
