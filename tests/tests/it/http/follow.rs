//! `parent` and `then` over HTTP: what is taken, what is shown, what is refused.

use serde_json::{Value, json};

use super::{NOBODY, Server};

async fn root(server: &Server) -> (String, Vec<String>) {
    let root = server.post("/fanouts", json!({"items": 2, "seal": true})).await.ok(201);
    let id = root["id"].as_str().unwrap().to_owned();
    let items = (0..2).map(|n| format!("{id}:{id}:{n}")).collect();
    (id, items)
}

#[tokio::test(start_paused = true)]
async fn what_follows_an_end_is_shown() {
    let server = Server::start().await;
    let (id, items) = root(&server).await;
    let then = json!({"kind": "parcel", "content": {"depot": "117"}});
    let body = json!({"items": 1, "seal": true, "parent": items[0], "then": then});
    let child = server.post("/fanouts", body).await.ok(201);
    let (task, own) = (child["then"]["id"].as_str().unwrap(), child["id"].as_str().unwrap());
    assert_eq!(child["parent"], json!(items[0]));
    assert_eq!(child["then"], json!({"id": task, "kind": "parcel", "registered": false}));
    server.get(&format!("/tasks/{task}")).await.problem(404, "unknown_task");
    server.post("/acks", json!({"items": [format!("{own}:{own}:0"), items[1]]})).await.ok(200);
    for _ in 0..2 {
        server.stack.drain().await;
        server.stack.sweep().await;
    }
    server.stack.drain().await;
    assert_eq!(server.get(&format!("/fanouts/{id}")).await.ok(200)["state"], "completed");
    let shown = server.get(&format!("/fanouts/{own}")).await.ok(200);
    assert_eq!(shown["then"]["registered"], true);
    let done = server.get(&format!("/tasks/{task}")).await.ok(200);
    assert_eq!((&done["status"], &done["content"]["fanout"]["succeeded"]), (&json!("succeeded"), &json!(1)));
    assert!(server.get(&format!("/fanouts/{id}")).await.ok(200).get("then").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_follow_is_refused_with_its_field() {
    let server = Server::start().await;
    let (id, items) = root(&server).await;
    let then = |change: Value| {
        let then = json!({"kind": "parcel", "content": {"depot": "117"}});
        json!({"items": 1, "then": fanfold_tests::changed(then, change)})
    };
    for (body, field, says) in [
        (json!({"parent": format!("{NOBODY}:{NOBODY}:0")}), "parent", "has no item group"),
        (json!({"parent": format!("{id}:{id}:2")}), "parent", "0 to 1 is allowed"),
        (then(json!({"id": format!("{id}:{id}:2")})), "then.id", "0 to 1 is allowed"),
        (then(json!({"kind": "nothing"})), "then.kind", "there is no policy of this kind"),
        (then(json!({"kind": "no/kind"})), "then.kind", "are allowed"),
        (then(json!({"content": {"order": 1}})), "then.content", "gives no usable `target`"),
        (then(json!({"content": {"depot": "1", "fanout": 1}})), "then.content", "has a field `fanout`"),
        (then(json!({"content": {"depot": "1", "x": "x".repeat(2_048)}})), "then.content", "at most 2048 are allowed"),
    ] {
        let (detail, _) = server.post("/fanouts", body).await.problem(422, "invalid_follow");
        assert!(detail.contains(&format!("`{field}`")) && detail.contains(says), "{detail}");
    }
    for (body, says) in [
        (json!({"parent": 5}), "`parent`"),
        (json!({"parent": id}), "is not an item id"),
        (then(json!({"id": NOBODY})), "is not an item id"),
        (then(json!({"content": 5})), "`then.content`"),
        (then(json!({"id": items[0], "more": 5})), "more"),
    ] {
        let (detail, _) = server.post("/fanouts", body).await.problem(422, "invalid_body");
        assert!(detail.contains(says), "{detail}");
    }
    // A repetition is answered as the first call was, although its policy has changed.
    let first = server.post_once("/fanouts", "k", then(json!({}))).await.ok(201);
    server.stack.put_policy(fanfold_tests::policy(json!({"target": "content.elsewhere"}))).await;
    server.post("/fanouts", then(json!({}))).await.problem(422, "invalid_follow");
    assert_eq!(server.post_once("/fanouts", "k", then(json!({}))).await.ok(201)["id"], first["id"]);
}

/// A parent under which no fan-out is opened may be idle no longer than before.
#[tokio::test(start_paused = true)]
async fn what_is_refused_leaves_its_parent_as_it_is() {
    let server = Server::start().await;
    let (id, items) = root(&server).await;
    let fanout: uuid::Uuid = id.parse().unwrap();
    let marked = async || server.stack.header(fanout).await.inline.unwrap().children;
    let child = json!({"items": 1, "parent": items[0]});
    let bad = json!({"tasks": [{"kind": "nothing", "content": 1}], "parent": items[0]});
    server.post("/fanouts", bad.clone()).await.problem(422, "invalid_tasks");
    server.post("/fanouts/open", json!({"fanouts": [child, bad]})).await.problem(422, "invalid_tasks");
    server.post_once("/fanouts", "k", json!({"items": 1})).await.ok(201);
    server.post_once("/fanouts", "k", child.clone()).await.problem(422, "idempotency_key_reused");
    assert!(!marked().await);
    server.post("/fanouts", child).await.ok(201);
    assert!(marked().await);
}
