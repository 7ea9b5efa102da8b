//! What a service that tracks fan-outs over queues is known to do (open, add, seal and acks over HTTP, and estimates by counters), each
//! behaviour as one test over real connections: users of such a service find it here.

mod estimates;

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::limits::GROUP_ITEMS_MAX;
use serde_json::{Value, json};

use super::{NOBODY, Server};

/// A fan-out as its producer has it.
struct Fanout {
    id: String,
}

impl Fanout {
    async fn open(server: &Server, user_key: &str) -> Self {
        let opened = server.post("/fanouts", json!({"user_key": user_key})).await.ok(201);
        Self { id: opened["id"].as_str().unwrap().to_owned() }
    }

    /// Adds items; answers their ids, which the client makes.
    async fn add(&self, server: &Server, items: u64) -> Vec<String> {
        let added = server.post(&format!("/fanouts/{}/items", self.id), json!({"items": items})).await.ok(201);
        let ids = |group: &Value| {
            let id = group["id"].as_str().unwrap().to_owned();
            (0..group["upto"].as_u64().unwrap()).map(move |index| format!("{}:{id}:{index}", self.id))
        };
        added["groups"].as_array().unwrap().iter().flat_map(ids).collect()
    }

    /// Whether the seal says that everything is done.
    async fn seal(&self, server: &Server) -> bool {
        let sealed = server.send("POST", &format!("/fanouts/{}/seal", self.id), &[], "").await.ok(200);
        sealed["complete"].as_bool().unwrap()
    }

    async fn show(&self, server: &Server) -> Value {
        server.get(&format!("/fanouts/{}", self.id)).await.ok(200)
    }
}

/// The fan-outs that an ack says are complete, by user key.
async fn completed_by(server: &Server, items: &[String]) -> Vec<String> {
    let answer = server.post("/acks", json!({"items": items})).await.ok(200);
    assert_eq!(answer["refused"], json!([]));
    let complete = answer["fanouts"].as_array().unwrap().iter().filter(|fanout| fanout["complete"] == true);
    complete.map(|fanout| fanout["user_key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_user_key_comes_back_and_is_not_unique() {
    let server = Server::listening().await;
    let (one, two) = (Fanout::open(&server, "catalog 7").await, Fanout::open(&server, "catalog 7").await);
    assert_ne!(one.id, two.id);
    for fanout in [one, two] {
        assert_eq!(fanout.show(&server).await["user_key"], "catalog 7");
    }
}

#[tokio::test]
async fn an_add_answers_groups_which_the_client_expands() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let path = format!("/fanouts/{}/items", fanout.id);
    let one = server.post(&path, json!({"items": 64})).await.ok(201);
    assert_eq!(one["groups"].as_array().unwrap().len(), 1);
    assert_eq!(one["groups"][0]["upto"], 64);
    let many = server.post(&path, json!({"items": 2 * GROUP_ITEMS_MAX + 5})).await.ok(201);
    let upto: Vec<u64> =
        many["groups"].as_array().unwrap().iter().map(|group| group["upto"].as_u64().unwrap()).collect();
    assert_eq!(upto, [u64::from(GROUP_ITEMS_MAX), u64::from(GROUP_ITEMS_MAX), 5]);
    let groups = [&one, &many].into_iter().flat_map(|added| added["groups"].as_array().unwrap());
    let ids: BTreeSet<&str> = groups.map(|group| group["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4, "each group has an id of its own");
    assert_eq!(fanout.show(&server).await["total"], 64 + 2 * GROUP_ITEMS_MAX + 5);
}

#[tokio::test]
async fn items_that_are_all_acked_before_the_seal_complete_with_it() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 100).await;
    assert_eq!(completed_by(&server, &items).await, Vec::<String>::new(), "more may come");
    let more = fanout.add(&server, 1).await;
    assert_eq!(completed_by(&server, &more).await, Vec::<String>::new());
    assert!(fanout.seal(&server).await, "only the seal can complete it");
    assert_eq!(fanout.show(&server).await["state"], "completed");
}

#[tokio::test]
async fn of_items_acked_after_the_seal_the_last_completes() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 100).await;
    assert_eq!(completed_by(&server, &items[..40]).await, Vec::<String>::new());
    assert!(!fanout.seal(&server).await);
    assert_eq!(completed_by(&server, &items[41..]).await, Vec::<String>::new());
    assert_eq!(fanout.show(&server).await["complete"], false);
    assert_eq!(completed_by(&server, &items[40..41]).await, ["k"], "in whatever order they come");
}

#[tokio::test]
async fn one_call_acks_items_of_several_fanouts() {
    let server = Server::listening().await;
    let mut items = Vec::new();
    for (key, seal) in [("a", true), ("b", true), ("c", false), ("d", true)] {
        let fanout = Fanout::open(&server, key).await;
        items.extend(fanout.add(&server, 3).await);
        items.extend(fanout.add(&server, 2).await);
        if seal {
            assert!(!fanout.seal(&server).await);
        }
    }
    // Of the last one, an item is left out.
    items.pop();
    let mut completed = completed_by(&server, &items).await;
    completed.sort_unstable();
    assert_eq!(completed, ["a", "b"]);
}

