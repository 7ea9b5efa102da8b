//! A route is described to return exactly the problems that it returns: whatever another test gets is looked up in the
//! description, and here whatever is described is got.

use std::time::Duration;

use fanfold::limits::SWITCHES_PER_KIND_MAX;
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::dev::{session, without_sessions};
use super::{HttpAnswer, NOBODY, Server, description, parcel};

/// What any route may return, and no request to these routers can ask for.
const NOT_ASKED_FOR: [&str; 4] = ["not_for_browsers", "unreadable_body", "internal", "unavailable"];

/// A body that the route takes.
fn taken(template: &str) -> Value {
    match template {
        "/fanouts" => json!({"items": 3}),
        "/fanouts/open" => json!({"fanouts": [taken("/fanouts")]}),
        "/fanouts/{id}/items" => json!({"items": 2}),
        "/counts" => json!({"counts": [{"fanout": NOBODY}]}),
        "/tasks" => json!({"tasks": [{"kind": "parcel", "content": {"depot": "x"}}]}),
        "/policies/{kind}" => json!({"target": "content.depot", "batch_api": {"url": "https://example.com"}}),
        "/policies/{kind}/dev" => session(NOBODY),
        "/batches/{id}/outcomes" => json!({"members": [{"id": NOBODY, "outcome": "succeeded"}]}),
        "/pause" | "/resume" | "/drain" | "/tasks/cancel" | "/tasks/reset" => json!({"kind": "parcel"}),
        _ => json!({}),
    }
}

/// A body that is not taken because of its values.
fn refused(code: &str, template: &str) -> Value {
    match (code, template) {
        (_, "/fanouts/open") => json!({"fanouts": [refused(code, "/fanouts")]}),
        ("out_of_range", "/fanouts") => json!({"items": 1_000_000_000}),
        ("out_of_range", _) => json!({"items": 0}),
        ("invalid_destination", _) => json!({"items": 1, "notify": {"url": "ftp://example.com"}}),
        ("invalid_follow", _) => json!({"items": 1, "parent": format!("{NOBODY}:{NOBODY}:0")}),
        ("invalid_producer", _) => json!({"producer": {"source": {"url": "ftp://example.com"}}}),
        ("invalid_tasks", _) => json!({"tasks": [{"kind": "nothing", "content": {}}]}),
        ("invalid_scope", _) => json!({}),
        ("unknown_policy", "/policies/{kind}/dev") => taken(template),
        ("unknown_policy", _) => json!({"kind": "nothing"}),
        ("invalid_acks", _) => json!({"items": [format!("{NOBODY}:{NOBODY}:0")]}),
        ("invalid_policy", _) => json!({"target": "(", "batch_api": {"url": "https://example.com"}}),
        ("invalid_dev_session", _) => json!({"session": NOBODY, "queue": "AckQueue"}),
        ("invalid_reissue", _) => json!({"max_batch": 0}),
        ("idempotency_key_reused", "/fanouts/{id}/reissue") => json!({"missing": true}),
        ("idempotency_key_reused", "/tasks") => json!({"tasks": [{"kind": "parcel", "content": {"depot": "y"}}]}),
        ("idempotency_key_reused", _) => json!({"items": 1}),
        _ => taken(template),
    }
}

/// A fan-out whose only item failed.
async fn failed(server: &Server) -> String {
    let opened = server.post("/fanouts", json!({"items": 1, "seal": true})).await.ok(201);
    let id = opened["id"].as_str().unwrap().to_owned();
    server.post("/acks", json!({"failed": [format!("{id}:{id}:0")]})).await.ok(200);
    id
}

