//! Without faults each notice is delivered once, whatever is repeated.

use std::sync::Arc;

use fanfold::delivery::Step;
use fanfold_notify::Notify;
use fanfold_tests::{QueueName, WebhookAnswer};
use futures::future::join_all;

use super::*;

#[tokio::test(start_paused = true)]
async fn concurrent_acks_of_the_last_item_send_one_notice() {
    let stack = stack().await;
    for (n, items) in [1, 3].into_iter().enumerate() {
        let (_, ids) = open(&stack, URL, items, &n.to_string()).await;
        let request = done(&ids);
        for answer in join_all((0..50).map(|_| stack.ack.apply(&request))).await {
            assert!(answer.unwrap().fanouts[0].complete);
        }
        assert_eq!(stack.backlog().await, 1, "one hint");
        stack.drain().await;
        for _ in 0..3 {
            stack.ack.apply(&request).await.unwrap();
            stack.drain().await;
        }
        assert_eq!(stack.webhooks.posted().len(), n + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_acks_and_seals_of_a_large_fanout_send_one_notice() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 3, "first").await;
    let request = done(&ids);
    let acks = join_all((0..25).map(|_| stack.ack.apply(&request)));
    let seals = join_all((0..25).map(|_| stack.tracking.seal(fanout)));
    let (acks, seals) = futures::join!(acks, seals);
    assert!(acks.iter().all(Result::is_ok) && seals.iter().all(Result::is_ok));
    assert_eq!(stack.backlog().await, 1, "one hint");
    stack.drain().await;
    assert_eq!(stack.take(QueueName::Notices).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_empty_fanout_opened_again_has_one_notice() {
    let stack = stack().await;
    for _ in 0..5 {
        open(&stack, URL, 0, "empty").await;
    }
    assert_eq!(stack.backlog().await, 1, "one hint");
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_fanouts_have_one_notice_each() {
    let stack = stack().await;
    let opened = join_all((0..1_000).map(|n| {
        let (stack, key) = (&stack, n.to_string());
        async move { open(stack, URL, 1, &key).await }
    }));
    let requests: Vec<AckRequest> = opened.await.iter().map(|(_, ids)| done(ids)).collect();
    for requests in requests.chunks(100) {
        for answer in join_all(requests.iter().chain(requests).map(|request| stack.ack.apply(request))).await {
            answer.unwrap();
        }
        while stack.deliver(QueueName::Notify).await > 0 {}
    }
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 1_000);
    assert_eq!(stack.webhooks.by_notice().len(), 1_000);
}

/// SQS delivers a message twice, at once and later.
#[tokio::test(start_paused = true)]
async fn copies_of_a_message_make_one_call() {
    let stack = stack().await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Hangs);
    let fanout = completed(&stack, URL).await;
    let message = stack.take(QueueName::Notify).await;
    let other = Arc::new(Notify::from_environment(stack.surroundings(), stack.webhooks.clone()).unwrap());
    let failed =
        join_all([&stack.notify, &other, &stack.notify, &other].map(|step| step.deliver(message.clone()))).await;
    assert!(failed.iter().all(Vec::is_empty));
    assert_eq!(stack.webhooks.posted().len(), 1);
    let before = stack.header(fanout).await.notice;
    assert_eq!((before.tries, before.error.as_deref()), (1, Some("the receiver did not answer")));
    for _ in 0..20 {
        assert!(stack.hand(QueueName::Notify, message.clone()).await.is_empty());
    }
    assert_eq!(stack.webhooks.posted().len(), 1, "a later try is for its own message");
    stack.webhooks.answer(|_, _| WebhookAnswer::Takes);
    stack.drain().await;
    assert!(stack.header(fanout).await.notice.delivered.is_some());
    assert_eq!(stack.webhooks.posted().len(), 2);
}
