//! `GET /health` says what is stale or in error, and since when.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, order};
use serde_json::{Value, json};

use super::{Server, parcel};

const MINUTE: Duration = Duration::from_secs(60);

/// Registers a task and lets its message be lost.
async fn lose_a_task(server: &Server) -> u64 {
    let registered = server.stack.world.now().0;
    server.stack.register(vec![order(None, "117", 1)]).await;
    server.stack.take(QueueName::Elect).await;
    registered
}

async fn health(server: &Server) -> Value {
    server.get("/health").await.ok(200)
}

fn sorts(health: &Value) -> Vec<&str> {
    let findings = health["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.iter().map(|finding| finding["what"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_is_swept_is_well() {
    let server = Server::start().await;
    server.stack.sweep().await;
    let well = health(&server).await;
    assert_eq!((&well["status"], sorts(&well)), (&json!("ok"), vec![]));
    assert_eq!(well["swept_at"], server.stack.world.now().0);
}

#[tokio::test(start_paused = true)]
async fn sweeps_that_fall_silent_are_an_error() {
    let server = Server::start().await;
    server.stack.sweep().await;
    let swept = server.stack.world.now().0;
    server.stack.clock.skip(5 * MINUTE);
    let silent = health(&server).await;
    assert_eq!((&silent["status"], sorts(&silent)), (&json!("error"), vec!["sweep_silent"]));
    assert_eq!((&silent["findings"][0]["since"], &silent["swept_at"]), (&json!(swept), &json!(swept)));
    server.stack.sweep().await;
    assert_eq!(health(&server).await["status"], "ok", "the next sweep fixes it");
}

/// A record that cannot be read breaks every sweep off.
#[tokio::test(start_paused = true)]
async fn sweeps_that_break_off_are_an_error() {
    let server = Server::start().await;
    server.stack.sweep().await;
    let dynamodb = &server.stack.surroundings().dynamodb;
    let [lane, active, epoch] = ["parcel:0:117", "7", "not a number"].map(|text| AttributeValue::S(text.to_owned()));
    let put = dynamodb.put_item().table_name("LocksTable").item("lane", lane.clone());
    put.item("active", active).item("epoch", epoch).send().await.unwrap();
    let broke = server.stack.world.now().0;
    for minutes in [0, 2] {
        server.stack.clock.skip(minutes * MINUTE);
        assert!(server.stack.sweeper.sweep(SweepRequest::default()).await.is_err());
        let wrong = health(&server).await;
        assert_eq!((&wrong["status"], sorts(&wrong)), (&json!("error"), vec!["sweep_fails"]));
        let finding = &wrong["findings"][0];
        assert!(finding["since"].as_u64().unwrap() < broke + 1_000, "since the first that broke off: {finding}");
        assert!(finding["says"].as_str().unwrap().contains("parcel:0:117"), "{finding}");
    }
    dynamodb.delete_item().table_name("LocksTable").key("lane", lane).send().await.unwrap();
    server.stack.sweep().await;
    assert_eq!(health(&server).await["status"], "ok");
}

/// The message is lost, and so is the one that each sweep sends.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_for_long_are_named_by_their_lane() {
    let server = Server::start().await;
    let registered = lose_a_task(&server).await;
    for (minutes, stale) in [(14, false), (2, true)] {
        server.stack.clock.skip(minutes * MINUTE);
        server.stack.sweep_now().await;
        server.stack.take(QueueName::Elect).await;
        assert_eq!(health(&server).await["status"] == "stale", stale);
    }
    let stale = health(&server).await;
    let finding = &stale["findings"][0];
    assert_eq!((sorts(&stale), &finding["count"]), (vec!["tasks_wait"], &json!(1)));
    assert_eq!(finding["about"][0]["name"], "parcel:0:117");
    let since = finding["since"].as_u64().unwrap();
    assert!(since >= registered && since < registered + 1_000, "{finding}");
    // A pause is meant to last; whatever waits in it is no finding.
    server.stack.control.pause(&fanfold::control::Scope::All).await.unwrap();
    server.stack.sweep_now().await;
    assert_eq!(health(&server).await["status"], "ok");
}

