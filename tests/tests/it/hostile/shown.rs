//! What a batch API answered is read if it can be, and shown if it cannot: compressed, marked, as a page, as a bare list.

use std::io::Write;
use std::time::Duration;

use fanfold_batch_api::{Answer, Cause};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::api::{PATIENT, call, no_members, outcomes, stack};
use super::server::{Deed, Server, refusing};

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn an_answer_may_be_packed_and_marked() {
    let body = json!({"members": [{"id": Uuid::max(), "outcome": "failed", "error": "é"}]}).to_string();
    let marked = [b"\xef\xbb\xbf", body.as_bytes()].concat();
    let plain = Answer::read(body.as_bytes(), &no_members()).unwrap();
    for (name, headers, body) in [
        ("marked", "", marked.clone()),
        ("compressed", "Content-Encoding: gzip\r\n", compressed(body.as_bytes())),
        ("compressed by an old server", "Content-Encoding: X-GZIP\r\n", compressed(body.as_bytes())),
        ("compressed and marked", "content-encoding: gzip\r\n", compressed(&marked)),
        ("not compressed, and says so", "Content-Encoding: identity\r\n", body.clone().into_bytes()),
    ] {
        let server = Server::start(move |_, _| Deed::answer("200 OK", headers, &body)).await;
        assert_eq!(call(&server.url, PATIENT).await, Ok(plain.clone()), "{name}");
    }
    let server = Server::start(|_, _| Deed::answer("200 OK", "Content-Encoding: gzip\r\n", compressed(b""))).await;
    assert_eq!(call(&server.url, PATIENT).await, Ok(Answer::AllSucceeded));
}

#[tokio::test]
async fn an_answer_207_names_outcomes() {
    let body = json!({"members": [{"id": Uuid::max(), "status": 422}]}).to_string();
    let plain = Answer::read(body.as_bytes(), &no_members()).unwrap();
    let server = Server::start(move |_, _| Deed::answer("207 Multi-Status", "", &body)).await;
    assert_eq!(call(&server.url, PATIENT).await, Ok(plain));
    let server = Server::start(|_, _| Deed::answer("207 Multi-Status", "", b"")).await;
    let error = call(&server.url, PATIENT).await.unwrap_err();
    assert!(error.cause == Cause::BadAnswer && error.message.contains("207"), "{error}");
}

#[tokio::test]
async fn a_small_answer_that_holds_a_large_one_is_refused() {
    let bomb = compressed(&vec![b' '; 60 * 1_024 * 1_024]);
    let server = Server::start(move |_, _| Deed::answer("200 OK", "Content-Encoding: gzip\r\n", &bomb)).await;
    let error = call(&server.url, PATIENT).await.unwrap_err();
    assert!(error.cause == Cause::BadAnswer && error.message.contains("more than 6291456 bytes"), "{error:?}");
}

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
async fn what_is_no_answer_is_shown() {
    let page = "<!DOCTYPE html>\n<html>\n  <title>404\tNot Found</title>\u{1b}[31m";
    let shown = "<!DOCTYPE html> <html> <title>404 Not Found</title>\\u{1b}[31m";
    let long = "é".repeat(1_000);
    for (status, headers, body, cause, expected) in [
        (
            "404 Not Found",
            "",
            page.into(),
            Cause::Status(404),
            format!("the batch API answered 404 Not Found: {shown}"),
        ),
        ("500 Oops", "", "".into(), Cause::Status(500), "the batch API answered 500 Internal Server Error".to_owned()),
        (
            "401 Unauthorized",
            "Content-Encoding: gzip\r\n",
            compressed(b"{\"message\": \"no key\"}"),
            Cause::Status(401),
            "the batch API answered 401 Unauthorized: {\"message\": \"no key\"}".to_owned(),
        ),
        (
            "503 Service Unavailable",
            "",
            long.into_bytes(),
            Cause::Status(503),
            format!("the batch API answered 503 Service Unavailable: {}…", "é".repeat(98)),
        ),
        (
            "200 OK",
            "",
            page.into(),
            Cause::BadAnswer,
            format!("the answer is not {{\"members\": [...]}}: it is HTML or XML: {shown}"),
        ),
        (
            "200 OK",
            "",
            b"[{\"id\": 1}]".to_vec(),
            Cause::BadAnswer,
            "the answer is not {\"members\": [...]}: it is a bare list: [{\"id\": 1}]".to_owned(),
        ),
        (
            "201 Created",
            "",
            b"{\"members\": \"all\"}".to_vec(),
            Cause::BadAnswer,
            "the answer is not {\"members\": [...]}: its `members` is a text, a list is expected: {\"members\": \"all\"}"
                .to_owned(),
        ),
        (
            "200 OK",
            "Content-Encoding: br\r\n",
            b"x".to_vec(),
            Cause::BadAnswer,
            "the answer is compressed with `br`, gzip or no compression is expected".to_owned(),
        ),
    ] {
        let server = Server::start(move |_, _| Deed::answer(status, headers, &body)).await;
        let error = call(&server.url, PATIENT).await.unwrap_err();
        assert_eq!((error.cause, error.message), (cause, expected));
    }
}

