//! A worker dies at each request of a chain in turn: a sweep heals it, and no notice comes under another id.

use fanfold_tests::{Crash, Moment, QueueName, WebhookAnswer, at_every_request};

use super::*;

/// The end of a fan-out, delivered at the third try or refused for good; the request that was struck.
async fn run(crash: Crash, gone: bool) -> Option<String> {
    let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]}});
    let stack = TestStack::new(policy, ScriptedApi::always_succeeds(), crash).await;
    stack.webhooks.answer(move |_, before| match (before, gone) {
        (0 | 1, _) => WebhookAnswer::Refuses(503),
        (_, false) => WebhookAnswer::Takes,
        (_, true) => WebhookAnswer::Refuses(410),
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
    let at = stack.crash.struck()?;
    let notice = stack.header(fanout).await.notice;
    assert_eq!((notice.delivered.is_some(), notice.given_up.is_some()), (!gone, gone), "request {at}: {notice:?}");
    assert_eq!(stack.backlog().await, 0, "request {at}");
    let calls = stack.webhooks.posted().len();
    assert!((3..=4).contains(&calls), "request {at}: {calls} calls");
    assert_eq!(stack.webhooks.by_notice().len(), 1);
    let dead = stack.dead(QueueName::Notify).await.len();
    assert!(dead == usize::from(gone) || (gone && dead == 2), "request {at}");
    Some(at)
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_delivering_is_followed_by_another() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        let struck = at_every_request(moment, async |crash| run(crash, false).await).await;
        assert!(struck.len() > 15, "{moment:?}: {struck:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_giving_up_is_followed_by_another() {
    for moment in [Moment::Before, Moment::After] {
        let struck = at_every_request(moment, async |crash| run(crash, true).await).await;
        assert!(struck.len() > 15, "{moment:?}: {struck:?}");
    }
}
