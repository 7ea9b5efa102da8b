//! The notice of an end that leaves items missing names them, up to a limit, and says the same at each delivery.

use fanfold::limits::{MISSING_AFTER, MISSING_RANGES_NAMED_MAX};
use fanfold::notice::{FanoutEnded, MissingItems};
use fanfold::policy::Span;
use fanfold::store::fanouts::IdleLimit;
use fanfold_tests::{Moment, WebhookAnswer, at_every_request};

use super::*;

/// What was delivered: the ends.
fn ends(stack: &TestStack) -> Vec<FanoutEnded> {
    stack.webhooks.posted().iter().map(|posted| posted.notice.event.end().unwrap().clone()).collect()
}

fn request(items: u32, seal: bool) -> OpenRequest {
    OpenRequest { items, seal, notify: Some(Destination::Url(URL.to_owned())), ..OpenRequest::default() }
}

async fn opened(stack: &TestStack, request: &OpenRequest) -> (Uuid, Vec<ItemId>) {
    stack.open_as(request, "order").await
}

fn named(items: &[&str], more: u64) -> Option<MissingItems> {
    Some(MissingItems { items: items.iter().map(|item| (*item).to_owned()).collect(), more })
}

#[tokio::test(start_paused = true)]
async fn a_small_one_names_them_as_ranges() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &request(10, true)).await;
    stack.ack(&done(&[ids[0], ids[5], ids[7]])).await;
    stack.tracking.cancel(fanout).await.unwrap();
    stack.drain().await;
    let sent = ends(&stack);
    let name = |range: &str| format!("{fanout}:{fanout}:{range}");
    assert_eq!(sent[0].missing_items, named(&[&name("1-4"), &name("6"), &name("8-9")], 0));
    assert_eq!((sent.len(), sent[0].missing), (1, 7));
    let data = serde_json::to_value(&stack.webhooks.posted()[0].notice).unwrap()["data"].clone();
    assert_eq!(data["missing_items"], json!({"items": [name("1-4"), name("6"), name("8-9")], "more": 0}));
    // The names can be acked as they are.
    let items = serde_json::from_value(data["missing_items"]["items"].clone()).unwrap();
    let answer = stack.ack.apply(&AckRequest { items, ..AckRequest::default() }).await.unwrap();
    assert_eq!(answer.refused.len(), 0, "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_leaves_nothing_names_nothing() {
    let stack = stack().await;
    let (_, ids) = opened(&stack, &request(3, true)).await;
    stack.ack(&done(&ids)).await;
    stack.drain().await;
    assert_eq!(ends(&stack)[0].missing_items, None);
    let data = serde_json::to_value(&stack.webhooks.posted()[0].notice).unwrap()["data"].clone();
    assert!(data.get("missing_items").is_none(), "{data}");
}

/// Groups it was opened with, and groups that were added, at the end of a fan-out that expires.
#[tokio::test(start_paused = true)]
async fn a_large_one_names_those_of_all_its_groups() {
    let stack = stack().await;
    let idle_limit = Some(IdleLimit { open: Some(Span(HOUR)), sealed: Some(Span(HOUR)) });
    let (fanout, mut ids) = opened(&stack, &OpenRequest { idle_limit, ..request(4, false) }).await;
    for n in 0..5 {
        ids.extend(stack.add(fanout, 4, &n.to_string()).await);
    }
    // Of each group the second one is left, but for one group that is all done.
    let left: Vec<ItemId> = ids.iter().copied().filter(|id| id.index == 1 && id.group != ids[8].group).collect();
    let acked: Vec<ItemId> = ids.iter().copied().filter(|id| !left.contains(id)).collect();
    stack.ack(&done(&acked)).await;
    stack.clock.skip(2 * HOUR);
    stack.sweep().await;
    stack.drain().await;
    let sent = ends(&stack);
    let MissingItems { mut items, more } = sent[0].missing_items.clone().unwrap();
    let mut wanted: Vec<String> = left.iter().map(ToString::to_string).collect();
    items.sort();
    wanted.sort();
    assert_eq!((items, more, sent[0].missing), (wanted, 0, 5));
}

