//! Tasks that a fan-out was opened with, when they cannot be registered at once.

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