#[tokio::test(start_paused = true)]
async fn tasks_without_a_policy_are_an_error() {
    let server = Server::start().await;
    lose_a_task(&server).await;
    server.stack.delete_policy("parcel").await;
    server.stack.sweep().await;
    let wrong = health(&server).await;
    assert_eq!((&wrong["status"], sorts(&wrong)), (&json!("error"), vec!["no_policy"]));
    server.stack.put_policy(parcel(json!({}))).await;
    server.stack.minutes(3).await;
    assert_eq!(health(&server).await["status"], "ok");
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_worker_is_lost_again_and_again_is_stale() {
    let server = Server::start().await;
    server.stack.register(vec![order(None, "117", 1)]).await;
    server.stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    server.stack.take(QueueName::Handle).await;
    server.stack.clock.skip(61 * MINUTE);
    server.stack.sweep_now().await;
    let stale = health(&server).await;
    let batch = server.stack.all_batches().await.remove(0);
    assert_eq!((sorts(&stale), &stale["status"]), (vec!["batch_unfinished"], &json!("stale")));
    assert_eq!(stale["findings"][0]["about"], json!([{"name": batch.id.to_string(), "since": batch.created_at.0}]));
    server.stack.minutes(2).await;
    assert_eq!(health(&server).await["status"], "ok", "the sweep sent its message again");
}

/// Long before its members fail, and before anything has waited for an hour.
#[tokio::test(start_paused = true)]
async fn calls_that_fail_for_minutes_are_named_by_their_kind() {
    let (status, api) = ScriptedApi::answering(500);
    let server = Server::over(TestStack::new(parcel(json!({"max_attempts": 20})), api, Crash::never()).await);
    let registered = server.stack.world.now().0;
    server.stack.register(vec![order(None, "117", 1), order(None, "118", 2)]).await;
    server.stack.minutes(4).await;
    assert_eq!(health(&server).await["status"], "ok", "a batch API may be restarted");
    server.stack.minutes(3).await;
    let stale = health(&server).await;
    let finding = &stale["findings"][0];
    assert_eq!((sorts(&stale), &stale["status"]), (vec!["calls_fail"], &json!("stale")));
    assert_eq!((&finding["count"], &finding["about"][0]["name"]), (&json!(1), &json!("parcel")));
    assert!(finding["about"][0]["error"].as_str().unwrap().contains("500"), "{finding}");
    assert!(finding["since"].as_u64().unwrap() < registered + 60_000, "{finding}");
    // What is paused is no finding, and what works is none.
    server.stack.control.pause(&fanfold::control::Scope::All).await.unwrap();
    server.stack.sweep_now().await;
    assert_eq!(health(&server).await["status"], "ok");
    server.stack.control.resume(&fanfold::control::Scope::All).await.unwrap();
    server.stack.sweep_now().await;
    assert_eq!(health(&server).await["status"], "stale");
    status.store(200, Ordering::Relaxed);
    server.stack.minutes(30).await;
    assert_eq!(health(&server).await["status"], "ok");
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_an_error_and_the_worst_comes_first() {
    let server = Server::start().await;
    lose_a_task(&server).await;
    server.stack.clock.skip(16 * MINUTE);
    server.stack.sweep_now().await;
    let url = server.stack.url(QueueName::Ack).replace("Queue", "DeadLetterQueue");
    let sqs = &server.stack.surroundings().sqs;
    sqs.send_message().queue_url(url).message_body("x").send().await.unwrap();
    let wrong = health(&server).await;
    assert_eq!((&wrong["status"], sorts(&wrong)), (&json!("error"), vec!["dead_letters", "tasks_wait"]));
    assert_eq!(wrong["findings"][0]["about"], json!([{"name": "ack"}]));
}