#[tokio::test(start_paused = true)]
async fn of_very_many_some_are_named_and_the_others_counted() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, mut ids) = opened(&stack, &request(if small { 300 } else { 0 }, small)).await;
        for n in 0..if small { 0 } else { 3 } {
            ids.extend(stack.add(fanout, 100, &n.to_string()).await);
        }
        let every_other: Vec<ItemId> = ids.iter().copied().step_by(2).collect();
        stack.ack(&done(&every_other)).await;
        stack.tracking.cancel(fanout).await.unwrap();
        stack.drain().await;
        let sent = ends(&stack);
        let MissingItems { items, more } = sent[0].missing_items.clone().unwrap();
        assert_eq!((items.len(), more, sent[0].missing), (MISSING_RANGES_NAMED_MAX, 50, 150), "small: {small}");
        let bytes = serde_json::to_vec(&stack.webhooks.posted()[0].notice).unwrap().len();
        assert!(bytes < 12 * 1_024, "{bytes}");
    }
}

/// The records of groups go some weeks after they ended, and a dead letter may be sent back after that.
#[tokio::test(start_paused = true)]
async fn each_delivery_names_the_same_although_groups_are_gone() {
    let stack = stack().await;
    stack.webhooks.answer(|_, before| match before {
        0 => WebhookAnswer::Refuses(503),
        1 => WebhookAnswer::Refuses(410),
        _ => WebhookAnswer::Takes,
    });
    let (fanout, _) = opened(&stack, &request(0, false)).await;
    let ids = [stack.add(fanout, 4, "a").await, stack.add(fanout, 4, "b").await].concat();
    stack.tracking.cancel(fanout).await.unwrap();
    stack.deliver(fanfold_tests::QueueName::Notify).await;
    stack.delete_record("GroupsTable", &ids[0].group.to_string()).await;
    stack.drain().await;
    stack.delete_record("GroupsTable", &ids[4].group.to_string()).await;
    let dead = stack.dead(fanfold_tests::QueueName::Notify).await;
    stack.send(fanfold_tests::QueueName::Notify, &dead[0]).await;
    stack.drain().await;
    let sent = ends(&stack);
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0].missing_items.as_ref().unwrap().items.len(), 2);
    assert!(sent.iter().all(|end| *end == sent[0]), "{sent:?}");
    assert_eq!(stack.webhooks.by_notice().len(), 1);
}

/// Two workers look, and the records of a group go in between: what was written first counts.
#[tokio::test(start_paused = true)]
async fn of_two_workers_that_look_at_once_the_first_names_them() {
    let stack = stack().await;
    let (fanout, _) = opened(&stack, &request(0, false)).await;
    let ids = [stack.add(fanout, 4, "a").await, stack.add(fanout, 4, "b").await].concat();
    stack.tracking.cancel(fanout).await.unwrap();
    let ended = stack.header(fanout).await;
    let first = stack.tracking.with_missing(ended.clone()).await.unwrap().notice_facts;
    stack.delete_record("GroupsTable", &ids[0].group.to_string()).await;
    let second = stack.tracking.with_missing(ended).await.unwrap().notice_facts;
    assert!(first.missing.is_some() && second == first, "{first:?} {second:?}");
    assert_eq!(stack.header(fanout).await.notice_facts, first);
}

/// One of its groups has tasks, and the first delivery fails. Returns the struck request.
async fn run(crash: Crash) -> Option<String> {
    let policy =
        json!({"kind": "parcel", "target": "content.depot", "linger": 60, "batch_api": {"command": ["truck"]}});
    let stack = TestStack::new(policy, ScriptedApi::always_succeeds(), crash).await;
    stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
    let (fanout, _) = opened(&stack, &request(0, false)).await;
    let ids = [stack.add(fanout, 4, "a").await, stack.add(fanout, 4, "b").await].concat();
    stack.ack(&done(&ids[..1])).await;
    stack.register_items(&ids[4..6]).await;
    stack.insist(async || stack.tracking.cancel(fanout).await).await;
    for _ in 0..4 {
        stack.drain().await;
        stack.clock.skip(MISSING_AFTER);
        stack.sweep().await;
    }
    let at = stack.crash.struck()?;
    let sent = ends(&stack);
    assert!((2..=3).contains(&sent.len()) && sent.iter().all(|end| *end == sent[0]), "{at}: {sent:?}");
    let MissingItems { items, more } = sent[0].missing_items.clone().unwrap();
    assert_eq!((sent[0].missing, more, items.len()), (7, 0, 2), "{at}: {items:?}");
    assert!(stack.header(fanout).await.notice.delivered.is_some(), "{at}");
    Some(at)
}

#[tokio::test(start_paused = true)]
async fn dies_at_a_request() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        let struck = at_every_request(moment, async |crash| run(crash).await).await;
        assert!(struck.len() > 30, "{moment:?}: {} {struck:?}", struck.len());
    }
}
