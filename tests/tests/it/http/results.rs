//! Results: shown by task, by batch and by fan-out.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::http::Request;
use fanfold::limits::RESULT_BYTES_MAX;
use fanfold_batch_api::{Answer, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Server, parcel};

/// A batch API that returns a result of so many bytes for each order, and fails those whose number is a multiple of ten.
fn labels(bytes: usize) -> Arc<ScriptedApi> {
    ScriptedApi::new(move |call| {
        let answer = |member: &CallMember| {
            let content: Value = serde_json::from_str(member.content.get()).unwrap();
            let number: usize = content["order"].as_str().unwrap().trim_start_matches("ORD-").parse().unwrap();
            if number.is_multiple_of(10) {
                let (error, code) = (Some("too heavy".to_owned()), Some("E10".to_owned()));
                return MemberAnswer { error, code, ..MemberAnswer::new(member.id, MemberOutcome::Failed) };
            }
            let result = json!({"label": number, "pdf": "x".repeat(bytes)}).to_string();
            MemberAnswer { result: Some(result), ..MemberAnswer::new(member.id, MemberOutcome::Succeeded) }
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    })
}

async fn server(changes: Value, bytes: usize) -> Server {
    Server::over(TestStack::new(parcel(changes), labels(bytes), Crash::never()).await)
}

/// A fan-out of so many orders that were handled.
async fn handled(server: &Server, items: u32) -> (String, Vec<String>) {
    let (fanout, ids) = server.stack.open(items, true).await;
    server.stack.register_items(&ids).await;
    server.stack.drain().await;
    (fanout.to_string(), ids.iter().map(ToString::to_string).collect())
}

fn expected(n: usize, id: &str, bytes: usize) -> Value {
    if n.is_multiple_of(10) {
        return json!({"id": id, "outcome": "failed", "error": "too heavy", "code": "E10"});
    }
    json!({"id": id, "outcome": "succeeded", "result": {"label": n, "pdf": "x".repeat(bytes)}})
}

#[tokio::test(start_paused = true)]
async fn they_are_shown_by_task_by_batch_and_by_fanout() {
    are_shown(7).await;
}

/// A page is of more batches than are in memory at once.
#[tokio::test(start_paused = true)]
async fn they_are_shown_if_every_task_has_a_batch_of_its_own() {
    are_shown(1).await;
}

async fn are_shown(max_batch: u32) {
    let server = server(json!({"keep_results": true, "max_batch": max_batch}), 3).await;
    let (fanout, ids) = handled(&server, 25).await;
    let all = server.get(&format!("/fanouts/{fanout}/results")).await.ok(200);
    let expected: Vec<Value> = ids.iter().enumerate().map(|(n, id)| expected(n, id, 3)).collect();
    assert_eq!((&all["results"], all.get("next")), (&json!(expected), None));
    for (id, expected) in ids.iter().zip(&expected) {
        let task = server.get(&format!("/tasks/{id}")).await.ok(200);
        for field in ["result", "error", "code"] {
            assert_eq!(task.get(field), expected.get(field), "{task}");
        }
        let batch = task["batch"].as_str().unwrap();
        let results = server.get(&format!("/batches/{batch}/results")).await.ok(200);
        assert!(results["results"].as_array().unwrap().contains(expected), "{results}");
        let batch = server.get(&format!("/batches/{batch}")).await.ok(200);
        let member = batch["members"].as_array().unwrap().iter().find(|member| member["id"] == json!(id)).unwrap();
        assert_eq!((member.get("code"), member.get("result")), (expected.get("code"), None));
    }
}

#[tokio::test(start_paused = true)]
async fn without_keep_results_there_are_outcomes_and_no_results() {
    let server = server(json!({}), 3).await;
    let (fanout, ids) = handled(&server, 2).await;
    let all = server.get(&format!("/fanouts/{fanout}/results")).await.ok(200);
    assert_eq!(all["results"], json!([expected(0, &ids[0], 3), {"id": ids[1], "outcome": "succeeded"}]));
    assert!(server.get(&format!("/tasks/{}", ids[1])).await.ok(200).get("result").is_none());
}

#[tokio::test(start_paused = true)]
async fn they_are_paged_by_number_and_by_bytes() {
    let server = server(json!({"keep_results": true, "max_batch": 100}), 9).await;
    let (fanout, ids) = handled(&server, 1_203).await;
    let (found, pages) = server.pages(&format!("/fanouts/{fanout}/results"), "results").await;
    let found: Vec<&str> = found.iter().map(|result| result["id"].as_str().unwrap()).collect();
    assert_eq!((found, pages), (ids.iter().map(String::as_str).collect(), 3));

    let bytes = RESULT_BYTES_MAX - 100;
    let server = self::server(json!({"keep_results": true, "max_batch": 100}), bytes).await;
    let (fanout, ids) = handled(&server, 20).await;
    let (found, pages) = server.pages(&format!("/fanouts/{fanout}/results"), "results").await;
    let expected: Vec<Value> = ids.iter().enumerate().map(|(n, id)| expected(n, id, bytes)).collect();
    assert!(found == expected && pages == 2, "{} in {pages} pages", found.len());
    let task = server.get(&format!("/tasks/{}", ids[1])).await.ok(200);
    let batch = format!("/batches/{}/results", task["batch"].as_str().unwrap());
    assert_eq!(server.pages(&batch, "results").await.0.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn groups_that_were_added_are_listed_too() {
    let server = server(json!({"keep_results": true}), 3).await;
    let (fanout, mut ids) = server.stack.open(0, false).await;
    ids.extend(server.stack.add(fanout, 3, "first").await);
    ids.extend(server.stack.add(fanout, 4, "second").await);
    // The others wait for somebody else's acks.
    server.stack.register_items(&ids[1..6]).await;
    server.stack.drain().await;
    let page = |after: String| {
        let server = &server;
        async move { super::ids(&server.pages(&format!("/fanouts/{fanout}/results{after}"), "results").await.0) }
    };
    // Groups that were added are in the order of their ids.
    ids[1..6].sort_unstable();
    let done: Vec<String> = ids[1..6].iter().map(ToString::to_string).collect();
    assert_eq!(page(String::new()).await, done);
    assert_eq!(page(format!("?after={}", done[1])).await, done[2..]);
    assert_eq!(page(format!("?after={}", done[3].replace(':', "%3A"))).await, done[4..]);
    let stranger = server.get(&format!("/fanouts/{fanout}/results?after={fanout}")).await;
    assert_eq!(stranger.status, 400);
    let bad = server.get(&format!("/fanouts/{fanout}/results?after=x")).await;
    let detail = bad.body["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        (bad.status, detail.as_str()),
        (400, "the query parameter `after`: is `x`, the id of a task is allowed")
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_leaves_its_success_and_advice() {
    let server = server(json!({"keep_results": true}), RESULT_BYTES_MAX).await;
    let (fanout, ids) = handled(&server, 2).await;
    let task = server.get(&format!("/tasks/{}", ids[1])).await.ok(200);
    let note = task["result_left_out"].as_str().unwrap();
    assert!(note.contains("at most 262144 are kept: return less, such as where it is stored"), "{note}");
    assert_eq!((task["status"].as_str(), task.get("result")), (Some("succeeded"), None));
    let all = server.get(&format!("/fanouts/{fanout}/results")).await.ok(200);
    let expected = json!({"id": ids[1], "outcome": "succeeded", "result_left_out": note});
    assert_eq!(all["results"][1], expected);
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_a_result_per_line_and_links_the_next_page() {
    let server = server(json!({"keep_results": true, "max_batch": 100}), 3).await;
    let (fanout, ids) = handled(&server, 501).await;
    let request = Request::get(format!("/fanouts/{fanout}/results")).header("accept", "application/x-ndjson");
    let response = server.router.clone().oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "application/x-ndjson");
    let next = format!("</fanouts/{fanout}/results?after={}>; rel=\"next\"", ids[499]);
    assert_eq!(headers["link"], next.as_str());
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let lines: Vec<Value> =
        body.split_inclusive(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]), (500, &expected(1, &ids[1], 3)));
}
