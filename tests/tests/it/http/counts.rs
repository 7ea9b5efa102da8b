//! `/counts`: what it answers, what it refuses, and what other routes say of estimated fan-outs.

use serde_json::{Value, json};

use super::{NOBODY, Server, parcel};

/// An estimated fan-out that begins with so many.
async fn estimated(server: &Server, items: u64, seal: bool) -> String {
    let body = json!({"mode": "estimated", "items": items, "seal": seal, "user_key": "order 7"});
    let opened = server.post("/fanouts", body).await.ok(201);
    assert_eq!((&opened["mode"], &opened["progress"]), (&json!("estimated"), &json!("estimated")));
    assert_eq!((&opened["groups"], &opened["total"]), (&json!([]), &json!(items)));
    opened["id"].as_str().unwrap().to_owned()
}

async fn count(server: &Server, counts: Value) -> Value {
    server.post("/counts", json!({"counts": counts})).await.ok(200)
}

#[tokio::test(start_paused = true)]
async fn each_fanout_is_answered_as_it_stands() {
    let server = Server::start().await;
    let (one, other) = (estimated(&server, 2, true).await, estimated(&server, 0, false).await);
    let answer =
        count(&server, json!([{"fanout": one, "succeeded": 1}, {"fanout": other, "add": 5, "failed": 1}])).await;
    let mut wanted = [
        json!({"id": one, "state": "sealed", "complete": false, "ended": false, "user_key": "order 7", "total": 2, "done": 1,
               "failed": 0}),
        json!({"id": other, "state": "open", "complete": false, "ended": false, "user_key": "order 7", "total": 5, "done": 1,
               "failed": 1}),
    ];
    wanted.sort_by_key(|fanout| fanout["id"].to_string());
    assert_eq!(answer, json!({"fanouts": wanted, "refused": []}));
    // The last count is answered as completed, and so is a repetition.
    for _ in 0..2 {
        let answer = count(&server, json!([{"fanout": one, "failed": 1.0}])).await;
        let wanted = json!({"id": one, "state": "completed", "complete": true, "ended": true, "user_key": "order 7", "total": 2,
                            "done": 2, "failed": 1});
        assert_eq!(answer["fanouts"], json!([wanted]));
    }
    let shown = count(&server, json!([{"fanout": other}])).await;
    assert_eq!(shown["fanouts"][0]["total"], 5, "nothing is counted, it is only shown");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_named_with_its_code() {
    let server = Server::start().await;
    let (one, ended) = (estimated(&server, 2, false).await, estimated(&server, 0, true).await);
    let exact = server.post("/fanouts", json!({"items": 1})).await.ok(201)["id"].as_str().unwrap().to_owned();
    let refused = [(&exact, "wrong_mode"), (&ended, "fanout_not_open"), (&NOBODY.to_owned(), "unknown_fanout")];
    let entries = refused.map(|(id, _)| json!({"fanout": id, "add": 1}));
    let answer = count(&server, json!([entries[0], {"fanout": one, "add": 1}, entries[1], entries[2]])).await;
    assert_eq!(answer["fanouts"][0]["total"], 3);
    assert_eq!(answer["refused"].as_array().unwrap().len(), 3);
    for (id, code) in refused {
        let entry = answer["refused"].as_array().unwrap().iter().find(|entry| entry["fanout"] == json!(id)).unwrap();
        assert_eq!(entry["code"], code);
        assert!(entry["problem"].as_str().unwrap().contains(id.as_str()), "{entry}");
    }
    // If nothing is left, it is a problem that names the entries.
    let reply = server.post("/counts", json!({"counts": [entries[2], entries[1], entries[2], entries[0]]})).await;
    let (_, mut fields) = reply.problem(422, "invalid_counts");
    fields.sort_unstable();
    assert_eq!(fields, ["counts[0].fanout", "counts[1].fanout", "counts[3].fanout"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_another_shape_counts_nothing() {
    let server = Server::start().await;
    let one = estimated(&server, 2, false).await;
    let entry = json!({"fanout": one, "succeeded": 1});
    for (counts, field) in [
        (json!([]), "counts"),
        (json!(vec![&entry; 1_001]), "counts"),
        (json!([entry, {"fanout": one, "done": 1}]), "counts[1].done"),
        (json!([entry, {"fanout": one, "add": -1}]), "counts[1].add"),
        (json!([entry, {"fanout": one, "failed": 4_294_967_296_u64}]), "counts[1].failed"),
        (json!([entry, {"fanout": one, "failed": 0.5}]), "counts[1].failed"),
        (json!([entry, {"fanout": "x"}]), "counts[1].fanout"),
        (json!([entry, {"fanout": one.to_uppercase()}]), "counts[1].fanout"),
        (json!([entry, {"add": 1}]), "counts[1].fanout"),
        (json!({"fanout": one}), "counts"),
    ] {
        let (detail, fields) = server.post("/counts", json!({"counts": counts})).await.problem(422, "invalid_body");
        assert_eq!(fields, [field], "{detail}");
    }
    server.post("/counts", json!({})).await.problem(422, "invalid_body");
    assert_eq!(server.get(&format!("/fanouts/{one}")).await.ok(200)["done"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_one_of_two() {
    let server = Server::start().await;
    let (detail, fields) = server.post("/fanouts", json!({"mode": "rough"})).await.problem(422, "invalid_body");
    assert_eq!(fields, ["mode"]);
    assert!(detail.contains("`exact` or `estimated`"), "{detail}");
    let exact = server.post("/fanouts", json!({"mode": "exact", "items": 1})).await.ok(201);
    assert!(exact.get("mode").is_none() && exact["groups"].as_array().unwrap().len() == 1, "{exact}");
}

#[tokio::test(start_paused = true)]
async fn an_estimated_fanout_has_no_items_on_any_route() {
    let server = Server::over(
        fanfold_tests::TestStack::new(
            parcel(json!({})),
            fanfold_tests::ScriptedApi::always_succeeds(),
            fanfold_tests::Crash::never(),
        )
        .await,
    );
    let one = estimated(&server, 2, false).await;
    let items = server.post(&format!("/fanouts/{one}/items"), json!({"items": 1})).await;
    let (detail, _) = items.problem(409, "wrong_mode");
    assert!(detail.contains("`POST /counts`"), "{detail}");
    let item = format!("{one}:{NOBODY}:0");
    let acked = server.post("/acks", json!({"items": [item]})).await;
    acked.problem(422, "invalid_acks");
    assert!(acked.body["errors"][0]["problem"].as_str().unwrap().contains("is estimated"), "{}", acked.body);
    let task = json!({"id": item, "kind": "parcel", "content": {"depot": "1"}});
    server.post("/tasks", json!({"tasks": [task]})).await.problem(422, "invalid_tasks");
    assert_eq!(server.get(&format!("/fanouts/{one}/groups")).await.ok(200), json!({"groups": []}));
    assert_eq!(server.get(&format!("/fanouts/{one}/items")).await.ok(200), json!({"items": []}));
    let shown = server.get(&format!("/fanouts/{one}?progress=exact")).await.ok(200);
    assert_eq!((&shown["progress"], &shown["total"], &shown["done"]), (&json!("estimated"), &json!(2), &json!(0)));
    let parent = json!({"items": 1, "seal": true, "parent": item});
    server.post("/fanouts", parent).await.problem(422, "invalid_follow");
}

#[tokio::test(start_paused = true)]
async fn its_user_key_its_parent_and_what_follows_are_as_of_others() {
    let server = Server::start().await;
    let parent = server.post("/fanouts", json!({"items": 1, "seal": true})).await.ok(201);
    let item = format!("{0}:{0}:0", parent["id"].as_str().unwrap());
    let then = json!({"kind": "parcel", "content": {"depot": "1"}});
    let body = json!({"mode": "estimated", "items": 1, "seal": true, "user_key": "k", "parent": item, "then": then});
    let child = server.post("/fanouts", body).await.ok(201);
    let listed = server.get("/fanouts?user_key=k").await.ok(200);
    assert_eq!((&listed["fanouts"][0]["id"], &listed["fanouts"][0]["mode"]), (&child["id"], &json!("estimated")));
    count(&server, json!([{"fanout": child["id"], "failed": 1}])).await;
    server.stack.drain().await;
    let parent = server.get(&format!("/fanouts/{}", parent["id"].as_str().unwrap())).await.ok(200);
    assert_eq!((&parent["complete"], &parent["succeeded"]), (&json!(true), &json!(1)), "it completed, whatever failed");
    let content: Value = serde_json::from_str(server.stack.api.seen()[0].call.members[0].content.get()).unwrap();
    assert_eq!((&content["fanout"]["mode"], &content["fanout"]["failed"]), (&json!("estimated"), &json!(1)));
}
