//! A worker dies at each request in turn while percentages and the end are reported: the end under its one id, percentages in their order and
//! before it, and nothing is left to be done.

use fanfold::notice::Event;
use fanfold_tests::{Crash, Moment, WebhookAnswer, at_every_request};

use super::progress::{delivered, opened};
use super::*;

/// A fan-out of which two percentages and the end are reported, each at the second try. Returns the struck request.
async fn run(crash: Crash, small: bool) -> Option<String> {
    let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]}});
    let stack = TestStack::new(policy, ScriptedApi::always_succeeds(), crash).await;
    stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
    let (fanout, ids) = opened(&stack, &[25, 75], 20, small).await;
    stack.seal(fanout).await;
    for few in ids.chunks(5) {
        stack.ack(&done(few)).await;
        for _ in 0..2 {
            run_for(&stack, MINUTE / 2, Duration::from_secs(15)).await;
            stack.sweep().await;
        }
    }
    run_for(&stack, 2 * MINUTE, MINUTE / 2).await;
    let at = stack.crash.struck()?;
    let (calls, header) = (delivered(&stack), stack.header(fanout).await);
    assert!(header.complete() && header.notice.delivered.is_some() && !header.ending(), "{at}: {header:?}");
    let mut distinct = calls.clone();
    distinct.dedup();
    assert_eq!(distinct, ["25% 5/20", "75% 15/20", "fanout.completed"], "{at}: {calls:?}");
    assert!(calls.len() <= 7, "{at}: {calls:?}");
    let contents: std::collections::BTreeMap<Uuid, Vec<Event>> =
        stack.webhooks.posted().into_iter().fold(Default::default(), |mut all, posted| {
            let delivered: &mut Vec<Event> = all.entry(posted.notice.id).or_default();
            delivered.push(posted.notice.event);
            delivered.dedup();
            all
        });
    assert!(contents.len() == 3 && contents.values().all(|delivered| delivered.len() == 1), "{at}: {contents:?}");
    assert_eq!(stack.backlog().await, 0, "{at}");
    Some(at)
}

async fn at_each(moment: Moment) {
    for small in [true, false] {
        let struck = at_every_request(moment, async |crash| run(crash, small).await).await;
        assert!(struck.len() > 40, "{moment:?}: {} {struck:?}", struck.len());
    }
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    at_each(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    at_each(Moment::After).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    at_each(Moment::AnswerLost).await;
}
