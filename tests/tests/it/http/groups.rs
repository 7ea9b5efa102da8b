//! `GET /fanouts/{id}/groups`: every item group, page by page.

use fanfold::messages::GroupMask;
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

/// The bits of a mask.
fn bits(mask: &Value) -> Vec<usize> {
    let entry = json!({"group": format!("{NOBODY}:{NOBODY}"), "mask": mask.as_str().unwrap_or_default()});
    let GroupMask { mask, .. } = serde_json::from_value(entry).unwrap();
    mask.iter().collect()
}

#[tokio::test(start_paused = true)]
async fn masks_show_the_state_of_every_item() {
    let server = Server::start().await;
    let small = server.post("/fanouts", json!({"items": 10, "seal": true})).await.ok(201);
    let id = small["id"].as_str().unwrap();
    let item = |range: &str| format!("{id}:{id}:{range}");
    let acks = json!({"items": [item("0-3")], "failed": [item("5")], "duplicates": [item("9")]});
    server.post("/acks", acks).await.ok(200);
    let page = server.get(&format!("/fanouts/{id}/masks")).await.ok(200);
    let group = &page["groups"][0];
    assert_eq!((&group["id"], &group["upto"], &page["next"]), (&json!(id), &json!(10), &Value::Null));
    assert_eq!(bits(&group["pending"]), [4, 6, 7, 8]);
    assert_eq!((bits(&group["failed"]), bits(&group["duplicates"])), (vec![5], vec![9]));
    server.delete(&format!("/fanouts/{id}")).await.ok(200);
    let group = &server.get(&format!("/fanouts/{id}/masks")).await.ok(200)["groups"][0];
    assert_eq!((group.get("pending"), bits(&group["missing"])), (None, vec![4, 6, 7, 8]));

    // The groups of 101 adds are two pages, in the order of the list of groups.
    let large = server.post("/fanouts", json!({})).await.ok(201);
    let id = large["id"].as_str().unwrap();
    for _ in 0..101 {
        server.post(&format!("/fanouts/{id}/items"), json!({"items": 2})).await.ok(201);
    }
    let listed = groups_of(&server, id).await;
    let first = server.get(&format!("/fanouts/{id}/masks")).await.ok(200);
    let second = server.get(first["next"].as_str().unwrap()).await.ok(200);
    let pages = [&first, &second].map(|page| page["groups"].as_array().unwrap());
    assert_eq!((pages[0].len(), pages[1].len(), &second["next"]), (100, 1, &Value::Null));
    let names = pages.into_iter().flatten().map(|group| json!({"id": group["id"], "upto": group["upto"]}));
    assert_eq!(names.collect::<Vec<_>>(), listed);
    assert!(pages.into_iter().flatten().all(|group| bits(&group["pending"]) == [0, 1]));
    server.get(&format!("/fanouts/{NOBODY}/masks")).await.problem(404, "unknown_fanout");
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
