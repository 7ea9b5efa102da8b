//! `POST /tasks` with a stream: each line has a result of its own.

use std::collections::BTreeSet;

use fanfold::ids::TaskId;
use fanfold::limits::{BODY_BYTES_MAX, TASKS_PER_REQUEST_MAX};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request};
use serde_json::{Value, json};

use super::{NOBODY, Server, parcel};

fn line(order: usize) -> String {
    json!({"kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{order}")}}).to_string()
}

fn lines(orders: impl IntoIterator<Item = usize>) -> String {
    orders.into_iter().map(|order| line(order) + "\n").collect()
}

/// The outcome of each line.
fn outcomes(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["outcome"].as_str().unwrap()).collect()
}

fn ids(answers: &[Value]) -> Vec<TaskId> {
    answers.iter().filter_map(|answer| answer["id"].as_str()).map(|id| id.parse().unwrap()).collect()
}

/// How many tasks batches have.
async fn batched(server: &Server) -> usize {
    server.stack.all_batches().await.iter().map(|batch| batch.members.len()).sum()
}

#[tokio::test(start_paused = true)]
async fn each_line_is_answered_in_order_and_bad_ones_fail_alone() {
    let server = Server::start().await;
    let fanout = server.post("/fanouts", json!({"items": 2, "seal": true})).await.ok(201);
    let item = |index: usize| format!("{}:{}:{index}", fanout["id"].as_str().unwrap(), fanout["id"].as_str().unwrap());
    let of_item = |index: usize| json!({"id": item(index), "kind": "parcel", "content": {"depot": "117"}}).to_string();
    let body = [
        line(0),
        "{".to_owned(),
        String::new(),
        "[]".to_owned(),
        json!({"kind": "parcel"}).to_string(),
        json!({"kind": "letter", "content": 1}).to_string(),
        json!({"kind": "parcel", "content": {}}).to_string(),
        of_item(0),
        of_item(0),
        of_item(2),
        of_item(1),
        line(1),
    ];
    let answers = server.stream(None, body.join("\n")).await.unwrap();
    let shown: Vec<(u64, &str, &str, &str)> = answers
        .iter()
        .map(|answer| {
            let text = |name: &str| answer[name].as_str().unwrap_or_default();
            (answer["line"].as_u64().unwrap(), text("outcome"), text("code"), text("field"))
        })
        .collect();
    let expected = [
        (1, "registered", "", ""),
        (2, "refused", "malformed_json", ""),
        (4, "refused", "invalid_body", ""),
        (5, "refused", "invalid_body", "content"),
        (6, "refused", "invalid_tasks", "kind"),
        (7, "refused", "invalid_tasks", "target"),
        (8, "registered", "", ""),
        (9, "refused", "invalid_tasks", "id"),
        (10, "refused", "invalid_tasks", "id"),
        (11, "registered", "", ""),
        (12, "registered", "", ""),
    ];
    assert_eq!(shown, expected);
    assert!(answers.iter().filter(|it| it["outcome"] == "refused").all(|it| it["problem"].is_string()));
    assert!(answers[1]["problem"].as_str().unwrap().contains("at column 1"), "{}", answers[1]);
    server.stack.drain().await;
    server.stack.assert_settled(&ids(&answers), 100).await;
    let ended = server.get(&format!("/fanouts/{}", fanout["id"].as_str().unwrap())).await.ok(200);
    assert_eq!((&ended["complete"], &ended["succeeded"]), (&json!(true), &json!(2)));
}

/// A line that is refused takes no id from a later one.
#[tokio::test(start_paused = true)]
async fn an_id_belongs_to_the_first_good_line() {
    let server = Server::start().await;
    let id = server.stack.world.uuid();
    let of_kind = |kind: &str| json!({"id": id, "kind": kind, "content": {"depot": "117"}}).to_string();
    let body = [of_kind("letter"), of_kind("parcel"), of_kind("parcel")].join("\n");
    let answers = server.stream(None, body).await.unwrap();
    assert_eq!(outcomes(&answers), ["refused", "registered", "refused"]);
    assert_eq!((&answers[0]["field"], &answers[2]["field"]), (&json!("kind"), &json!("id")));
}

