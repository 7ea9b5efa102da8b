//! `GET /fanouts/{id}/items?state=…`: every item is in one state, and listed there.

use std::collections::BTreeSet;

use fanfold::ids::{ItemRange, expand};
use fanfold::limits::{GROUP_ITEMS_MAX, KEYS_PER_READ_MAX};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Server;

/// All items in a state, and how many pages they took.
async fn listed(server: &Server, fanout: &str, state: &str) -> (BTreeSet<String>, usize) {
    let (entries, pages) = server.pages(&format!("/fanouts/{fanout}/items?state={state}"), "items").await;
    let mut items = BTreeSet::new();
    for entry in &entries {
        let entry = entry.as_str().unwrap();
        match entry.parse::<ItemRange>() {
            Ok(range) => {
                let item = |index| fanfold::ids::ItemId { index, ..range.first }.to_string();
                items.extend((range.first.index..=range.last).map(item));
            }
            Err(_) => assert!(items.insert(entry.to_owned()), "{entry} is listed twice"),
        }
    }
    (items, pages)
}

async fn opened(server: &Server, body: Value) -> (String, Vec<String>) {
    let opened = server.post("/fanouts", body).await.ok(201);
    let fanout: Uuid = opened["id"].as_str().unwrap().parse().unwrap();
    let groups: Vec<fanfold::ids::ItemGroup> = serde_json::from_value(opened["groups"].clone()).unwrap();
    (fanout.to_string(), expand(fanout, &groups).map(|item| item.to_string()).collect())
}

#[tokio::test(start_paused = true)]
async fn every_item_is_listed_in_its_state() {
    for seal in [true, false] {
        let server = Server::start().await;
        let (fanout, items) = opened(&server, json!({"items": 40, "seal": seal})).await;
        let acks = json!({"items": items[..9], "failed": items[20..22], "duplicates": [items[30]]});
        server.post("/acks", acks).await.ok(200);
        let of = |range: std::ops::Range<usize>| items[range].iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(listed(&server, &fanout, "succeeded").await.0, of(0..9));
        assert_eq!(listed(&server, &fanout, "failed").await.0, of(20..22));
        assert_eq!(listed(&server, &fanout, "duplicate").await.0, of(30..31));
        assert_eq!(listed(&server, &fanout, "pending").await.0.len(), 28);
        let ranges = server.get(&format!("/fanouts/{fanout}/items?state=succeeded")).await.ok(200);
        assert_eq!(ranges["items"], json!([format!("{}-8", items[0])]));
        let again = server.post("/acks", json!({"items": ranges["items"]})).await.ok(200);
        assert_eq!(again["refused"], json!([]), "what is listed can be acked");
        server.send("DELETE", &format!("/fanouts/{fanout}"), &[], "").await.ok(200);
        assert_eq!(listed(&server, &fanout, "missing").await.0.len(), 28);
        assert!(listed(&server, &fanout, "pending").await.0.is_empty());
        assert_eq!(listed(&server, &fanout, "succeeded").await.0, of(0..9));
    }
}

#[tokio::test(start_paused = true)]
async fn many_groups_take_pages() {
    let server = Server::start().await;
    let (fanout, items) = opened(&server, json!({"items": GROUP_ITEMS_MAX * 3})).await;
    for _ in 0..KEYS_PER_READ_MAX {
        server.post(&format!("/fanouts/{fanout}/items"), json!({"items": 2})).await.ok(201);
    }
    let (pending, pages) = listed(&server, &fanout, "pending").await;
    assert_eq!(pending.len(), items.len() + 2 * KEYS_PER_READ_MAX);
    assert_eq!(pages, 2);
    let every_other: Vec<&String> = items.iter().step_by(2).collect();
    server.post("/acks", json!({"failed": every_other})).await.ok(200);
    let (failed, pages) = listed(&server, &fanout, "failed").await;
    assert_eq!((failed.len(), pages), (every_other.len(), 2), "a page has only so many ranges");
}
