//! `GET /fanouts/{id}?wait=`.

use std::time::Duration;

use serde_json::json;

use super::{NOBODY, Server};

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_fanout_has_ended() {
    let server = Server::start().await;
    for progress in ["", "&progress=exact"] {
        let opened = server.post("/fanouts", json!({"items": 2, "seal": true})).await.ok(201);
        let fanout = opened["id"].as_str().unwrap();
        let path = format!("/fanouts/{fanout}?wait=20s{progress}");
        let ack = async {
            for index in 0..2 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                server.post("/acks", json!({"items": [format!("{fanout}:{fanout}:{index}")]})).await.ok(200);
            }
        };
        let began = tokio::time::Instant::now();
        let wait = async {
            let shown = server.get(&path).await.ok(200);
            (shown, began.elapsed())
        };
        let ((), (shown, waited)) = futures::join!(ack, wait);
        assert_eq!((&shown["ended"], &shown["done"]), (&json!(true), &json!(2)));
        assert!((6..10).contains(&waited.as_secs()), "the last ack comes after six seconds: {waited:?}");
        let began = tokio::time::Instant::now();
        assert_eq!(server.get(&path).await.ok(200), shown);
        assert!(began.elapsed() < Duration::from_secs(1), "at once: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_comes_when_the_time_is_up() {
    let server = Server::start().await;
    let opened = server.post("/fanouts", json!({"items": 2, "seal": true})).await.ok(201);
    for (wait, milliseconds) in [("0s", 0), ("1500ms", 1_500), ("20s", 20_000)] {
        let began = tokio::time::Instant::now();
        let path = format!("/fanouts/{}?wait={wait}", opened["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.ok(200)["ended"], false);
        let (waited, wanted) = (began.elapsed(), Duration::from_millis(milliseconds));
        assert!(waited >= wanted && waited < wanted + Duration::from_secs(1), "{wait}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_waited_for_is_refused() {
    let server = Server::start().await;
    let opened = server.post("/fanouts", json!({"items": 1})).await.ok(201);
    let path = format!("/fanouts/{}", opened["id"].as_str().unwrap());
    for wait in ["21s", "1h", "soon", "", "-1s"] {
        let (detail, _) = server.get(&format!("{path}?wait={wait}")).await.problem(400, "invalid_parameter");
        let allowed = "whole seconds or milliseconds such as `5s` or `500ms`, at most `20s`, is allowed";
        assert_eq!(detail, format!("the query parameter `wait`: is `{wait}`, {allowed}"));
    }
    server.get(&format!("/fanouts/{NOBODY}?wait=5s")).await.problem(404, "unknown_fanout");
}
