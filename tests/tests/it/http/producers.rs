//! Fan-outs with producers over HTTP: opened, shown, resumed, and what is refused.

use fanfold_produce::SourceError;
use serde_json::{Value, json};

use super::{NOBODY, Server};

fn request(changes: Value) -> Value {
    let mut producer = json!({"source": {"url": "https://rows.example/"}, "partitions": 2, "key": "content.order"});
    producer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!({"producer": producer})
}

fn row(order: &str) -> Value {
    json!({"kind": "parcel", "content": {"depot": "117", "order": order}})
}

#[tokio::test(start_paused = true)]
async fn a_producer_is_shown_with_each_partition() {
    let server = Server::start().await;
    server.stack.sources.answer(|ask| {
        Ok(match ask.cursor.as_str() {
            None => json!({"tasks": [row("a"), row("b"), row("c")], "cursor": "next"}),
            Some(_) => json!({"tasks": [row("d"), 7]}),
        })
    });
    let opened = server.post("/fanouts", request(json!({"tolerated_bad_rows": 1}))).await.ok(201);
    let path = format!("/fanouts/{}", opened["id"].as_str().unwrap());
    let shown = server.get(&path).await.ok(200);
    let begun = &shown["producer"]["partitions"][1];
    assert_eq!((&begun["state"], &begun["rows"], &begun["cursor"]), (&json!("running"), &json!(0), &Value::Null));
    server.post(&format!("{path}/seal"), json!({})).await.problem(409, "fanout_produced");
    server.stack.drain().await;
    let shown = server.get(&path).await.ok(200);
    assert_eq!((&shown["state"], &shown["total"]), (&json!("completed"), &json!(4)));
    let partitions = shown["producer"]["partitions"].as_array().unwrap();
    let sum = |field: &str| partitions.iter().map(|it| it[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((partitions.len(), sum("rows"), sum("dropped"), sum("bad"), sum("duplicates")), (2, 10, 4, 2, 0));
    assert_eq!(partitions[0]["bad_rows"][0]["row"], 4);
    assert!(partitions.iter().all(|it| it["state"] == "done"));
    assert!(server.get(&format!("/fanouts/{}", opened["id"].as_str().unwrap())).await.ok(200)["producer"].is_object());
}

#[tokio::test(start_paused = true)]
async fn a_failed_partition_is_shown_and_resumed() {
    let server = Server::start().await;
    server.stack.sources.answer(|_| Err(SourceError::for_good("the table is gone")));
    let opened = server.post("/fanouts", request(json!({}))).await.ok(201);
    let path = format!("/fanouts/{}", opened["id"].as_str().unwrap());
    server.stack.drain().await;
    let shown = server.get(&path).await.ok(200);
    let partitions = shown["producer"]["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 2);
    for partition in partitions {
        let (state, error) = (&partition["state"], &partition["error"]);
        assert_eq!((state, error), (&json!("failed"), &json!("the table is gone")));
    }
    server.stack.sources.answer(|_| Ok(json!({"tasks": [row("a")]})));
    let resumed = server.post(&format!("{path}/producer/resume"), json!({})).await.ok(200);
    let states: Vec<&Value> = resumed["partitions"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["running", "running"]);
    server.stack.drain().await;
    assert_eq!(server.get(&path).await.ok(200)["total"], 1);
    server.post(&format!("{path}/producer/resume"), json!({})).await.problem(409, "fanout_not_open");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_is_refused_by_field() {
    let server = Server::start().await;
    for (changes, field) in [
        (json!({"partitions": 0}), "producer.partitions"),
        (json!({"partitions": 65}), "producer.partitions"),
        (json!({"key": "content."}), "producer.key"),
        (json!({"source": {"url": "http://rows.example/"}}), "producer.source.url"),
        (json!({"source": {"lambda": "no function"}}), "producer.source.lambda"),
        (json!({"source": {"s3": {"bucket": "rows", "key": "a.txt"}}, "key": null}), "producer.source.s3.format"),
        (json!({"source": {"s3": {"bucket": "rows", "key": "a.ndjson"}}}), "producer.key"),
        (json!({"source": {"file": {"path": "a.ndjson"}}, "key": null}), "producer.source.file"),
        (json!({"source": {"command": ["./rows"]}}), "producer.source.command"),
    ] {
        let (_, fields) = server.post("/fanouts", request(changes)).await.problem(422, "invalid_producer");
        assert_eq!(fields, [field]);
    }
    for (field, value) in [("items", json!(3)), ("seal", json!(true))] {
        let mut request = request(json!({}));
        request[field] = value;
        let (_, fields) = server.post("/fanouts", request).await.problem(422, "out_of_range");
        assert_eq!(fields, [field]);
    }
    server.post("/fanouts", request(json!({"source": {}}))).await.problem(422, "invalid_body");
    server.post("/fanouts", request(json!({"tolerated_bad_rows": "101%"}))).await.problem(422, "invalid_body");
    let plain = server.post("/fanouts", json!({"items": 1})).await.ok(201);
    let path = format!("/fanouts/{}/producer/resume", plain["id"].as_str().unwrap());
    server.post(&path, json!({})).await.problem(409, "no_producer");
    server.post(&format!("/fanouts/{NOBODY}/producer/resume"), json!({})).await.problem(404, "unknown_fanout");
    assert!(server.stack.sources.asked().is_empty());
}

/// Whoever can open such a fan-out reads files and runs programs here.
#[tokio::test(start_paused = true)]
async fn files_and_programs_are_taken_where_they_are_allowed() {
    let server = Server::start().await;
    let file = request(json!({"source": {"file": {"path": "a.ndjson"}}, "key": null}));
    let command = request(json!({"source": {"command": ["./rows"]}}));
    let (detail, _) = server.post("/fanouts", file.clone()).await.problem(422, "invalid_producer");
    assert!(
        detail.contains("is allowed only in the local runner; `url`, `lambda` and `s3` are allowed here"),
        "{detail}"
    );
    let server = server.with_commands();
    server.post("/fanouts", file).await.ok(201);
    server.post("/fanouts", command).await.ok(201);
    // Nobody but `fanfold run` names its file.
    let rows = json!({"kind": "parcel", "fingerprint": NOBODY, "page_rows": 2, "page_bytes": 3});
    let rows = request(json!({"source": {"rows": rows}, "key": null}));
    let (detail, _) = server.post("/fanouts", rows).await.problem(422, "invalid_producer");
    assert!(detail.contains("only `fanfold run` uses it"), "{detail}");
    let none = request(json!({"source": {"command": []}}));
    let (_, fields) = server.post("/fanouts", none).await.problem(422, "invalid_producer");
    assert_eq!(fields, ["producer.source.command"]);
}
