//! `/acks`.

use serde_json::{Value, json};

use super::{NOBODY, Opened, Server};

/// The id of the item `index` of the same group.
fn neighbour(item: &str, index: u64) -> String {
    format!("{}:{index}", item.rsplit_once(':').unwrap().0)
}

async fn counts(server: &Server, fanout: &str) -> (Value, Value) {
    let view = server.get(&format!("/fanouts/{fanout}?progress=exact")).await.ok(200);
    (view["done"].clone(), view["failed"].clone())
}

#[tokio::test(start_paused = true)]
async fn the_last_ack_answers_that_the_fanout_is_complete() {
    let server = Server::start().await;
    let Opened { fanout, items, .. } = server.open(json!({"items": 3, "user_key": "order 7"})).await;
    let answer = |state: &str, complete| json!({"fanouts": [{"id": fanout, "state": state, "complete": complete, "ended": complete, "user_key": "order 7"}], "refused": []});
    assert_eq!(server.post("/acks", json!({"items": items[..1]})).await.ok(200), answer("open", false));
    server.send("POST", &format!("/fanouts/{fanout}/seal"), &[], "").await.ok(200);
    assert_eq!(server.post("/acks", json!({"failed": items[1..2]})).await.ok(200), answer("sealed", false));
    for _ in 0..2 {
        let last = server.post("/acks", json!({"items": items[2..], "failed": [items[1]]})).await.ok(200);
        assert_eq!(last, answer("completed", true), "and the same when it is repeated");
    }
    assert_eq!(counts(&server, &fanout).await, (json!(3), json!(1)));
}

#[tokio::test(start_paused = true)]
async fn nothing_to_ack_is_nothing_wrong() {
    let server = Server::start().await;
    for body in [json!({}), json!({"items": [], "failed": []})] {
        assert_eq!(server.post("/acks", body).await.ok(200), json!({"fanouts": [], "refused": []}));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_spoils_no_other() {
    let server = Server::start().await;
    let Opened { fanout, items, .. } = server.open(json!({"items": 3, "user_key": "order 7"})).await;
    let nowhere = format!("{fanout}:{NOBODY}:0");
    let answer = server.post("/acks", json!({"items": [nowhere, items[0]]})).await.ok(200);
    assert_eq!(answer["refused"][0]["fanout"], json!(fanout));
    assert_eq!(answer["refused"][0]["group"], NOBODY);
    assert!(answer["refused"][0]["problem"].as_str().unwrap().contains(NOBODY));
    assert_eq!(answer["fanouts"][0]["id"], json!(fanout));
    assert_eq!(counts(&server, &fanout).await.0, 1);
    // Some items of the one group are there, others are not.
    let beyond = neighbour(&items[0], 3);
    let answer = server.post("/acks", json!({"items": [beyond], "failed": [items[1]]})).await.ok(200);
    assert!(answer["refused"][0]["problem"].as_str().unwrap().contains("no item 3"));
    assert_eq!(counts(&server, &fanout).await, (json!(2), json!(1)));
    let again = server.post("/acks", json!({"items": [beyond], "failed": [items[1]]})).await.ok(200);
    assert_eq!(again, answer, "a repetition is answered alike");
    let answer = server.post("/acks", json!({"items": [beyond], "duplicates": [items[2]]})).await.ok(200);
    assert!(answer["refused"][0]["problem"].as_str().unwrap().contains("no item 3"));
    let view = server.get(&format!("/fanouts/{fanout}?progress=exact")).await.ok(200);
    assert_eq!((&view["done"], &view["duplicates"]), (&json!(3), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn an_ack_of_nothing_that_is_there_is_a_problem() {
    let server = Server::start().await;
    let Opened { fanout, items, .. } = server.open(json!({"items": 3, "user_key": "order 7"})).await;
    let nobodys = format!("{NOBODY}:{NOBODY}:0");
    let nowhere = format!("{fanout}:{NOBODY}:0");
    let beyond = neighbour(&items[0], 3);
    for (body, expected) in [
        (json!({"items": [nobodys]}), vec!["items[0]"]),
        (json!({"failed": [beyond, neighbour(&items[0], 4)]}), vec!["failed[0]"]),
        (json!({"duplicates": [beyond]}), vec!["duplicates[0]"]),
        (json!({"items": [nobodys, nowhere, nowhere], "failed": [beyond]}), vec!["failed[0]", "items[0]", "items[1]"]),
    ] {
        let reply = server.post("/acks", body.clone()).await;
        let (_, mut fields) = reply.problem(422, "invalid_acks");
        fields.sort_unstable();
        assert_eq!(fields, expected, "{body}");
        for error in reply.body["errors"].as_array().unwrap() {
            let problem = error["problem"].as_str().unwrap();
            let field = error["field"].as_str().unwrap();
            let (list, at) = field.trim_end_matches(']').split_once('[').unwrap();
            let item = body[list][at.parse::<usize>().unwrap()].as_str().unwrap();
            assert!(item.split(':').take(2).all(|part| problem.contains(part)), "{problem} names {item}");
        }
    }
    assert_eq!(counts(&server, &fanout).await, (json!(0), json!(0)));
    let sealed = server.post("/fanouts", json!({"items": 2, "seal": true})).await.ok(201);
    let small = sealed["id"].as_str().unwrap();
    server.post("/acks", json!({"items": [format!("{small}:{small}:2")]})).await.problem(422, "invalid_acks");
    server.post("/acks", json!({"items": [format!("{small}:{small}:2"), format!("{small}:{small}:1")]})).await.ok(200);
}

#[tokio::test(start_paused = true)]
async fn what_only_fanfold_sends_is_refused() {
    let server = Server::start().await;
    let Opened { fanout, items, .. } = server.open(json!({"items": 1, "user_key": "order 7"})).await;
    let body = json!({"items": items, "batch": {"batch": NOBODY, "lane": "parcel:0:117"}});
    let (detail, fields) = server.post("/acks", body).await.problem(422, "invalid_body");
    assert_eq!(fields, ["batch"]);
    assert!(detail.contains("`items`"), "{detail}");
    assert_eq!(counts(&server, &fanout).await.0, 0, "nothing of the request was applied");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_none_is_named() {
    let server = Server::start().await;
    for id in ["x", NOBODY, &format!("{NOBODY}:{NOBODY}:7168"), &format!("{NOBODY}:{NOBODY}:01")] {
        let (detail, fields) = server.post("/acks", json!({"failed": [id]})).await.problem(422, "invalid_body");
        assert_eq!(fields, ["failed[0]"]);
        assert!(detail.contains(&format!("`{id}`")), "{detail}");
    }
}
