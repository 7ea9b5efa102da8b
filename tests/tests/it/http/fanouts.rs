//! `/fanouts`.

use fanfold::limits::{GROUP_ITEMS_MAX, ITEMS_PER_ADD_MAX};
use serde_json::{Value, json};

use super::{NOBODY, Opened, Server, item_ids};

#[tokio::test(start_paused = true)]
async fn a_fanout_is_opened_and_shown() {
    let server = Server::start().await;
    for (items, seal, state) in [(0, false, "open"), (3, false, "open"), (3, true, "sealed"), (0, true, "completed")] {
        let body = json!({"items": items, "seal": seal, "user_key": "order 7"});
        let reply = server.post("/fanouts", body).await;
        let location = reply.headers["location"].to_str().unwrap().to_owned();
        let opened = reply.ok(201);
        assert_eq!(location, format!("/fanouts/{}", opened["id"].as_str().unwrap()));
        let groups = opened["groups"].as_array().unwrap();
        let upto: u64 = groups.iter().map(|group| group["upto"].as_u64().unwrap()).sum();
        assert_eq!(upto, items);
        assert_eq!(opened["state"], state);
        assert_eq!(opened["complete"], json!(state == "completed"));
        let counts = [&opened["total"], &opened["done"], &opened["failed"], &opened["succeeded"]];
        assert_eq!(counts, [items, 0, 0, 0].map(|count| json!(count)).each_ref());
        assert_eq!(opened["user_key"], "order 7");
        assert_eq!(opened["created_at"], opened["updated_at"]);
        let mut shown = opened;
        if (items, seal) != (3, true) {
            shown.as_object_mut().unwrap().remove("groups");
        }
        assert_eq!(server.get(&location).await.ok(200), shown, "{items} {seal}");
    }
    let bare = server.post("/fanouts", json!({})).await.ok(201);
    assert_eq!((&bare["total"], &bare["user_key"]), (&json!(0), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_fanout_is_cancelled() {
    let server = Server::start().await;
    for seal in [true, false] {
        let Opened { path, items: ids, .. } = server.open(json!({"items": 3, "seal": seal})).await;
        server.post("/acks", json!({"items": [&ids[0]]})).await.ok(200);
        for _ in 0..2 {
            let cancelled = server.send("DELETE", &path, &[], String::new()).await.ok(200);
            assert_eq!(cancelled["state"], "cancelled");
            assert_eq!((&cancelled["ended"], &cancelled["complete"]), (&json!(true), &json!(false)));
            let counts = ["total", "done", "succeeded", "missing"].map(|name| cancelled[name].as_u64().unwrap());
            assert_eq!(counts, [3, 1, 1, 2]);
            assert_eq!(server.get(&path).await.ok(200)["state"], "cancelled");
        }
        let refused = server.post(&format!("{path}/items"), json!({"items": 1})).await;
        assert_eq!((refused.status, &refused.body["code"]), (409, &json!("fanout_not_open")));
        assert_eq!(server.post(&format!("{path}/seal"), json!({})).await.ok(200)["state"], "cancelled");
        let late = server.post("/acks", json!({"items": [&ids[1]]})).await.ok(200);
        assert_eq!((&late["fanouts"][0]["ended"], &late["fanouts"][0]["complete"]), (&json!(true), &json!(false)));
    }
}

#[tokio::test(start_paused = true)]
async fn items_beyond_a_group_are_grouped() {
    let server = Server::start().await;
    let opened = server.post("/fanouts", json!({"items": GROUP_ITEMS_MAX + 1})).await.ok(201);
    let upto: Vec<&Value> = opened["groups"].as_array().unwrap().iter().map(|group| &group["upto"]).collect();
    assert_eq!(upto, [&json!(GROUP_ITEMS_MAX), &json!(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_open_is_answered_alike() {
    let server = Server::start().await;
    for (key, body) in [
        ("empty", json!({})),
        ("small", json!({"items": 3, "seal": true})),
        ("large", json!({"items": GROUP_ITEMS_MAX * 2, "user_key": "k"})),
    ] {
        let first = server.post_once("/fanouts", key, body.clone()).await;
        let again = server.post_once("/fanouts", key, body.clone()).await;
        assert_eq!(first.headers["location"], again.headers["location"]);
        assert_eq!(first.ok(201), again.ok(201));
        let mut other = body;
        other["user_key"] = json!("other");
        let (detail, _) = server.post_once("/fanouts", key, other).await.problem(422, "idempotency_key_reused");
        assert!(detail.contains("`user_key`"), "{detail}");
    }
    let (one, two) = (server.post("/fanouts", json!({})).await, server.post("/fanouts", json!({})).await);
    assert_ne!(one.ok(201)["id"], two.ok(201)["id"], "without a key each is its own");
}

#[tokio::test(start_paused = true)]
async fn an_open_out_of_range_is_refused() {
    let server = Server::start().await;
    let too_many = server.post("/fanouts", json!({"items": ITEMS_PER_ADD_MAX + 1})).await;
    let (detail, fields) = too_many.problem(422, "out_of_range");
    assert_eq!(fields, ["items"]);
    assert!(
        detail.contains(&(ITEMS_PER_ADD_MAX + 1).to_string()) && detail.contains(&ITEMS_PER_ADD_MAX.to_string()),
        "{detail}"
    );
    let long = server.post("/fanouts", json!({"user_key": "k".repeat(1_025)})).await;
    assert_eq!(long.problem(422, "out_of_range").1, ["user_key"]);
    for url in ["http://example.com/", "ftp://example.com/", "notices", ""] {
        let reply = server.post("/fanouts", json!({"notify": {"url": url}})).await;
        let (detail, fields) = reply.problem(422, "invalid_destination");
        assert_eq!(fields, ["notify.url"]);
        assert!(detail.contains(&format!("`{url}`")), "{detail}");
    }
    let unknown = server.post("/fanouts", json!({"notify": {"queue": "elsewhere"}})).await;
    assert!(unknown.problem(422, "invalid_body").0.contains("notices"));
}

#[tokio::test(start_paused = true)]
async fn items_are_added() {
    let server = Server::start().await;
    let Opened { path, .. } = server.open(json!({})).await;
    let add = format!("{path}/items");
    let first = server.post_once(&add, "a", json!({"items": 3})).await.ok(201);
    assert_eq!(format!("/fanouts/{}", first["fanout"].as_str().unwrap()), path);
    assert_eq!(first["groups"][0]["upto"], 3);
    assert_eq!(server.post_once(&add, "a", json!({"items": 3})).await.ok(201), first);
    let other = server.post_once(&add, "a", json!({"items": 4})).await;
    assert!(other.problem(422, "idempotency_key_reused").0.contains("`items`"));
    for _ in 0..2 {
        let second = server.post(&add, json!({"items": 3})).await.ok(201);
        assert_ne!(second["groups"], first["groups"]);
    }
    assert_eq!(server.get(&path).await.ok(200)["total"], 9);
    for items in [0, ITEMS_PER_ADD_MAX + 1] {
        let reply = server.post(&add, json!({"items": items})).await;
        assert_eq!(reply.problem(422, "out_of_range").1, ["items"]);
    }
    server.send("POST", &format!("{path}/seal"), &[], "").await.ok(200);
    let (detail, _) = server.post(&add, json!({"items": 1})).await.problem(409, "fanout_not_open");
    assert!(detail.contains("sealed"), "{detail}");
    assert_eq!(server.post_once(&add, "a", json!({"items": 3})).await.ok(201), first, "even after the seal");
}

#[tokio::test(start_paused = true)]
async fn a_seal_answers_whether_the_fanout_is_complete() {
    let server = Server::start().await;
    let Opened { path, items, .. } = server.open(json!({"items": 2, "user_key": "order 7"})).await;
    let seal = format!("{path}/seal");
    let (detail, _) = server.post(&seal, json!({"force": true})).await.problem(422, "invalid_body");
    assert!(detail.contains("`force`"), "{detail}");
    assert_eq!(server.get(&path).await.ok(200)["state"], "open", "what is refused does nothing");
    let sealed = server.send("POST", &seal, &[], "").await.ok(200);
    assert_eq!((&sealed["state"], &sealed["complete"]), (&json!("sealed"), &json!(false)));
    assert_eq!(sealed["user_key"], "order 7");
    server.post("/acks", json!({"items": items})).await.ok(200);
    for body in ["", "{}"] {
        let again = server.send("POST", &seal, &[], body).await.ok(200);
        assert_eq!((&again["state"], &again["complete"]), (&json!("completed"), &json!(true)));
    }
}

fn counts(view: &Value) -> [u64; 4] {
    ["total", "done", "failed", "succeeded"].map(|name| view[name].as_u64().unwrap())
}

#[tokio::test(start_paused = true)]
async fn groups_that_ended_are_progress_and_others_are_counted_on_request() {
    let server = Server::start().await;
    let Opened { path, items, .. } = server.open(json!({"items": 5})).await;
    let added = server.post(&format!("{path}/items"), json!({"items": 3})).await.ok(201);
    let more = item_ids(added["fanout"].as_str().unwrap(), &added["groups"]);
    server.post("/acks", json!({"failed": items[..1], "items": items[1..]})).await.ok(200);
    server.post("/acks", json!({"duplicates": more[..1]})).await.ok(200);
    let shown = server.get(&path).await.ok(200);
    assert_eq!((counts(&shown), &shown["progress"]), ([8, 5, 1, 4], &json!("at_least")), "of the group that ended");
    let counted = server.get(&format!("{path}?progress=exact")).await.ok(200);
    assert_eq!((counts(&counted), &counted["duplicates"]), ([8, 6, 1, 4], &json!(1)));
    assert_eq!(counted["progress"], "exact");
    for wrong in ["all", "EXACT", "exact&progress=exact"] {
        let (detail, _) = server.get(&format!("{path}?progress={wrong}")).await.problem(400, "invalid_parameter");
        assert!(detail.contains("`progress`"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fanout_of_any_size_is_shown_by_one_read() {
    let server = Server::start().await;
    let Opened { path, .. } = server.open(json!({"items": 50 * GROUP_ITEMS_MAX})).await;
    let read = |before: &fanfold_local::Usage, after: &fanfold_local::Usage| {
        (after.dynamodb_requests - before.dynamodb_requests, after.read_units - before.read_units)
    };
    let before = server.stack.usage();
    server.get(&path).await.ok(200);
    assert_eq!(read(&before, &server.stack.usage()), (1, 1.0));
    let before = server.stack.usage();
    server.send("POST", &format!("{path}/seal"), &[], "").await.ok(200);
    assert_eq!(read(&before, &server.stack.usage()), (1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported() {
    let server = Server::start().await;
    for seal in [true, false] {
        let Opened { path, items, .. } =
            server.open(json!({"items": 10, "seal": seal, "notify": {"queue": "notices"}})).await;
        server.post("/acks", json!({"failed": items[..2], "items": items[2..5]})).await.ok(200);
        let counted = server.get(&format!("{path}?progress=exact")).await.ok(200);
        assert_eq!((counts(&counted), &counted["progress"]), ([10, 5, 2, 3], &json!("exact")), "seal: {seal}");
        let shown = server.get(&path).await.ok(200);
        let (known, progress) = if seal { ([10, 5, 2, 3], "exact") } else { ([10, 0, 0, 0], "at_least") };
        assert_eq!((counts(&shown), &shown["progress"]), (known, &json!(progress)), "the header alone, seal: {seal}");
        let sealed = server.send("POST", &format!("{path}/seal"), &[], "").await.ok(200);
        assert_eq!(counts(&sealed), known, "the header alone, too");
        server.post("/acks", json!({"items": items})).await.ok(200);
        let done = server.get(&path).await.ok(200);
        assert_eq!(counts(&done), [10, 10, 2, 8], "seal: {seal}");
        assert_eq!((&done["complete"], &done["progress"]), (&json!(true), &json!("exact")));
        assert!(done.get("notified_at").is_none());
        server.stack.drain().await;
        assert!(server.get(&path).await.ok(200)["notified_at"].is_u64());
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_fanout_is_named() {
    let server = Server::start().await;
    let path = format!("/fanouts/{NOBODY}");
    for reply in [
        server.get(&path).await,
        server.post(&format!("{path}/items"), json!({"items": 1})).await,
        server.post_once(&format!("{path}/items"), "k", json!({"items": 1})).await,
        server.send("POST", &format!("{path}/seal"), &[], "").await,
    ] {
        assert!(reply.problem(404, "unknown_fanout").0.contains(NOBODY));
    }
}