#[tokio::test]
async fn acks_that_come_twice_count_once() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 10).await;
    fanout.seal(&server).await;
    for _ in 0..3 {
        assert_eq!(completed_by(&server, &[&items[..9], &items[..9]].concat()).await, Vec::<String>::new());
    }
    let shown = server.get(&format!("/fanouts/{}?progress=exact", fanout.id)).await.ok(200);
    assert_eq!((&shown["done"], &shown["complete"]), (&json!(9), &json!(false)), "a counter would be below zero");
    for _ in 0..2 {
        assert_eq!(completed_by(&server, &items).await, ["k"], "a repeated last ack is answered alike");
    }
    let ended = fanout.show(&server).await;
    assert_eq!((&ended["done"], &ended["total"]), (&json!(10), &json!(10)));
}

#[tokio::test]
async fn a_seal_may_come_twice_and_nothing_is_added_after_it() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 1).await;
    for _ in 0..2 {
        assert!(!fanout.seal(&server).await);
    }
    let added = server.post(&format!("/fanouts/{}/items", fanout.id), json!({"items": 1})).await;
    added.problem(409, "fanout_not_open");
    assert_eq!(completed_by(&server, &items).await, ["k"]);
    for _ in 0..2 {
        assert!(fanout.seal(&server).await);
    }
}

#[tokio::test]
async fn a_fanout_without_items_is_complete_when_it_is_sealed() {
    let server = Server::listening().await;
    assert!(Fanout::open(&server, "k").await.seal(&server).await);
}

#[tokio::test]
async fn unknown_ids_are_named_and_spoil_no_other() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 2).await;
    fanout.seal(&server).await;
    let elsewhere = [format!("{NOBODY}:{NOBODY}:0"), format!("{}:{NOBODY}:0", fanout.id)];
    let both = [&items[..], &elsewhere[..]].concat();
    let answer = server.post("/acks", json!({"items": both})).await.ok(200);
    assert_eq!(answer["refused"].as_array().unwrap().len(), 2);
    let entry = answer["fanouts"].as_array().unwrap().iter().find(|entry| entry["id"] == json!(fanout.id)).unwrap();
    assert_eq!((&entry["complete"], &entry["user_key"]), (&json!(true), &json!("k")));
    server.post("/acks", json!({"items": elsewhere})).await.problem(422, "invalid_acks");
    for path in ["", "/groups"] {
        server.get(&format!("/fanouts/{NOBODY}{path}")).await.problem(404, "unknown_fanout");
    }
    server.post(&format!("/fanouts/{NOBODY}/items"), json!({"items": 1})).await.problem(404, "unknown_fanout");
    server.send("POST", &format!("/fanouts/{NOBODY}/seal"), &[], "").await.problem(404, "unknown_fanout");
}

#[tokio::test]
async fn a_malformed_id_refuses_its_request_and_nothing_is_acked() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let items = fanout.add(&server, 1).await;
    fanout.seal(&server).await;
    for bad in ["", "7", "a:b:c", &fanout.id, &items[0][..items[0].len() - 1], &format!("{}:1", items[0])] {
        let reply = server.post("/acks", json!({"items": [items[0], bad]})).await;
        assert_eq!(reply.problem(422, "invalid_body").1, ["items[1]"], "{bad}");
    }
    assert_eq!(fanout.show(&server).await["done"], 0);
    server.get("/fanouts/x").await.problem(400, "invalid_id");
}

#[tokio::test]
async fn several_producers_add_and_ackers_ack_at_once() {
    let server = Server::listening().await;
    let fanout = Fanout::open(&server, "k").await;
    let added = futures::future::join_all((0..20).map(|_| fanout.add(&server, 64))).await;
    assert!(!fanout.seal(&server).await);
    let completed = futures::future::join_all(added.iter().map(|items| completed_by(&server, items))).await;
    assert!(completed.iter().flatten().count() >= 1, "the last ack is answered so, and those that look after it");
    assert_eq!(fanout.show(&server).await["complete"], true);
}

#[tokio::test]
async fn abandoned_fanouts_are_reaped_whether_open_or_sealed() {
    let server = Server::listening().await;
    for seal in [false, true] {
        let limits = json!({"open": "2h", "sealed": "2h"});
        let opened = server.post("/fanouts", json!({"user_key": "k", "idle_limit": limits})).await.ok(201);
        let fanout = Fanout { id: opened["id"].as_str().unwrap().to_owned() };
        let items = fanout.add(&server, 100).await;
        if seal {
            assert!(!fanout.seal(&server).await);
        }
        // Acks keep it.
        for item in &items[..3] {
            server.stack.clock.skip(Duration::from_secs(90 * 60));
            server.stack.sweep_now().await;
            assert_eq!(completed_by(&server, std::slice::from_ref(item)).await, Vec::<String>::new());
        }
        server.stack.clock.skip(Duration::from_secs(3 * 3_600));
        server.stack.sweep_now().await;
        let reaped = fanout.show(&server).await;
        let [state, ended, done, missing] = ["state", "ended", "done", "missing"].map(|field| &reaped[field]);
        assert_eq!([state, ended, done, missing], [&json!("expired"), &json!(true), &json!(3), &json!(97)]);
        let late = server.post("/acks", json!({"items": items})).await.ok(200);
        assert_eq!((&late["fanouts"][0]["state"], &late["fanouts"][0]["complete"]), (&json!("expired"), &json!(false)));
    }
}
