//! `GET /fanouts/{id}/groups`: every item group, page by page.

use serde_json::{Value, json};

use super::{NOBODY, Server};

/// All groups of a fan-out, as its pages name them.
async fn groups_of(server: &Server, id: &str) -> Vec<Value> {
    let mut groups = Vec::new();
    let mut next = Some(format!("/fanouts/{id}/groups"));
    while let Some(path) = next {
        let page = server.get(&path).await.ok(200);
        let page_groups = page["groups"].as_array().unwrap();
        groups.extend(page_groups.clone());
        next = page["next"].as_str().map(str::to_owned);
        assert!(next.is_none() || !page_groups.is_empty());
    }
    groups
}

fn sorted(mut groups: Vec<Value>) -> Vec<Value> {
    groups.sort_by_key(|group| group["id"].to_string());
    groups
}

#[tokio::test(start_paused = true)]
async fn groups_are_named_however_they_came_and_whether_they_ended_or_not() {
    let server = Server::start().await;
    let opened = |body: Value| async {
        let opened = server.post("/fanouts", body).await.ok(201);
        (opened["id"].as_str().unwrap().to_owned(), opened["groups"].as_array().unwrap().clone())
    };
    let (empty, _) = opened(json!({})).await;
    assert_eq!(groups_of(&server, &empty).await, Vec::<Value>::new());
    let (small, groups) = opened(json!({"items": 3, "seal": true})).await;
    assert_eq!(groups_of(&server, &small).await, groups);
    server.post("/acks", json!({"items": [format!("{small}:{small}:0"), format!("{small}:{small}:1")]})).await.ok(200);
    assert_eq!(groups_of(&server, &small).await, groups);
    let (large, groups) = opened(json!({"items": 20_000, "seal": true})).await;
    assert_eq!((groups.len(), groups_of(&server, &large).await), (3, groups));
    let (grown, mut groups) = opened(json!({"items": 7_169})).await;
    let first = groups.clone();
    for items in [1, 7_170, 5] {
        let added = server.post(&format!("/fanouts/{grown}/items"), json!({"items": items})).await.ok(201);
        groups.extend(added["groups"].as_array().unwrap().clone());
    }
    let listed = groups_of(&server, &grown).await;
    assert_eq!(listed[..2], first[..], "first those it was opened with");
    assert_eq!(sorted(listed.clone()), sorted(groups.clone()));
    // One that ended is named, too.
    let last = groups.last().unwrap()["id"].as_str().unwrap();
    let items: Vec<String> = (0..5).map(|n| format!("{grown}:{last}:{n}")).collect();
    server.post("/acks", json!({"items": items})).await.ok(200);
    assert_eq!(groups_of(&server, &grown).await, listed);
}

#[tokio::test(start_paused = true)]
async fn many_groups_are_named_page_by_page() {
    let server = Server::start().await;
    let opened = server.post("/fanouts", json!({"items": 15 * 7_168})).await.ok(201);
    let id = opened["id"].as_str().unwrap().to_owned();
    let mut groups = opened["groups"].as_array().unwrap().clone();
    for _ in 0..12 {
        let added = server.post(&format!("/fanouts/{id}/items"), json!({"items": 98 * 7_168 + 1})).await.ok(201);
        groups.extend(added["groups"].as_array().unwrap().clone());
    }
    assert!(groups.len() > 1_100, "more than one page");
    let listed = groups_of(&server, &id).await;
    assert_eq!(listed.len(), groups.len());
    assert_eq!(sorted(listed), sorted(groups));
    assert!(server.get(&format!("/fanouts/{id}")).await.ok(200).get("groups").is_none());
    let unknown = format!("/fanouts/{NOBODY}/groups");
    server.get(&unknown).await.problem(404, "unknown_fanout");
    let (detail, _) = server.get(&format!("/fanouts/{id}/groups?after=x")).await.problem(400, "invalid_id");
    assert!(detail.contains("`after`"), "{detail}");
}
