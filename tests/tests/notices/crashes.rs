//! A worker dies at each request of a chain in turn: a sweep heals it, and nothing is told under another id.

use fanfold_tests::{Moment, QueueName, Reply};

use super::*;

/// The end of a fan-out, told at the third try or refused for good; whether the crash came to pass.
async fn run(at: u64, moment: Moment, gone: bool) -> bool {
    let policy = json!({"kind": "parcel", "target": "content.depot", "handler": {"command": ["truck"]}});
    let stack = Stack::new(policy, ScriptedApi::always_succeeds(), Crash::new(at, moment)).await;
    stack.webhooks.answer(move |_, before| match (before, gone) {
        (0 | 1, _) => Reply::Refuses(503),
        (_, false) => Reply::Takes,
        (_, true) => Reply::Refuses(410),
    });
    let (fanout, ids) = open(&stack, URL, 2, "order").await;
    while stack.ack.apply(&done(&ids)).await.is_err() {
        stack.crash.revive();
    }
    stack.crash.revive();
    for _ in 0..3 {
        run_for(&stack, 5 * MINUTE, MINUTE / 2).await;
        stack.sweep().await;
    }
    if stack.crash.struck().is_none() {
        return false;
    }
    let telling = header(&stack, fanout).await.telling;
    assert_eq!((telling.told.is_some(), telling.given_up.is_some()), (!gone, gone), "request {at}: {telling:?}");
    assert_eq!(stack.backlog().await, 0, "request {at}");
    let calls = stack.webhooks.posted().len();
    assert!((3..=4).contains(&calls), "request {at}: {calls} calls");
    assert_eq!(stack.webhooks.by_notice().len(), 1);
    let dead = stack.dead(QueueName::Notify).await.len();
    assert!(dead == usize::from(gone) || (gone && dead == 2), "request {at}");
    true
}

async fn at_every_request(moment: Moment, gone: bool) {
    let mut requests = 0;
    while run(requests + 1, moment, gone).await {
        requests += 1;
    }
    assert!(requests > 15, "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    at_every_request(Moment::Before, false).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    at_every_request(Moment::After, false).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    at_every_request(Moment::AnswerLost, false).await;
}

#[tokio::test(start_paused = true)]
async fn dies_while_it_gives_up() {
    at_every_request(Moment::Before, true).await;
    at_every_request(Moment::After, true).await;
}
