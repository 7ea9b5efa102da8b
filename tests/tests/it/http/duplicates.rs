//! Dropped duplicates: `GET` says of which task each is one, and they are counted on their own.

use fanfold::ids::derived;
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{Server, parcel};

/// A server whose batch API does not take ORD-0.
async fn server() -> Server {
    let api = ScriptedApi::new(|call| {
        let refused = call.members.iter().any(|member| member.content.get().contains("ORD-0"));
        if refused { Err(CallError::for_good("no ORD-0")) } else { Ok(Answer::AllSucceeded) }
    });
    let policy = parcel(json!({"key": "content.order", "max_batch": 1, "key_after_failure": "keep"}));
    Server::over(TestStack::new(policy, api, Crash::never()).await)
}

fn task(id: Option<&str>, number: usize) -> Value {
    let mut task = json!({"kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{number}")}});
    if let Some(id) = id {
        task["id"] = json!(id);
    }
    task
}

fn counts(shown: &Value) -> [u64; 4] {
    ["total", "succeeded", "failed", "duplicates"].map(|name| shown[name].as_u64().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_task_that_fails_counts_as_neither() {
    for seal in [true, false] {
        let server = server().await;
        let opened =
            server.post("/fanouts", json!({"items": 4, "seal": seal, "notify": {"queue": "notices"}})).await.ok(201);
        let fanout = opened["id"].as_str().unwrap();
        let item = |index: usize| format!("{fanout}:{}:{index}", opened["groups"][0]["id"].as_str().unwrap());
        // The second and the third have the key of the first, which fails.
        let tasks: Vec<Value> =
            [0, 0, 0, 1].iter().enumerate().map(|(index, order)| task(Some(&item(index)), *order)).collect();
        for _ in 0..2 {
            let answer = server.post("/tasks", json!({"tasks": tasks})).await.ok(202);
            assert_eq!(answer["tasks"][2], json!({"id": item(2), "outcome": "duplicate", "of": item(0)}));
        }
        let shown = server.get(&format!("/fanouts/{fanout}?progress=exact")).await.ok(200);
        assert_eq!((counts(&shown), &shown["done"]), ([4, 0, 0, 2], &json!(2)), "seal: {seal}");
        server.send("POST", &format!("/fanouts/{fanout}/seal"), &[], "").await.ok(200);
        server.stack.drain().await;
        let shown = server.get(&format!("/fanouts/{fanout}")).await.ok(200);
        assert_eq!((counts(&shown), &shown["complete"]), ([4, 1, 1, 2], &json!(true)), "seal: {seal}");
        let notices = server.stack.completions().await;
        assert_eq!(counts(&json!(notices[0])), [4, 1, 1, 2], "seal: {seal}");
        for (index, status) in [(0, "failed"), (1, "duplicate"), (2, "duplicate"), (3, "succeeded")] {
            let shown = server.get(&format!("/tasks/{}", item(index))).await.ok(200);
            assert_eq!((&shown["status"], &shown["item"]), (&json!(status), &json!(status)), "{shown}");
            let of = (status == "duplicate").then(|| item(0));
            assert_eq!(shown["duplicate_of"], json!(of), "{shown}");
            assert_eq!(shown.get("content").is_none(), of.is_some(), "{shown}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn duplicates_that_a_client_knows_can_be_asked_for() {
    let server = server().await;
    let first = server.post("/tasks", json!({"tasks": [task(None, 1)]})).await.ok(202);
    let owner = first["tasks"][0]["id"].clone();
    let other = server.post("/tasks", json!({"tasks": [task(None, 1)]})).await.ok(202);
    let shown = server.get(&format!("/tasks/{}", other["tasks"][0]["id"].as_str().unwrap())).await.ok(200);
    assert_eq!((&shown["status"], &shown["duplicate_of"]), (&json!("duplicate"), &owner));
    assert_eq!((&shown["kind"], &shown["target"], shown.get("item")), (&json!("parcel"), &json!("117"), None));
    // Over the queue no answer names the id that a task is given, so it cannot be asked for.
    server.stack.send(QueueName::Register, task(None, 1)).await;
    let delivery = server.stack.take(QueueName::Register).await.remove(0);
    let id = derived::task(&delivery.message_id, 0);
    assert!(server.stack.hand(QueueName::Register, vec![delivery]).await.is_empty());
    server.get(&format!("/tasks/{id}")).await.problem(404, "unknown_task");
    let chosen = "01890000-0000-7000-8000-000000000007";
    server.stack.send(QueueName::Register, task(Some(chosen), 1)).await;
    server.stack.drain().await;
    assert_eq!(server.get(&format!("/tasks/{chosen}")).await.ok(200)["duplicate_of"], owner);
}

#[tokio::test(start_paused = true)]
async fn users_may_ack_duplicates() {
    let server = server().await;
    let opened = server.post("/fanouts", json!({"items": 4, "seal": true})).await.ok(201);
    let fanout = opened["id"].as_str().unwrap();
    let item = |index: usize| format!("{fanout}:{fanout}:{index}");
    let acks = json!({"items": [item(0), item(1)], "failed": [item(2)], "duplicates": [item(1), item(2), item(3)]});
    for _ in 0..2 {
        assert_eq!(server.post("/acks", acks.clone()).await.ok(200)["fanouts"][0]["complete"], true);
    }
    let shown = server.get(&format!("/fanouts/{fanout}")).await.ok(200);
    assert_eq!(counts(&shown), [4, 1, 1, 2], "failed counts before duplicate, and that before succeeded");
}
