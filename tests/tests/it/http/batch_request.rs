//! The request of a batch, as it is shown, is the one that its batch API is called with.

use std::time::Duration;

use fanfold::limits::SHOWN_BODY_BYTES_MAX;
use fanfold::store::batches::BatchStatus;
use fanfold_batch_api::{Answer, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{Server, parcel};

/// Stores tasks of one lane; returns their ids.
async fn registered(server: &Server, contents: &[Value]) -> Vec<String> {
    let task = |content: &Value| json!({"kind": "parcel", "content": content});
    let tasks: Vec<Value> = contents.iter().map(task).collect();
    let answer = server.post("/tasks", json!({ "tasks": tasks })).await.ok(202);
    let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
    answer["tasks"].as_array().unwrap().iter().map(id).collect()
}

async fn shown(server: &Server) -> Value {
    let batch = server.stack.only_batch().await.id;
    server.get(&format!("/batches/{batch}/request")).await.ok(200)
}

/// A batch API that has one of two members retried at first.
#[tokio::test(start_paused = true)]
async fn it_is_that_of_the_call_that_comes_next_and_in_the_end_of_all_members() {
    let api = ScriptedApi::new(|call| {
        let answer = |member: &CallMember| {
            let later = call.attempt == 1 && member.content.get().contains("\"n\":2");
            MemberAnswer::new(member.id, if later { MemberOutcome::Retry } else { MemberOutcome::Succeeded })
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    });
    let policy = parcel(json!({"max_attempts": 3, "backoff": {"base": "10m", "max": "10m"}}));
    let server = Server::over(TestStack::new(policy, api.clone(), Crash::never()).await);
    let ids = registered(&server, &[json!({"depot": "x", "n": 1}), json!({"depot": "x", "n": 2})]).await;
    server.stack.pass_time(Duration::from_secs(60)).await;
    let next = shown(&server).await;
    assert_eq!(next["members"], json!([ids[1]]), "{next}");
    server.stack.drain().await;
    let after = shown(&server).await;
    let seen = api.seen();
    assert_eq!(seen.len(), 2);
    for (shown, seen) in [(&after["request"], &seen[0]), (&next["request"], &seen[1])] {
        assert_eq!((&shown["body"], &shown["idempotency_key"]), (&json!(seen.body), &json!(seen.key)));
        assert_eq!((&shown["to"], &shown["body_bytes"]), (&json!("truck"), &json!(seen.body.len())));
    }
    assert_eq!(after["members"].as_array().unwrap().len(), 2);
}

/// What is read is also written anew by every version of the policy, and changes nothing.
#[tokio::test(start_paused = true)]
async fn it_follows_the_policy_and_names_who_cannot_be_in_it() {
    let server = Server::start().await;
    let ids =
        registered(&server, &[json!({"depot": "x", "n": 1}), json!({"depot": "x"}), json!({"depot": "x", "n": 3})])
            .await;
    server.stack.drain().await;
    let before = server.stack.only_batch().await;
    assert_eq!(before.status, BatchStatus::Done);
    let stored = |request: Value| {
        json!({"target": "content.depot", "batch_api": {
            "url": "https://example.com/trucks", "request": request, "response": {"match": "none"},
        }})
    };
    let request = json!({"method": "PUT", "headers": {"X-Key": "${secret.TOKEN}"}, "body": {"all": {"${members}": "${content.n}"}}});
    server.put("/policies/parcel", stored(request)).await.ok(200);
    server.stack.delete_record("TasksTable", &ids[2]).await;
    let answer = shown(&server).await;
    assert_eq!(answer["members"], json!([ids[0]]), "{answer}");
    let request = &answer["request"];
    assert_eq!((&request["method"], &request["to"]), (&json!("PUT"), &json!("https://example.com/trucks")));
    assert_eq!(request["headers"], json!({"Content-Type": "application/json", "X-Key": "[secret TOKEN]"}));
    assert_eq!(request["body"], json!(r#"{"all":[1]}"#));
    let left_out = answer["left_out"].as_array().unwrap();
    assert_eq!((&left_out[0]["id"], &left_out[1]["id"]), (&json!(ids[2]), &json!(ids[1])), "{answer}");
    assert_eq!(left_out[0]["problem"], "its task is no longer kept");
    server.put("/policies/parcel", stored(json!({"body": {"${members}": "${content.none}"}}))).await.ok(200);
    let answer = shown(&server).await;
    assert_eq!((answer.get("request"), &answer["members"]), (None, &json!([])), "{answer}");
    assert!(answer["problem"].as_str().unwrap().contains("no member can be in it"), "{answer}");
    assert_eq!(server.stack.only_batch().await, before);
}

/// A Lambda function could not return it.
#[tokio::test(start_paused = true)]
async fn a_very_long_body_is_cut_off() {
    let server = Server::start().await;
    let long = "ü".repeat(60 * 1_024);
    registered(&server, &vec![json!({"depot": "x", "text": long}); 10]).await;
    server.stack.drain().await;
    let answer = shown(&server).await;
    let body = answer["request"]["body"].as_str().unwrap();
    assert!(body.len() <= SHOWN_BODY_BYTES_MAX && body.len() > SHOWN_BODY_BYTES_MAX - 4);
    assert!(
        answer["request"]["body_bytes"].as_u64().unwrap() > 10 * 2 * 60 * 1_024,
        "{}",
        answer["request"]["body_bytes"]
    );
}
