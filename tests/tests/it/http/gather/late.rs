//! Tasks that a fan-out was opened with, when they cannot be registered at once.

use std::time::Duration;

use fanfold::store::fanouts::Fanout;
use fanfold_tests::QueueName;

use super::*;

/// The worker that opens the fan-out dies before it registers the tasks. Their policy is gone when a sweep has them registered, and
/// comes back.
#[tokio::test(start_paused = true)]
async fn tasks_that_their_policy_does_not_accept_any_more_wait_for_it() {
    let (server, _) = server(Crash::never()).await;
    let stack = &server.stack;
    let request = serde_json::from_value(gather(1)).unwrap();
    let opened = stack.producing.open(&stack.tracking, request, Some("k")).await.unwrap().fanout;
    assert!(opened.to_register() && opened.ending());
    stack.delete_policy("invoices").await;
    rest(&server).await;
    assert!(stack.header(opened.id).await.to_register());
    let of = policy(json!({"kind": "invoices", "target": "'all'", "keep_results": true}));
    stack.put_policy(of).await;
    stack.pass_time(fanfold::limits::WAKE_PAUSE_MAX).await;
    rest(&server).await;
    let header = stack.header(opened.id).await;
    assert!(header.complete() && !header.to_register() && !header.ending(), "{header:?}");
    assert_eq!((reports(&server).len(), fetched(&server).values().sum::<usize>()), (1, 2));
}

/// A fan-out that was opened with two tasks, of which one is refused: its kind has no policy.
async fn without_invoices() -> (Server, Fanout) {
    let (server, _) = server(Crash::never()).await;
    let stack = &server.stack;
    let request = serde_json::from_value(gather(1)).unwrap();
    stack.delete_policy("invoices").await;
    let opened = stack.producing.open(&stack.tracking, request, Some("k")).await.unwrap().fanout;
    rest(&server).await;
    (server, opened)
}

/// One task is refused for months. What is done of the others is forgotten meanwhile, but not that it is done.
#[tokio::test(start_paused = true)]
async fn what_is_done_is_not_called_again_while_another_task_waits_for_its_policy() {
    let (server, opened) = without_invoices().await;
    let stack = &server.stack;
    for _ in 0..40 {
        stack.clock.skip(Duration::from_secs(24 * 3_600));
        stack.delete_expired().await;
        rest(&server).await;
    }
    assert_eq!(fetched(&server), BTreeMap::from([(("orders".to_owned(), 1), 1)]));
    assert!(stack.header(opened.id).await.to_register());
    stack.put_policy(policy(json!({"kind": "invoices", "target": "'all'", "keep_results": true}))).await;
    stack.pass_time(fanfold::limits::WAKE_PAUSE_MAX).await;
    rest(&server).await;
    assert!(stack.header(opened.id).await.complete());
    assert_eq!(fetched(&server).into_values().collect::<Vec<_>>(), [1, 1]);
    let report = reports(&server).into_values().next().unwrap().remove(0);
    let (orders, invoices) = (&report["results"][0], &report["results"][1]);
    assert!(orders["outcome"] == "succeeded" && orders["result_left_out"].is_string(), "{orders}");
    assert_eq!(invoices["result"], json!({"kind": "invoices", "of": 1}));
}

/// Nobody registers the tasks before the fan-out is cancelled. Its header still has them.
#[tokio::test(start_paused = true)]
async fn tasks_that_were_never_registered_are_reissued_if_asked_for() {
    let (server, _) = server(Crash::never()).await;
    let request = serde_json::from_value(gather(1)).unwrap();
    let opened = server.stack.producing.open(&server.stack.tracking, request, Some("k")).await.unwrap().fanout;
    cancel(&server, opened.id, 2).await;
    assert_eq!(fetched(&server), BTreeMap::new());
    reissue_missing(&server, opened.id, 2).await;
    assert_eq!(fetched(&server).into_values().collect::<Vec<_>>(), [1, 1]);
}

/// One of the tasks has no policy until the fan-out is cancelled. The other one is done.
#[tokio::test(start_paused = true)]
async fn of_tasks_only_those_that_were_never_registered_are_reissued() {
    let (server, opened) = without_invoices().await;
    let stack = &server.stack;
    assert_eq!(fetched(&server), BTreeMap::from([(("orders".to_owned(), 1), 1)]));
    cancel(&server, opened.id, 1).await;
    stack.put_policy(policy(json!({"kind": "invoices", "target": "'all'", "keep_results": true}))).await;
    reissue_missing(&server, opened.id, 1).await;
    assert_eq!(fetched(&server).into_values().collect::<Vec<_>>(), [1, 1]);
}

/// Cancels a fan-out, which ends with so many items missing.
async fn cancel(server: &Server, fanout: uuid::Uuid, missing: u64) {
    server.delete(&format!("/fanouts/{fanout}")).await.ok(200);
    server.stack.pass_time(2 * fanfold::limits::MISSING_AFTER).await;
    rest(server).await;
    let header = server.stack.header(fanout).await;
    assert!(header.ended() && header.missing == missing, "{header:?}");
}

/// Reissues what is missing of a fan-out: so many tasks, which succeed.
async fn reissue_missing(server: &Server, of: uuid::Uuid, tasks: u64) {
    let new = server.post(&format!("/fanouts/{of}/reissue"), json!({"missing": true})).await.ok(201);
    rest(server).await;
    let ended = server.get(&format!("/fanouts/{}", id(&new))).await.ok(200);
    let counts = (&ended["state"], &ended["total"], &ended["succeeded"]);
    assert_eq!(counts, (&json!("completed"), &json!(tasks), &json!(tasks)));
}

/// Late and repeated messages to register them change nothing, whatever became of the fan-out.
#[tokio::test(start_paused = true)]
async fn late_and_repeated_messages_to_register_them_change_nothing() {
    let (server, _) = server(Crash::never()).await;
    let stack = &server.stack;
    let open = async |key: &str| {
        let request = serde_json::from_value(gather(1)).unwrap();
        stack.producing.open(&stack.tracking, request, Some(key)).await.unwrap().fanout.id
    };
    let (one, cancelled) = (open("one").await, open("cancelled").await);
    server.delete(&format!("/fanouts/{cancelled}")).await.ok(200);
    for fanout in [one, cancelled] {
        for _ in 0..3 {
            stack.producing.register_again(fanout).await.unwrap();
        }
    }
    let messages = stack.take(QueueName::Produce).await;
    tokio::join!(stack.hand(QueueName::Produce, messages.clone()), stack.hand(QueueName::Produce, messages.clone()));
    rest(&server).await;
    assert!(stack.hand(QueueName::Produce, messages).await.is_empty());
    rest(&server).await;
    assert!(stack.header(one).await.complete());
    assert!(fetched(&server).values().all(|times| *times == 1), "{:?}", fetched(&server));
    stack.pass_time(2 * fanfold::limits::MISSING_AFTER).await;
    rest(&server).await;
    let header = stack.header(cancelled).await;
    assert!(header.ended() && header.missing == 2, "{header:?}");
}
