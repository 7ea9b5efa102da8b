//! A batch API over HTTP that does to each call what a test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// What the server does to a call that it has read.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Writes these bytes and ends the connection.
    Say(Vec<u8>),
    /// Writes the first bytes, then the others again and again, as long as it is listened to.
    Repeat(Vec<u8>, Vec<u8>, Duration),
    /// Says nothing, and keeps the connection.
    Hang,
    /// Ends the connection without a word.
    Die,
    /// Says these bytes after a while.
    Late(Duration, Vec<u8>),
}

impl Deed {
    /// An answer with a status, further headers and a body.
    pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        Self::Say([head.as_bytes(), body].concat())
    }
}

/// A call as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) key: String,
    /// The header `Fanfold-Attempt`.
    pub(crate) attempt: String,
    /// The request's first line and its headers.
    pub(crate) head: String,
    pub(crate) bytes: Vec<u8>,
    /// The body, if it is one JSON value.
    pub(crate) body: Value,
}

type Script = dyn Fn(usize, &Heard) -> Deed + Send + Sync;

pub(crate) struct Server {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens; the script gets the call and its number, from 0.
    pub(crate) async fn start(script: impl Fn(usize, &Heard) -> Deed + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/trucks", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let calls = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&calls)));
            }
        });
        Self { url, heard, task }
    }

    /// The calls so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where whoever connects is refused, as long as this is kept: nobody listens at its port, and nobody else gets it.
pub(crate) fn refusing() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, calls: Arc<Mutex<Vec<Heard>>>) {
    let Some(heard) = read(&mut stream).await else { return };
    let number = {
        let mut calls = calls.lock().unwrap();
        calls.push(heard.clone());
        calls.len() - 1
    };
    // That the caller is gone is what some of the tests are about.
    match script(number, &heard) {
        Deed::Say(bytes) => drop(stream.write_all(&bytes).await),
        Deed::Repeat(first, rest, pause) => {
            if stream.write_all(&first).await.is_ok() {
                while stream.write_all(&rest).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Deed::Hang => drop(stream.read_to_end(&mut Vec::new()).await),
        Deed::Die => {}
        Deed::Late(after, bytes) => {
            tokio::time::sleep(after).await;
            drop(stream.write_all(&bytes).await);
        }
    }
}

/// Reads a request to the end of its body.
async fn read(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let length: usize = header("content-length").unwrap_or("0".to_owned()).parse().ok()?;
        if bytes.len() < end + 4 + length {
            continue;
        }
        let bytes = bytes[end + 4..].to_vec();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        // Calls of AWS APIs have neither.
        let [key, attempt] = ["idempotency-key", "fanfold-attempt"].map(|name| header(name).unwrap_or_default());
        return Some(Heard { key, attempt, head, bytes, body });
    }
}