/// The answer of a request that asks for a problem.
#[allow(clippy::too_many_lines, reason = "a table of cases")]
async fn ask_for(server: &Server, code: &str, method: &str, template: &str) -> HttpAnswer {
    let fanout = server.post("/fanouts", json!({"items": 1})).await.ok(201)["id"].as_str().unwrap().to_owned();
    let id = if code.starts_with("unknown_") { NOBODY } else { &fanout };
    let path = template.replace("{id}", id).replace("{kind}", "nothing").replace("{step}", "ack");
    let body = refused(code, template).to_string();
    match code {
        "invalid_id" if template.contains('{') => {
            let path = template.replace("{id}", "x").replace("{kind}", "%20").replace("{step}", "api");
            server.send(method, &path, &[], body).await
        }
        "invalid_parameter" if template == "/policies/{kind}" => {
            server.send(method, &format!("{path}?force=perhaps"), &[], body).await
        }
        "dev_sessions_off" => {
            let server = without_sessions(Server::start().await);
            server.send(method, &path, &[], body).await
        }
        "dev_session_held" => {
            let path = template.replace("{kind}", "parcel");
            server.put(&path, session(&fanout)).await.ok(200);
            server.send(method, &format!("{path}?session={NOBODY}"), &[], body).await
        }
        "dev_session_ended" => {
            let body = json!({"renew": true, "session": NOBODY, "queue": session(NOBODY)["queue"]});
            server.send(method, &template.replace("{kind}", "parcel"), &[], body.to_string()).await
        }
        "invalid_parameter" if template.ends_with("/dev") => {
            server.send(method, &format!("{path}?session=me"), &[], body).await
        }
        "policy_in_use" => {
            server.post("/tasks", taken("/tasks")).await.ok(202);
            server.send(method, "/policies/parcel", &[], body).await
        }
        "invalid_parameter" if !template.starts_with("/fanouts") || template.ends_with("/reissue") => {
            server.send(method, &format!("{path}?after=%25&paused=none"), &[], body).await
        }
        "invalid_scope" if method == "GET" => server.get(&format!("{path}?target=x")).await,
        "wrong_token" | "invalid_outcomes" => {
            let policy = parcel(json!({"batch_api": {"url": "https://example.com", "answers_within": "1h"}}));
            let stack = TestStack::new(policy, ScriptedApi::answers_later(), Crash::never()).await;
            let server = Server::over(stack);
            server.post("/tasks", taken("/tasks")).await.ok(202);
            server.stack.pass_time(Duration::from_secs(20)).await;
            let token = if code == "wrong_token" { "1.x".to_owned() } else { server.stack.last_token() };
            let path = template.replace("{id}", &server.stack.only_batch().await.id.to_string());
            server.send(method, &path, &[("fanfold-token", &token)], body).await
        }
        "unknown_policy" if template.ends_with("/request") => {
            server.post("/tasks", taken("/tasks")).await.ok(202);
            server.stack.drain().await;
            server.send("DELETE", "/policies/parcel?force=true", &[], "").await.ok(200);
            let batch = server.stack.only_batch().await.id.to_string();
            server.send(method, &template.replace("{id}", &batch), &[], body).await
        }
        "unknown_task" if template == "/tasks" => server.get("/tasks?kind=parcel&key=none").await,
        "task_not_waiting" | "task_not_failed" => {
            let tasks = server.post("/tasks", taken("/tasks")).await.ok(202);
            server.stack.drain().await;
            server.send(method, &path.replace(&fanout, tasks["tasks"][0]["id"].as_str().unwrap()), &[], body).await
        }
        "task_is_item" => {
            let groups = server.get(&format!("/fanouts/{fanout}/groups")).await.ok(200);
            let item = format!("{fanout}:{}:0", groups["groups"][0]["id"].as_str().unwrap());
            let task = json!({"id": item, "kind": "parcel", "content": {"depot": "x"}});
            server.post("/tasks", json!({"tasks": [task]})).await.ok(202);
            server.send(method, &path.replace(&fanout, &item), &[], body).await
        }
        "invalid_tasks" if template.ends_with("/reset") => {
            let tasks = server.post("/tasks", taken("/tasks")).await.ok(202);
            let task = tasks["tasks"][0]["id"].as_str().unwrap();
            server.send("DELETE", &format!("/tasks/{task}"), &[], "").await.ok(200);
            let policy = json!({"target": "content.other", "batch_api": {"url": "https://example.com"}});
            server.send("PUT", "/policies/parcel", &[], policy.to_string()).await.ok(200);
            // Its policy is cached for some seconds.
            tokio::time::sleep(Duration::from_secs(10)).await;
            server.send(method, &path.replace(&fanout, task), &[], body).await
        }
        "fanout_reissued" => {
            let path = path.replace(&fanout, &failed(server).await);
            server.send(method, &path, &[], body.clone()).await.ok(201);
            server.send(method, &path, &[], body).await
        }
        "nothing_to_reissue" => {
            let empty = server.post("/fanouts", json!({"seal": true})).await.ok(201);
            server.send(method, &path.replace(&fanout, empty["id"].as_str().unwrap()), &[], body).await
        }
        "too_many_switches" => {
            for target in 0..SWITCHES_PER_KIND_MAX {
                server.post("/pause", json!({"kind": "parcel", "target": target.to_string()})).await.ok(200);
            }
            server.send(method, &path, &[], body).await
        }
        "invalid_parameter" => {
            server
                .get(&format!(
                    "{path}?progress=none&state=none{}",
                    if template.ends_with("/results") { "&after=x" } else { "" }
                ))
                .await
        }
        "malformed_json" => server.send(method, &path, &[], "{").await,
        "too_large" => server.send(method, &path, &[], " ".repeat(8 << 20)).await,
        "unsupported_media_type" => server.send(method, &path, &[("content-type", "text/plain")], body).await,
        "invalid_body" => server.send(method, &path, &[], "{\"nothing\": 1}").await,
        "invalid_idempotency_key" => server.send(method, &path, &[("idempotency-key", " ")], body).await,
        "idempotency_key_reused" if template.ends_with("/reissue") => {
            let path = path.replace(&fanout, &failed(server).await);
            server.post_once(&path, "k", taken(template)).await.ok(201);
            server.post_once(&path, "k", refused(code, template)).await
        }
        "idempotency_key_reused" => {
            server.post_once(&path, "k", taken(template)).await;
            server.post_once(&path, "k", refused(code, template)).await
        }
        "fanout_produced" | "fanout_not_open" if code == "fanout_produced" || template.contains("/producer/") => {
            let producer = json!({"source": {"url": "https://example.com"}});
            let opened = server.post("/fanouts", json!({"producer": producer})).await.ok(201);
            if code == "fanout_not_open" {
                server.stack.drain().await;
            }
            server.send(method, &path.replace(&fanout, opened["id"].as_str().unwrap()), &[], body).await
        }
        "fanout_not_open" => {
            server.post(&format!("/fanouts/{id}/seal"), json!({})).await.ok(200);
            server.send(method, &path, &[], body).await
        }
        "fanout_expired" => {
            server.stack.clock.skip(Duration::from_secs(8 * 86_400));
            server.stack.sweep().await;
            server.send(method, &path, &[], body).await
        }
        "fanout_failed" => {
            let strict = server.post("/fanouts", json!({"items": 1, "tolerated_failures": 0})).await.ok(201);
            let strict_id = strict["id"].as_str().unwrap();
            let item = format!("{strict_id}:{}:0", strict["groups"][0]["id"].as_str().unwrap());
            server.post("/acks", json!({"failed": [item]})).await.ok(200);
            server.send(method, &path.replace(&fanout, strict_id), &[], body).await
        }
        "wrong_mode" => {
            let estimated = server.post("/fanouts", json!({"mode": "estimated"})).await.ok(201);
            server.send(method, &path.replace(&fanout, estimated["id"].as_str().unwrap()), &[], body).await
        }
        "fanout_completed" => {
            let empty = server.post("/fanouts", json!({"seal": true})).await.ok(201);
            server.send(method, &path.replace(&fanout, empty["id"].as_str().unwrap()), &[], body).await
        }
        _ => server.send(method, &path, &[], body).await,
    }
}

#[tokio::test(start_paused = true)]
async fn every_problem_described_is_returned() {
    for (method, template, codes) in description::problems() {
        for code in codes.iter().filter(|code| !NOT_ASKED_FOR.contains(&code.as_str())) {
            let server = Server::start().await;
            let reply = ask_for(&server, code, &method, &template).await;
            assert_eq!(reply.body["code"], **code, "{method} {template}: {} {}", reply.status, reply.body);
        }
    }
}
