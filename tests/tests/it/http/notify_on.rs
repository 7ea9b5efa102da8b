//! `notify_on` over HTTP: what is taken, what is shown, what is refused.

use fanfold_tests::QueueName;
use serde_json::{Value, json};

use super::Server;

#[tokio::test(start_paused = true)]
async fn the_notice_of_a_share_is_shown_until_there_is_one_of_the_end() {
    let server = Server::start().await;
    let body = json!({"items": 4, "seal": true, "notify": {"queue": "notices"},
        "notify_on": {"ends": ["succeeded"], "progress": ["50%", "12.5%"]}});
    let opened = server.post("/fanouts", body).await.ok(201);
    assert!(opened.get("notice").is_none(), "{opened}");
    let id = opened["id"].as_str().unwrap();
    let path = format!("/fanouts/{id}");
    server.post("/acks", json!({"items": [format!("{id}:{id}:0-2")]})).await.ok(200);
    let shown = server.get(&path).await.ok(200);
    assert_eq!((&shown["notice"]["state"], &shown["notice"]["percentage"]), (&json!("pending"), &json!("50%")));
    server.stack.drain().await;
    let shown = server.get(&path).await.ok(200);
    assert_eq!((&shown["notice"]["state"], &shown["notice"]["percentage"]), (&json!("delivered"), &json!("50%")));
    assert!(shown.get("notified_at").is_none(), "that is of the end: {shown}");
    server.post("/acks", json!({"items": [format!("{id}:{id}:3")]})).await.ok(200);
    server.stack.drain().await;
    let shown = server.get(&path).await.ok(200);
    assert_eq!((&shown["notice"]["state"], shown["notice"].get("percentage")), (&json!("delivered"), None));
    assert!(shown["notified_at"].is_u64());
    let notices = server.stack.take(QueueName::Notices).await;
    let types: Vec<Value> =
        notices.iter().map(|notice| serde_json::from_str::<Value>(&notice.body).unwrap()["type"].clone()).collect();
    assert_eq!(types, ["fanout.progress", "fanout.succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_not_chosen_has_no_notice() {
    let server = Server::start().await;
    let body = json!({"seal": true, "notify": {"queue": "notices"}, "notify_on": {"ends": ["failed"]}});
    let opened = server.post("/fanouts", body).await.ok(201);
    assert!(opened["ended"] == true && opened.get("notice").is_none(), "{opened}");
    assert_eq!(server.stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_impossible_choice_of_notices_is_refused_with_its_field() {
    let server = Server::start().await;
    let (url, token) = (json!({"url": "https://example.com/"}), json!({"task_token": "AQ"}));
    for (notify, on, field, says) in [
        (Value::Null, json!({"progress": ["50%"]}), "notify_on", "without `notify`"),
        (url.clone(), json!({"ends": []}), "notify_on", "names no end and no percentage"),
        (token.clone(), json!({"progress": ["50%"]}), "notify_on.progress", "one notice only"),
        (token, json!({"ends": ["succeeded"]}), "notify_on.ends", "leaves out `completed`"),
    ] {
        let body = json!({"items": 1, "notify": notify, "notify_on": on});
        let (detail, _) = server.post("/fanouts", body).await.problem(422, "invalid_destination");
        assert!(detail.contains(&format!("`{field}`")) && detail.contains(says), "{detail}");
    }
    for (on, field, says) in [
        (json!({"ends": ["done"]}), "notify_on.ends[0]", "`succeeded`, `completed`, `failed`, `cancelled`, `expired`"),
        (json!({"progress": ["50%", "0%"]}), "notify_on.progress[1]", "`0.01%` to `99.99%`"),
        (json!({"progress": vec!["50%"; 21]}), "notify_on.progress", "at most 20"),
        (json!({"percentages": ["50%"]}), "notify_on.percentages", "`ends`"),
        (json!("50%"), "notify_on", "an object"),
    ] {
        let (detail, _) =
            server.post("/fanouts", json!({"notify": url, "notify_on": on})).await.problem(422, "invalid_body");
        assert!(detail.contains(&format!("`{field}`")) && detail.contains(says), "{detail}");
    }
}