/// A status is an answer, however its body goes on.
#[tokio::test]
async fn a_status_counts_although_its_body_breaks_off() {
    let cut = b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 1000\r\n\r\nno such depot".to_vec();
    let server = Server::start(move |_, _| Deed::Say(cut.clone())).await;
    let error = call(&server.url, PATIENT).await.unwrap_err();
    assert_eq!(error.cause, Cause::Status(422));
    assert_eq!(error.message, "the batch API answered 422 Unprocessable Entity: no such depot");
    let head = b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 1000\r\n\r\n".to_vec();
    let server = Server::start(move |_, _| Deed::Repeat(head.clone(), b"x".to_vec(), Duration::from_millis(50))).await;
    // Its head comes in this time, the end of its body does not.
    let error = call(&server.url, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.cause, Cause::Status(422));
}

/// Calls that were never received are kept apart from those that were not answered.
#[tokio::test]
async fn errors_say_where_a_call_ended() {
    let server = Server::start(|_, _| Deed::Die).await;
    assert_eq!(call(&server.url, PATIENT).await.unwrap_err().cause, Cause::Silence);
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", plain.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let secure = call(&url, PATIENT).await.unwrap_err();
    assert!(secure.cause == Cause::Tls && secure.message.contains("no secure connection"), "{secure:?}");
    let nowhere = call("https://nowhere.invalid/", PATIENT).await.unwrap_err();
    assert!(nowhere.cause == Cause::Unreachable && !nowhere.message.contains("nowhere.invalid/"), "{nowhere:?}");
    let gone = refusing();
    let url = format!("http://user:secret@{}/", gone.local_addr().unwrap());
    let refused = call(&url, PATIENT).await.unwrap_err();
    assert!(refused.cause == Cause::Unreachable && refused.message.contains("refused"), "{refused:?}");
    assert!(!refused.message.contains("secret"), "{refused:?}");
    let server = Server::start(|_, _| Deed::Hang).await;
    assert_eq!(call(&server.url, Duration::from_millis(300)).await.unwrap_err().cause, Cause::Silence);
}

/// Who looks at a task that failed sees what its batch API said.
#[tokio::test]
async fn a_record_keeps_what_was_answered() {
    for (deed, expected) in [
        (
            Deed::answer("422 Unprocessable Entity", "", "<p>no such depot</p>"),
            "Unprocessable Entity: <p>no such depot</p>",
        ),
        (
            Deed::answer("200 OK", "", "[]"),
            "gave up after 2 attempts: the answer is not {\"members\": [...]}: it is a bare list: []",
        ),
    ] {
        let server = Server::start(move |_, _| deed.clone()).await;
        let stack = stack(&server, 2, PATIENT).await;
        let (_, ids) = stack.open(2, true).await;
        let tasks = stack.register_items(&ids).await;
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
        assert!(batch.error(0).unwrap().ends_with(expected), "{:?}", batch.errors);
    }
}

/// One member's bad id spoils no other's outcome.
#[tokio::test]
async fn members_are_read_one_by_one() {
    let server = Server::start(|number, heard| {
        if number > 0 {
            return Deed::answer("200 OK", "", outcomes(heard, "succeeded"));
        }
        let member = |at: usize| heard.body["members"][at]["id"].as_str().unwrap().to_owned();
        let members = json!([
            {"id": "ORD-1", "outcome": "failed"},
            {"id": member(0).to_uppercase(), "outcome": "failed", "error": "too heavy"},
            {"id": member(1), "outcome": "succeeded"},
        ]);
        Deed::answer("200 OK", "", json!({ "members": members }).to_string())
    })
    .await;
    let stack = stack(&server, 5, PATIENT).await;
    let (_, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.failed.iter().collect::<Vec<_>>(), batch.error(0)), (vec![0], Some("too heavy")));
    let heard = server.heard();
    assert_eq!((heard.len(), heard[1].body["members"].as_array().unwrap().len()), (2, 1));
}
