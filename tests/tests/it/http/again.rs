//! What is done again over HTTP: reissues, resets, dead letters.

use fanfold_batch_api::{Answer, CallError, Cause};
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{NOBODY, Server, parcel};

/// A server whose batch API refuses everything.
async fn server() -> Server {
    let api = ScriptedApi::new(|_| Err::<Answer, _>(CallError::new(Cause::Status(422), "refused")));
    Server::over(TestStack::new(parcel(json!({})), api, Crash::never()).await)
}

fn task(id: Option<&str>) -> Value {
    let mut task = json!({"kind": "parcel", "content": {"depot": "117"}});
    if let Some(id) = id {
        task["id"] = id.into();
    }
    task
}

/// A fan-out of one item, which failed.
async fn failed(server: &Server) -> (String, String) {
    let opened = server.post("/fanouts", json!({"items": 1, "seal": true, "user_key": "mine"})).await.ok(201);
    let id = opened["id"].as_str().unwrap().to_owned();
    let item = format!("{id}:{id}:0");
    server.post("/tasks", json!({"tasks": [task(Some(&item))]})).await.ok(202);
    server.stack.drain().await;
    server.stack.sweep().await;
    server.stack.drain().await;
    (id, item)
}

#[tokio::test(start_paused = true)]
async fn a_reissue_and_its_fanout_show_each_other() {
    let server = server().await;
    let (old, item) = failed(&server).await;
    let path = format!("/fanouts/{old}/reissue");
    let body = json!({"max_batch": 1, "contents": [{"id": item, "content": {"depot": "118"}}]});
    let new = server.post_once(&path, "k", body.clone()).await.ok(201);
    assert_eq!((&new["reissue_of"], &new["user_key"], &new["state"]), (&json!(old), &json!("mine"), &json!("open")));
    assert_eq!(server.post_once(&path, "k", body).await.ok(201)["id"], new["id"]);
    server.post_once(&path, "k", json!({})).await.problem(422, "idempotency_key_reused");
    let shown = server.get(&format!("/fanouts/{old}")).await.ok(200);
    assert_eq!((&shown["reissued_as"], shown.get("reissue_of")), (&new["id"], None));
    let (detail, _) = server.post(&path, json!({})).await.problem(409, "fanout_reissued");
    assert!(detail.contains(new["id"].as_str().unwrap()), "{detail}");
    server.stack.drain().await;
    let shown = server.get(&format!("/fanouts/{}", new["id"].as_str().unwrap())).await.ok(200);
    assert_eq!((&shown["state"], &shown["total"], &shown["failed"]), (&json!("completed"), &json!(1), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reissued_is_refused() {
    let server = server().await;
    server.post(&format!("/fanouts/{NOBODY}/reissue"), json!({})).await.problem(404, "unknown_fanout");
    let open = server.post("/fanouts", json!({"items": 1})).await.ok(201);
    let open = format!("/fanouts/{}/reissue", open["id"].as_str().unwrap());
    server.post(&open, json!({})).await.problem(409, "fanout_not_ended");
    let empty = server.post("/fanouts", json!({"seal": true})).await.ok(201);
    let empty = format!("/fanouts/{}/reissue", empty["id"].as_str().unwrap());
    server.send("POST", &empty, &[], "").await.problem(409, "nothing_to_reissue");
    let estimated = server.post("/fanouts", json!({"mode": "estimated"})).await.ok(201);
    let estimated = format!("/fanouts/{}/reissue", estimated["id"].as_str().unwrap());
    for items in ["failed", "outstanding"] {
        server.post(&estimated, json!({"items": items})).await.problem(409, "wrong_mode");
    }
    let (old, item) = failed(&server).await;
    let path = format!("/fanouts/{old}/reissue");
    for (body, fields) in [
        (json!({"max_batch": 0}), vec!["max_batch"]),
        (json!({"contents": [{"id": item, "content": 1}, {"id": item, "content": 2}]}), vec!["contents[1].id"]),
        (json!({"contents": [{"id": item, "content": {}}]}), vec!["contents[0].target"]),
        (json!({"items": "outstanding", "again": true}), vec!["again"]),
    ] {
        let (_, found) = server.post(&path, body.clone()).await.problem(422, "invalid_reissue");
        assert_eq!(found, fields, "{body}");
    }
    server.post(&path, json!({"max_batches": 1})).await.problem(422, "invalid_body");
    let source = json!({"producer": {"source": {"reissue": {"fanout": old}}}});
    let (_, fields) = server.post("/fanouts", source).await.problem(422, "invalid_producer");
    assert_eq!(fields, ["producer.source.reissue"]);
}

#[tokio::test(start_paused = true)]
async fn outstanding_items_are_woken() {
    let server = server().await;
    let opened = server.post("/fanouts", json!({"items": 2_500})).await.ok(201);
    let mut path = format!("/fanouts/{}/reissue", opened["id"].as_str().unwrap());
    let (mut pages, mut without_task) = (0, 0);
    loop {
        let woken = server.post(&path, json!({"items": "outstanding"})).await.ok(200);
        assert_eq!(woken["id"], opened["id"]);
        without_task += woken["woken"]["without_task"].as_u64().unwrap();
        pages += 1;
        let Some(next) = woken["next"].as_str() else { break };
        path = next.to_owned();
    }
    assert_eq!((pages, without_task), (3, 2_500));
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_is_reset() {
    let server = server().await;
    let registered = server.post("/tasks", json!({"tasks": [task(None)]})).await.ok(202);
    let id = registered["tasks"][0]["id"].as_str().unwrap().to_owned();
    server.send("POST", &format!("/tasks/{id}/reset"), &[], "").await.problem(409, "task_not_failed");
    server.stack.drain().await;
    let again = server.send("POST", &format!("/tasks/{id}/reset"), &[], "").await.ok(200);
    assert_eq!((&again["status"], &again["content"]), (&json!("created"), &json!({"depot": "117"})));
    let shown = server.get(&format!("/tasks/{id}")).await.ok(200);
    assert_eq!((&shown["status"], &shown["reset_as"]), (&json!("failed"), &again["id"]));
    let all = server.post("/tasks/reset", json!({"kind": "parcel"})).await.ok(200);
    assert_eq!(all, json!({"reset": 0, "known": 1, "refused": 0}));
    server.post("/tasks/reset", json!({"all": true})).await.problem(422, "invalid_scope");
    server.send("POST", &format!("/tasks/{NOBODY}/reset"), &[], "").await.problem(404, "unknown_task");
    let (_, item) = failed(&server).await;
    server.send("POST", &format!("/tasks/{item}/reset"), &[], "").await.problem(409, "task_is_item");
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_counted_and_moved_back() {
    let server = server().await;
    let listed = server.get("/dead-letters").await.ok(200);
    assert_eq!(listed["queues"].as_array().unwrap().len(), 7);
    assert!(listed["queues"].as_array().unwrap().iter().all(|queue| queue["messages"] == 0));
    let moved = server.send("POST", "/dead-letters/handle/redrive", &[], "").await.ok(200);
    assert_eq!(moved, json!({"moved": 0, "kept": 0, "refused": 0, "more": false}));
    let (detail, _) = server.send("POST", "/dead-letters/api/redrive", &[], "").await.problem(400, "invalid_id");
    assert!(detail.contains("register, produce"), "{detail}");
}
