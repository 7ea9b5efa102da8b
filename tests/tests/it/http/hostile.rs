//! What no route takes, and what a route answers when it cannot serve.

use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{NOBODY, Server, parcel};

/// Every route that takes a body: method, path, and the field it reads first with a value of a wrong type.
fn bodies() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("POST", "/fanouts".to_owned(), "items"),
        ("POST", format!("/fanouts/{NOBODY}/items"), "items"),
        ("POST", "/tasks".to_owned(), "tasks"),
        ("POST", "/acks".to_owned(), "items"),
        ("PUT", "/policies/letter".to_owned(), "target"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_json_is_refused() {
    let server = Server::start().await;
    let deep = |open: &str| format!("{{\"x\": {}", open.repeat(50_000));
    let seal = ("POST", format!("/fanouts/{NOBODY}/seal"), "x");
    for (method, path, _) in bodies().into_iter().chain([seal]) {
        for body in ["{".to_owned(), "{\"items\": 1,}".to_owned(), "x".to_owned(), deep("["), deep("{\"x\":")] {
            let reply = server.send(method, &path, &[], body).await;
            let (detail, _) = reply.problem(400, "malformed_json");
            assert!(detail.contains("line 1 column"), "{detail}");
        }
        let reply = server.send(method, &path, &[("content-type", "text/plain")], "{}").await;
        assert!(reply.problem(415, "unsupported_media_type").0.contains("`text/plain`"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::start().await;
    let huge = format!("{{\"x\": \"{}\"}}", "x".repeat(6 * 1_024 * 1_024));
    for (method, path, _) in bodies() {
        let (detail, _) = server.send(method, &path, &[], huge.clone()).await.problem(413, "too_large");
        assert!(detail.contains("6291456"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_another_shape_is_refused() {
    let server = Server::start().await;
    for (method, path, field) in bodies() {
        for body in ["[]", "[5, true]", "null", "\"x\"", "5"] {
            server.send(method, &path, &[], body).await.problem(422, "invalid_body");
        }
        let wrong = json!({field: {"x": 1}}).to_string();
        let (detail, fields) = server.send(method, &path, &[], wrong).await.problem(422, "invalid_body");
        assert!(detail.contains(field) && fields == [field], "{path}: {detail}");
        let unknown = json!({"surprise": 1}).to_string();
        let (detail, _) = server.send(method, &path, &[], unknown).await.problem(422, "invalid_body");
        assert!(detail.contains("`surprise`"), "{path}: {detail}");
    }
}

/// JSON knows one kind of number, so some clients write 3.0 for 3.
#[tokio::test(start_paused = true)]
async fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    let server = Server::start().await;
    let opened = server.send("POST", "/fanouts", &[], r#"{"items": 3.0}"#).await.ok(201);
    assert_eq!(opened["total"], 3);
    let items = format!("/fanouts/{}/items", opened["id"].as_str().unwrap());
    let added = server.send("POST", &items, &[], r#"{"items": 2e0}"#).await.ok(201);
    assert_eq!(added["groups"][0]["upto"], 2);
    let policy =
        r#"{"target": "kind", "batch_api": {"url": "https://example.com/", "timeout": 84.0}, "max_batch": 7.0}"#;
    let policy = server.send("PUT", "/policies/letter", &[], policy).await.ok(200);
    assert_eq!((&policy["batch_api"]["timeout"], &policy["max_batch"]), (&json!("1m 24s"), &json!(7)));
    for wrong in ["3.5", "-1.0", "-0.5", "4294967296.0", "1e300", "\"3\"", "true", "[3]"] {
        for path in ["/fanouts".to_owned(), items.clone()] {
            let reply = server.send("POST", &path, &[], format!("{{\"items\": {wrong}}}")).await;
            assert_eq!(reply.problem(422, "invalid_body").1, ["items"], "{wrong}");
        }
    }
}

/// A URL that cannot be called is refused at once, not by every attempt to call it.
#[tokio::test(start_paused = true)]
async fn a_url_that_can_not_be_called_is_refused() {
    let server = Server::start().await;
    for url in ["https://example.com:99999/", "https://0.com*", "https://1.2.3.999/", "https://example.com/{id}"] {
        let reply = server.post("/fanouts", json!({"notify": {"url": url}})).await;
        assert_eq!(reply.problem(422, "invalid_destination").1, ["notify.url"], "{url}");
        let policy = json!({"target": "kind", "batch_api": {"url": url}});
        let reply = server.put("/policies/letter", policy).await;
        assert_eq!(reply.problem(422, "invalid_policy").1, ["batch_api.url"], "{url}");
    }
    // A queue's URL, too; others are given by their ARN.
    let queue = |host| json!({"sqs": format!("{host}/123456789012/ends")});
    for host in ["http://sqs.eu-west-1.amazonaws.com", "http://10.0.0.7:4566", "https://sqs..amazonaws.com"] {
        let reply = server.post("/fanouts", json!({"notify": queue(host)})).await;
        assert_eq!(reply.problem(422, "invalid_destination").1, ["notify.sqs"], "{host}");
        let policy = json!({"target": "kind", "batch_api": {"url": "https://example.com/"}, "notify": queue(host)});
        let reply = server.put("/policies/letter", policy).await;
        assert_eq!(reply.problem(422, "invalid_policy").1, ["notify.sqs"], "{host}");
    }
    for host in ["https://sqs.eu-west-1.amazonaws.com", "http://localhost:4566", "http://sqs.eu-west-1.localhost:80"] {
        server.post("/fanouts", json!({"notify": queue(host)})).await.ok(201);
    }
    for url in ["https://example.com:65535/", "http://[::1]:8080/x", "https://user@example.com/x?y"] {
        server.post("/fanouts", json!({"notify": {"url": url}})).await.ok(201);
    }
}

#[tokio::test(start_paused = true)]
async fn a_huge_value_does_not_come_back() {
    let server = Server::start().await;
    let huge = "x".repeat(1_000_000);
    let kind = format!("/policies/{}", "k".repeat(5_000));
    for reply in [
        server.post("/fanouts", json!({"items": huge})).await,
        server.post("/fanouts", json!({huge.clone(): 1})).await,
        server.post("/fanouts", json!({"notify": {"url": huge}})).await,
        server.post("/tasks", json!({"tasks": [{"kind": huge, "content": 1}]})).await,
        server.post("/acks", json!({"items": [huge]})).await,
        server.put("/policies/letter", json!({"kind": huge, "target": huge, "batch_api": {"url": huge}})).await,
        server.put(&kind, json!({})).await,
        server.get(&format!("/{}", "x".repeat(5_000))).await,
    ] {
        assert!((400..500).contains(&reply.status), "{}", reply.status);
        assert!(reply.body.to_string().len() < 8_000, "{}", reply.body.to_string().len());
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_that_can_not_be_used_is_refused() {
    let server = Server::start().await;
    for (path, body) in [
        ("/fanouts".to_owned(), json!({})),
        (format!("/fanouts/{NOBODY}/items"), json!({"items": 1})),
        ("/tasks".to_owned(), json!({"tasks": [{"kind": "parcel", "content": {"depot": "117"}}]})),
    ] {
        for key in ["", "a b", "ä", &"x".repeat(256)] {
            let reply = server.post_once(&path, key, body.clone()).await;
            let (detail, _) = reply.problem(400, "invalid_idempotency_key");
            assert!(detail.contains("255"), "{detail}");
        }
    }
    assert_eq!(server.stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_none_is_refused() {
    let server = Server::start().await;
    for (method, path) in [
        ("GET", "/fanouts/xyz"),
        ("POST", "/fanouts/xyz/items"),
        ("POST", "/fanouts/xyz/seal"),
        ("GET", "/tasks/xyz"),
        ("GET", "/tasks/key:xyz"),
        ("GET", "/batches/xyz"),
        ("GET", "/policies/x:yz"),
        ("PUT", "/policies/x:yz"),
        ("DELETE", "/policies/x:yz"),
    ] {
        let (detail, _) = server.send(method, path, &[], "{\"items\": 1}").await.problem(400, "invalid_id");
        assert!(detail.contains("yz`"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_none_is_refused() {
    let server = Server::start().await;
    for (method, path) in
        [("GET", "/index"), ("GET", "/fanouts/"), ("POST", "/task"), ("DELETE", "/x/y"), ("GET", "/acks/1")]
    {
        let (detail, _) = server.send(method, path, &[], "").await.problem(404, "unknown_route");
        assert!(detail.contains(&format!("{method} {path}")), "{detail}");
    }
    for (method, path, allowed) in [
        ("PUT", "/fanouts", "POST,GET,HEAD"),
        ("POST", "/policies/parcel", "GET,HEAD,PUT,DELETE"),
        ("PUT", "/tasks", "GET,HEAD,POST"),
        ("PUT", "/acks", "POST"),
    ] {
        let reply = server.send(method, path, &[], "").await;
        assert!(reply.problem(405, "method_not_allowed").0.contains(method));
        assert_eq!(reply.headers["allow"], allowed);
    }
}

#[tokio::test(start_paused = true)]
async fn health_is_reported() {
    let server = Server::start().await;
    let health = server.get("/health").await.ok(200);
    assert_eq!(health, json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}));
}

/// A worker cut off from its tables and queues at its first request says so, and nothing of theirs.
#[tokio::test(start_paused = true)]
async fn what_can_not_be_reached_is_unavailable() {
    let item = format!("{NOBODY}:{NOBODY}:0");
    for (method, path, body) in [
        ("GET", "/health".to_owned(), Value::Null),
        ("GET", "/policies".to_owned(), Value::Null),
        ("GET", format!("/tasks/{NOBODY}"), Value::Null),
        ("GET", format!("/batches/{NOBODY}"), Value::Null),
        ("GET", format!("/fanouts/{NOBODY}"), Value::Null),
        ("POST", "/fanouts".to_owned(), json!({})),
        ("POST", format!("/fanouts/{NOBODY}/items"), json!({"items": 1})),
        ("POST", "/acks".to_owned(), json!({"items": [item]})),
        ("POST", "/tasks".to_owned(), json!({"tasks": [{"kind": "parcel", "content": {"depot": "117"}}]})),
        ("DELETE", "/policies/parcel".to_owned(), Value::Null),
        ("PUT", "/policies/letter".to_owned(), json!({"target": "kind", "batch_api": {"url": "https://example.com/"}})),
    ] {
        let crash = Crash::new(1, Moment::Before);
        let server = Server::over(TestStack::new(parcel(json!({})), ScriptedApi::always_succeeds(), crash).await);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = server.send(method, &path, &[], body).await;
        let (detail, _) = reply.problem(503, "unavailable");
        assert!(server.stack.crash.struck().is_some(), "{path}");
        assert!(reply.headers.contains_key("retry-after"));
        for inner in ["Table", "Queue", "DynamoDB", "SQS"] {
            assert!(!detail.contains(inner), "{detail}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_index_leads_to_what_there_is() {
    let server = Server::start().await;
    let index = server.get("/").await.ok(200);
    assert_eq!(index["name"], "fanfold");
    let description = server.get("/openapi.json").await.ok(200);
    for (name, path) in index["links"].as_object().unwrap() {
        assert!(description["paths"][path.as_str().unwrap()].is_object(), "{name}");
    }
    let written: Value = serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
    assert_eq!(description, written);
    for (accept, page) in
        [("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", true), ("*/*", false), ("text/plain", false)]
    {
        let request = axum::http::Request::get("/").header("accept", accept).body(axum::body::Body::empty()).unwrap();
        let reply = tower::ServiceExt::oneshot(server.router.clone(), request).await.unwrap();
        let kind = reply.headers()["content-type"].to_str().unwrap().starts_with("text/html");
        assert_eq!((reply.status().as_u16(), kind), (200, page), "{accept}");
    }
}
