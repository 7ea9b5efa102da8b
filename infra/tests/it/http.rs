//! What comes over a connection byte by byte: requests that stop half-way, and answers that come before the body.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use fanfold_local::http::{Timeouts, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3_600);
/// Shorter than any test waits, and long enough for what is sent at once.
const SHORT: Duration = Duration::from_millis(300);

const ALL_LONG: Timeouts = Timeouts { headers: LONG, body: LONG, drain: LONG };

async fn connect(timeouts: Timeouts) -> (TcpStream, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/read", post(async |body: Bytes| format!("got {}", body.len())))
        .route("/unread", post(async || "did not look"));
    let server = tokio::spawn(serve(listener, router, timeouts));
    (TcpStream::connect(address).await.unwrap(), server)
}

/// Sends this and reads until the server closes.
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.to_ascii_lowercase()
}

/// Sends this and reads an answer that ends so.
async fn answered(stream: &mut TcpStream, request: &str, end: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(end.as_bytes()) {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap().to_ascii_lowercase()
}

#[tokio::test]
async fn headers_that_do_not_come_end_the_connection() {
    for half in ["", "POST /read HTT", "POST /read HTTP/1.1\r\nHost: localhost\r\nX-Half: a"] {
        let (mut stream, _server) = connect(Timeouts { headers: SHORT, ..ALL_LONG }).await;
        assert_eq!(exchange(&mut stream, half).await, "", "{half}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_the_connection_with_an_answer() {
    for half in ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"] {
        let (mut stream, _server) = connect(Timeouts { body: SHORT, ..ALL_LONG }).await;
        let answer = exchange(&mut stream, &format!("POST /read HTTP/1.1\r\nHost: localhost\r\n{half}")).await;
        assert!(answer.starts_with("http/1.1 400") && answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn an_answer_before_the_body_says_that_the_connection_ends() {
    for path in ["unread", "nowhere"] {
        let (mut stream, _server) = connect(ALL_LONG).await;
        let request = format!("POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc");
        let answer = exchange(&mut stream, &request).await;
        assert!(answer.contains("connection: close"), "{answer}");
        // What the client sends meanwhile does not cost it the answer.
        stream.write_all(&[b'x'; 100_000]).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_the_client_keeps_open_is_closed_after_a_while() {
    let (mut stream, _server) = connect(Timeouts { drain: SHORT, ..ALL_LONG }).await;
    let request = "POST /unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nabc";
    assert!(exchange(&mut stream, request).await.contains("did not look"));
    // More than the buffers between the two hold: it fails once the server takes no more.
    while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
}

#[tokio::test]
async fn a_connection_is_used_again_after_whole_requests() {
    let (mut stream, _server) = connect(Timeouts { drain: SHORT, ..ALL_LONG }).await;
    for (path, body, end) in [("read", "abc", "got 3"), ("read", "", "got 0"), ("unread", "", "did not look")] {
        let length = body.len();
        let request = format!("POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = answered(&mut stream, &request, end).await;
        assert!(answer.starts_with("http/1.1 200") && !answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn connections_end_with_the_server() {
    let (mut stream, server) = connect(ALL_LONG).await;
    answered(&mut stream, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "got 0").await;
    server.abort();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
}