#[tokio::test(start_paused = true)]
async fn line_ends_of_any_system_and_other_names_of_the_type_are_taken() {
    let server = Server::start().await;
    let body = format!("\u{feff}{}\r\n\r\n {} \r\n", line(0), line(1));
    let answers = server.stream(None, body).await.unwrap();
    assert_eq!(answers.iter().map(|answer| &answer["line"]).collect::<Vec<_>>(), [&json!(1), &json!(3)]);
    for kind in ["application/ndjson", "application/jsonl; charset=utf-8", "APPLICATION/X-NDJSON"] {
        let request = axum::http::Request::post("/tasks").header("content-type", kind);
        let request = request.body(axum::body::Body::from(line(2))).unwrap();
        let reply = tower::ServiceExt::oneshot(server.router.clone(), request).await.unwrap();
        assert_eq!(reply.status(), 202, "{kind}");
    }
    let (detail, _) = server
        .send("POST", "/tasks", &[("content-type", "application/xml")], lines(0..1))
        .await
        .problem(415, "unsupported_media_type");
    assert!(detail.contains("application/x-ndjson"), "{detail}");
    // The other routes take no streams.
    let headers = [("content-type", "application/x-ndjson")];
    server.send("POST", "/acks", &headers, "{}").await.problem(415, "unsupported_media_type");
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_the_limits_of_a_request() {
    let server = Server::start().await;
    for (body, part) in [
        (String::new(), "has 0 tasks"),
        ("\n \r\n".to_owned(), "has 0 tasks"),
        ("x\n".repeat(TASKS_PER_REQUEST_MAX + 1), "has 10001 tasks, 1 to 10000 are allowed"),
        ("x\n".repeat(BODY_BYTES_MAX / 2), "has 3145728 tasks"),
    ] {
        let (detail, fields) = server.stream(None, body).await.unwrap_err().problem(422, "invalid_tasks");
        assert!(detail.contains(part) && fields == ["tasks"], "{detail}");
    }
    let (detail, _) = server.stream(None, "x".repeat(BODY_BYTES_MAX + 1)).await.unwrap_err().problem(413, "too_large");
    assert!(detail.contains("6291456"), "{detail}");
    // As many as may be, empty lines aside; nothing of what is refused is stored.
    let most = "x\n\n".repeat(TASKS_PER_REQUEST_MAX);
    let answers = server.stream(None, most).await.unwrap();
    assert_eq!(answers.len(), TASKS_PER_REQUEST_MAX);
    assert_eq!(answers.last().unwrap()["line"], 2 * TASKS_PER_REQUEST_MAX - 1);
    assert_eq!(server.stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_stream_registers_nothing_twice() {
    let server = Server::start().await;
    let first = server.stream(Some("k"), lines(0..3) + "{\n").await.unwrap();
    assert_eq!(outcomes(&first), ["registered", "registered", "registered", "refused"]);
    // Blanks and the order of fields say nothing else.
    let loose = lines(0..3).replace("{\"content\"", "{ \"content\"").replace('\n', "\r\n\n") + "{\n";
    let again = server.stream(Some("k"), loose).await.unwrap();
    assert_eq!(outcomes(&again), ["known", "known", "known", "refused"]);
    assert_eq!(ids(&again), ids(&first));
    server.stack.drain().await;
    assert_eq!(batched(&server).await, 3);
    // Without a key each is a request of its own.
    assert_ne!(ids(&server.stream(None, line(0)).await.unwrap()), ids(&server.stream(None, line(0)).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_used_key_is_refused_for_any_other_stream() {
    let server = Server::start().await;
    server.stream(Some("k"), lines(0..3) + "x\n").await.unwrap();
    server.stack.take(QueueName::Elect).await;
    let mut with_id: Value = serde_json::from_str(&line(1)).unwrap();
    with_id["id"] = json!(NOBODY);
    let with_id = with_id.to_string();
    for (what, body) in [
        ("shorter", lines(0..3)),
        ("longer", lines(0..3) + "x\n" + &line(3)),
        ("another order", lines([0, 2, 1]) + "x\n"),
        ("another content", lines([0, 1, 7]) + "x\n"),
        ("another bad line", lines(0..3) + "y\n"),
        ("a mended line", lines(0..4)),
        ("an id", line(0) + "\n" + &with_id + "\n" + &line(2) + "\nx\n"),
    ] {
        server.stream(Some("k"), body).await.unwrap_err().problem(422, "idempotency_key_reused");
        assert_eq!(server.stack.backlog().await, 0, "{what}");
    }
    let tasks: Vec<Value> = (0..3).map(|order| serde_json::from_str(&line(order)).unwrap()).collect();
    let reply = server.post_once("/tasks", "k", json!({"tasks": tasks})).await;
    reply.problem(422, "idempotency_key_reused");
    server.post_once("/tasks", "j", json!({"tasks": tasks})).await.ok(202);
    server.stream(Some("j"), lines(0..3)).await.unwrap_err().problem(422, "idempotency_key_reused");
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_good_line_uses_up_no_key() {
    let server = Server::start().await;
    assert_eq!(outcomes(&server.stream(Some("k"), "x\n{}\n").await.unwrap()), ["refused", "refused"]);
    assert_eq!(outcomes(&server.stream(Some("k"), lines(0..1)).await.unwrap()), ["registered"]);
}

/// What could not be accepted at first is registered by the same request later, beside what is known.
#[tokio::test(start_paused = true)]
async fn a_repeated_stream_registers_what_can_be_accepted_only_now() {
    let server = Server::start().await;
    let letter = json!({"kind": "letter", "content": {"town": "Holtsville"}}).to_string();
    let body = line(0) + "\n" + &letter + "\n" + &line(1);
    let first = server.stream(Some("k"), body.clone()).await.unwrap();
    assert_eq!(outcomes(&first), ["registered", "refused", "registered"]);
    let policy = json!({"target": "content.town", "batch_api": {"url": "https://example.com/letters"}});
    server.put("/policies/letter", policy).await.ok(200);
    let again = server.stream(Some("k"), body).await.unwrap();
    assert_eq!(outcomes(&again), ["known", "registered", "known"]);
    assert_eq!([&again[0]["id"], &again[2]["id"]], [&first[0]["id"], &first[2]["id"]]);
    server.stack.drain().await;
    assert_eq!(batched(&server).await, 3);
}

/// Three calls of 25 statements at most, and a bad line in each.
fn crowd() -> String {
    (0..60).map(|order| if order % 20 == 7 { "{\n".to_owned() } else { line(order) + "\n" }).collect()
}

/// A worker that dies over a stream leaves some of its tasks; repeated, each is there once. How many were left, if it died.
async fn run(crash: Crash) -> Option<usize> {
    let server = Server::over(TestStack::new(parcel(json!({})), ScriptedApi::always_succeeds(), crash).await);
    let first = server.stream(Some("k"), crowd()).await;
    server.stack.crash.revive();
    server.stack.drain().await;
    server.stack.sweep().await;
    server.stack.drain().await;
    let left = batched(&server).await;
    let again = server.stream(Some("k"), crowd()).await.unwrap();
    assert_eq!(again.len(), 60);
    let known = again.iter().filter(|answer| answer["outcome"] == "known").count();
    assert_eq!((known, ids(&again).len()), (left, 57));
    server.stack.drain().await;
    server.stack.assert_settled(&ids(&again), 100).await;
    first.is_err().then_some(left)
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_worker_dies_is_completed_by_its_repetition() {
    for moment in [Moment::Before, Moment::After] {
        let left: BTreeSet<usize> = at_every_request(moment, run).await.into_iter().collect();
        assert!(left.contains(&0) && left.iter().any(|left| (1..57).contains(left)), "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_streams_at_once_under_one_key_one_is_stored() {
    let server = Server::start().await;
    let (one, other) = tokio::join!(server.stream(Some("k"), lines(0..30)), server.stream(Some("k"), lines(30..70)));
    assert!(one.is_ok() != other.is_ok());
    server.stack.drain().await;
    assert_eq!(batched(&server).await, if one.is_ok() { 30 } else { 40 });
    let (one, other) = tokio::join!(server.stream(Some("j"), lines(0..30)), server.stream(Some("j"), lines(0..30)));
    assert_eq!(ids(&one.unwrap()), ids(&other.unwrap()), "the same one is stored once");
    server.stack.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_served_is_no_half_answer() {
    let crash = Crash::new(1, Moment::Before);
    let server = Server::over(TestStack::new(parcel(json!({})), ScriptedApi::always_succeeds(), crash).await);
    let reply = server.stream(Some("k"), lines(0..3)).await.unwrap_err();
    reply.problem(503, "unavailable");
    assert!(reply.headers.contains_key("retry-after"));
}

#[tokio::test(start_paused = true)]
async fn hostile_lines_are_answered_and_bounded() {
    let server = Server::start().await;
    let text = |content: &str| format!("{{\"kind\": \"parcel\", \"content\": {content}}}").into_bytes();
    let huge = "x".repeat(1_000_000);
    let hostile: Vec<Vec<u8>> = vec![
        b"{\"kind\": \"parcel\", \"content\": \"\xff\"}".to_vec(),
        text(&"[".repeat(100_000)),
        text(&format!("{}{}", "[".repeat(40), "]".repeat(40))),
        text("\"\\ud800\""),
        text("1e400"),
        text("1, \"content\": 2"),
        text("1, \"surprise\": 2"),
        text(&format!("\"{huge}\"")),
        format!("{{\"kind\": \"{huge}\", \"content\": 1}}").into_bytes(),
        format!("{{\"{huge}\": 1}}").into_bytes(),
        b"\x00".to_vec(),
        b"null".to_vec(),
        text("1} {\"kind\": \"parcel\""),
    ];
    let mut body = hostile.join(&b'\n');
    body.extend_from_slice(format!("\n{}", line(0)).as_bytes());
    let answers = server.stream(Some("k"), body).await.unwrap();
    let mut expected = vec!["refused"; hostile.len()];
    expected.push("registered");
    assert_eq!(outcomes(&answers), expected);
    for (answer, line) in answers.iter().zip(&hostile) {
        let problem = answer["problem"].as_str().unwrap_or_default();
        assert!(
            (1..2_000).contains(&problem.len()),
            "{}: {problem}",
            String::from_utf8_lossy(&line[..line.len().min(60)])
        );
        assert!(answer.to_string().len() < 4_000);
    }
    server.stack.drain().await;
    assert_eq!(batched(&server).await, 1);
}
