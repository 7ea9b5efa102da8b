//! `POST /pause`, `/resume` and `/drain`, `GET /switches` and `/lanes`, `DELETE /tasks/{id}` and `POST /tasks/cancel`.

use std::time::Duration;

use fanfold::ids::ItemId;
use fanfold_tests::QueueName;
use serde_json::{Value, json};

use super::{NOBODY, Server};

fn order(depot: &str, number: usize) -> Value {
    json!({"kind": "parcel", "content": {"depot": depot, "order": format!("ORD-{number}")}})
}

/// Registers orders, each on its own, and returns their ids.
async fn register(server: &Server, depot: &str, number: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..number {
        let answer = server.post("/tasks", json!({"tasks": [order(depot, n)]})).await.ok(202);
        ids.push(answer["tasks"][0]["id"].as_str().unwrap().to_owned());
    }
    ids
}

async fn settle() {
    tokio::time::sleep(Duration::from_secs(6)).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_is_paused_listed_and_resumed() {
    let server = Server::start().await;
    let scope = json!({"kind": "parcel", "target": "117"});
    let paused = server.post("/pause", scope.clone()).await.ok(200);
    assert_eq!((&paused["switch"]["state"], &paused["paused_by"]), (&json!("paused"), &json!([scope])));
    assert_eq!(server.post("/pause", scope.clone()).await.ok(200), paused, "pausing it again changes nothing");
    settle().await;
    let ids = register(&server, "117", 2).await;
    server.stack.drain().await;
    let lanes = server.get("/lanes?kind=parcel").await.ok(200);
    let waits = server.get(lanes["next"].as_str().unwrap()).await.ok(200);
    let lane = &waits["lanes"][0];
    assert_eq!(
        (&lane["lane"], &lane["paused"], &lane["pending"]["tasks"]),
        (&json!("parcel:0:117"), &json!(true), &json!(2))
    );
    assert_eq!(
        (&lane["paused_by"], &lane["pending"]["bytes"], &lane["in_flight"]),
        (&json!([scope]), &json!(512), &json!(0))
    );
    assert!(lane["pending"]["oldest"].is_u64() && waits["next"].is_null());
    let of_target = server.get("/lanes?kind=parcel&target=117&paused=true").await.ok(200);
    assert_eq!(of_target["lanes"], waits["lanes"]);
    assert_eq!(server.get("/switches").await.ok(200)["switches"][0]["target"], "117");
    let resumed = server.post("/resume", scope).await.ok(200);
    assert_eq!((&resumed["switch"]["state"], &resumed["paused_by"]), (&json!("resumed"), &json!([])));
    server.stack.drain().await;
    for id in ids {
        assert_eq!(server.get(&format!("/tasks/{id}")).await.ok(200)["status"], "succeeded");
    }
    server.stack.sweep().await;
    assert_eq!(server.get("/switches").await.ok(200), json!({"switches": []}));
}

#[tokio::test(start_paused = true)]
async fn a_lane_is_listed_with_its_leader_and_its_batches() {
    let server = Server::start().await;
    let lane = async || {
        let lanes = server.get("/lanes?kind=parcel&target=117").await.ok(200);
        (lanes["lanes"][0]["leader"].clone(), lanes["lanes"][0].clone())
    };
    let (_, items) = server.stack.open(2, true).await;
    let task = |item: &ItemId| json!({"id": item, "kind": "parcel", "content": {"depot": "117", "order": item}});
    server.post("/tasks", json!({"tasks": items.iter().map(task).collect::<Vec<_>>()})).await.ok(202);
    let (leader, waits) = lane().await;
    assert_eq!((leader, &waits["leads_since"]), (Value::Null, &Value::Null));
    let elected = server.stack.world.now().0;
    server.stack.deliver(QueueName::Elect).await;
    let (leader, led) = lane().await;
    assert!(leader.is_string() && led["leads_since"].as_u64().unwrap() >= elected, "{led}");
    assert_eq!([&led["in_flight"], &led["pending"]["tasks"], &led["closing"]], [&json!(0), &json!(2), &json!(0)]);
    server.stack.pass(&[QueueName::Group]).await;
    let (next, formed) = lane().await;
    assert_eq!((next, &formed["batches"]), (Value::Null, &json!([leader])));
    assert_eq!([&formed["in_flight"], &formed["pending"]["tasks"]], [&json!(1), &json!(0)]);
    server.stack.deliver(QueueName::Handle).await;
    let (_, closing) = lane().await;
    assert_eq!([&closing["in_flight"], &closing["closing"]], [&json!(0), &json!(1)]);
}

#[tokio::test(start_paused = true)]
async fn the_response_lists_what_else_pauses_a_scope() {
    let server = Server::start().await;
    server.post("/pause", json!({"all": true})).await.ok(200);
    server.post("/pause", json!({"kind": "parcel"})).await.ok(200);
    let lane = json!({"kind": "parcel", "target": "117", "partition": 0});
    let paused = server.post("/pause", lane.clone()).await.ok(200);
    assert_eq!(paused["paused_by"], json!([{"all": true}, {"kind": "parcel"}, lane]));
    let resumed = server.post("/resume", json!({"all": true})).await.ok(200);
    assert_eq!(resumed["paused_by"], json!([]));
    let resumed = server.post("/resume", lane).await.ok(200);
    assert_eq!(resumed["paused_by"], json!([{"kind": "parcel"}]));
    let drains = server.post("/drain", json!({"kind": "parcel"})).await.ok(200);
    assert_eq!((&drains["switch"]["state"], &drains["paused_by"]), (&json!("draining"), &json!([])));
}

#[tokio::test(start_paused = true)]
async fn scopes_that_cannot_be_used_are_refused() {
    let server = Server::start().await;
    for (body, fields) in [
        (json!({}), vec!["kind"]),
        (json!({"all": false}), vec!["all"]),
        (json!({"all": true, "kind": "parcel"}), vec!["kind"]),
        (json!({"kind": "a b"}), vec!["kind"]),
        (json!({"all": true, "target": "x"}), vec!["target"]),
        (json!({"kind": "parcel", "partition": 1}), vec!["partition"]),
        (json!({"kind": "parcel", "target": "x".repeat(1_025), "partition": 1_024}), vec!["target", "partition"]),
    ] {
        for path in ["/pause", "/resume", "/drain", "/tasks/cancel"] {
            assert_eq!(server.post(path, body.clone()).await.problem(422, "invalid_scope").1, fields, "{path} {body}");
        }
    }
    server.post("/tasks/cancel", json!({"all": true})).await.problem(422, "invalid_scope");
    server.post("/pause", json!({"kind": "parcel", "lane": 1})).await.problem(422, "invalid_body");
    server.post("/pause", json!({"kind": "letter"})).await.problem(404, "unknown_policy");
    server.get("/lanes?target=117").await.problem(422, "invalid_scope");
    for query in ["kind=a%20b", "paused=no", "limit=0", "limit=101", "after=x", "partition=01", "kind=a&kind=b"] {
        server.get(&format!("/lanes?{query}")).await.problem(400, "invalid_parameter");
    }
    server.get("/switches?after=a%20b").await.problem(400, "invalid_parameter");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_unless_a_batch_has_it() {
    let server = Server::start().await;
    let ids = register(&server, "117", 3).await;
    let task = server.call("DELETE", &format!("/tasks/{}", ids[0]), &[], "").await.ok(200);
    assert_eq!((&task["status"], &task["id"]), (&json!("cancelled"), &json!(ids[0])));
    assert_eq!(server.send("DELETE", &format!("/tasks/{}", ids[0]), &[], "").await.ok(200), task);
    assert_eq!(server.get(&format!("/tasks/{}", ids[0])).await.ok(200), task);
    server.stack.drain().await;
    let (detail, _) =
        server.send("DELETE", &format!("/tasks/{}", ids[1]), &[], "").await.problem(409, "task_not_waiting");
    assert!(detail.contains("batch") && detail.contains("has claimed it"), "{detail}");
    server.send("DELETE", &format!("/tasks/{NOBODY}"), &[], "").await.problem(404, "unknown_task");
    server.send("DELETE", "/tasks/x", &[], "").await.problem(400, "invalid_id");
    assert_eq!(server.stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_selection_is_cancelled_page_by_page() {
    let server = Server::start().await;
    server.post("/pause", json!({"kind": "parcel"})).await.ok(200);
    register(&server, "117", 130).await;
    register(&server, "118", 3).await;
    let body = json!({"kind": "parcel", "target": "117"});
    let (mut cancelled, mut path, mut pages) = (0, Some("/tasks/cancel".to_owned()), 0);
    while let Some(at) = path {
        let page = server.post(&at, body.clone()).await.ok(200);
        cancelled += page["cancelled"].as_u64().unwrap();
        (path, pages) = (page["next"].as_str().map(str::to_owned), pages + 1);
    }
    assert_eq!((cancelled, pages), (130, 2));
    server.post("/resume", json!({"kind": "parcel"})).await.ok(200);
    server.stack.drain().await;
    assert_eq!(server.stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 3);
}
