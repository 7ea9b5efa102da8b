//! Nested fan-outs, and tasks that follow an end: the end acks the parent item as it came out, and registers one task, once, whatever
//! comes twice, late, or not at all.

use std::time::Duration;

use fanfold::ids::{ItemId, TaskId, derived, expand};
use fanfold::limits::{HINT_LOST_AFTER, THEN_BYTES_MAX};
use fanfold::messages::{AckEntry, AckRequest};
use fanfold::policy::{Destination, NoticesQueue, Span};
use fanfold::store::fanouts::{Fanout, FanoutState, IdleLimit, Then, Tolerance};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, delivery, done, policy};
use serde_json::{Value, json};
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

async fn header(stack: &TestStack, fanout: Uuid) -> Fanout {
    loop {
        let found = stack.tracking.fanouts.get(fanout).await;
        stack.crash.revive();
        if let Ok(found) = found {
            return found.unwrap();
        }
    }
}

/// Opens as a user does, who repeats what fails.
async fn open(stack: &TestStack, request: &OpenRequest, key: &str) -> (Uuid, Vec<ItemId>) {
    loop {
        let opened = stack.tracking.open(request.clone(), Some(key)).await;
        stack.crash.revive();
        match opened {
            Ok(opened) => return (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect()),
            Err(error) => assert!(matches!(error, TrackingError::Store(_) | TrackingError::Queue(_)), "{error}"),
        }
    }
}

/// A small fan-out of so many items under a parent item.
fn under(parent: Option<ItemId>, items: u32) -> OpenRequest {
    OpenRequest { items, seal: true, parent, ..OpenRequest::default() }
}

fn then() -> Then {
    Then::new("parcel", json!({"depot": "117", "report": 1}))
}

fn failed(ids: &[ItemId]) -> AckRequest {
    AckRequest { failed: ids.iter().copied().map(AckEntry::Item).collect(), ..AckRequest::default() }
}

async fn ack(stack: &TestStack, request: &AckRequest) {
    while stack.ack.apply(request).await.is_err() {
        stack.crash.revive();
    }
    stack.crash.revive();
}

fn hint(fanout: Uuid) -> Value {
    json!({ "fanout": fanout })
}

/// How often the batch API was called for a task, and with which content.
fn called(stack: &TestStack, id: TaskId) -> Vec<Value> {
    let seen = stack.api.seen();
    let members = seen.iter().flat_map(|seen| &seen.call.members).filter(|member| member.id == id);
    members.map(|member| serde_json::from_str(member.content.get()).unwrap()).collect()
}

/// A fan-out of `leaves` under one of `children` under a root of two items, all small or all large.
async fn three(stack: &TestStack, tolerated: Option<u64>, small: bool) -> [(Uuid, Vec<ItemId>); 3] {
    let mut parent = None;
    let mut opened = Vec::new();
    for (name, items) in [("root", 2), ("child", 3), ("leaf", 4)] {
        let request = OpenRequest { tolerated_failures: tolerated.map(Tolerance::Count), ..under(parent, items) };
        let fanout = if small {
            open(stack, &request, name).await
        } else {
            let (id, mut items) = open(stack, &OpenRequest { seal: false, ..request }, name).await;
            items.extend(stack.add(id, 1, &format!("{name} more")).await);
            stack.seal(id).await;
            (id, items)
        };
        parent = Some(fanout.1[1]);
        opened.push(fanout);
    }
    opened.try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_a_leaf_fails_all_above_it_where_none_is_tolerated() {
    for small in [true, false] {
        let stack = stack().await;
        let [(root, top), (child, middle), (leaf, leaves)] = three(&stack, Some(0), small).await;
        ack(&stack, &failed(&leaves[2..3])).await;
        stack.drain().await;
        for id in [leaf, child, root] {
            let end = header(&stack, id).await;
            assert_eq!((end.state, end.ended(), end.failed), (FanoutState::Failed, true, 1), "small: {small}");
            assert!(!end.ending(), "nothing is left to be done: {end:?}");
        }
        assert_eq!(stack.tracking.item(&middle[1]).await.unwrap(), ItemState::Failed);
        assert_eq!(stack.tracking.item(&top[1]).await.unwrap(), ItemState::Failed);
        assert_eq!(stack.tracking.item(&top[0]).await.unwrap(), ItemState::Missing);
    }
}

/// What is tolerated is a success to those above.
#[tokio::test(start_paused = true)]
async fn failures_that_are_tolerated_complete_all_above() {
    for (tolerated, small) in [(Some(1), true), (Some(1), false), (None, true), (None, false)] {
        let stack = stack().await;
        let [(root, top), (child, middle), (leaf, leaves)] = three(&stack, tolerated, small).await;
        ack(&stack, &failed(&leaves[2..3])).await;
        ack(&stack, &done(&leaves)).await;
        stack.drain().await;
        assert_eq!(header(&stack, leaf).await.failed, 1);
        assert!(!header(&stack, child).await.ended(), "others of its items are not done");
        let others: Vec<ItemId> =
            middle.iter().chain(&top).filter(|id| ![middle[1], top[1]].contains(id)).copied().collect();
        ack(&stack, &done(&others)).await;
        stack.drain().await;
        for id in [child, root] {
            let end = header(&stack, id).await;
            assert_eq!((end.state, end.failed), (FanoutState::Completed, 0), "{tolerated:?}, small: {small}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_other_end_fails_the_parent_item() {
    let stack = stack().await;
    let (_, top) = open(&stack, &under(None, 3), "root").await;
    let (cancelled, _) = open(&stack, &under(Some(top[0]), 2), "cancelled").await;
    stack.tracking.cancel(cancelled).await.unwrap();
    let limit = Some(IdleLimit { open: None, sealed: Some(Span::from_secs(60)) });
    open(&stack, &OpenRequest { idle_limit: limit, ..under(Some(top[1]), 2) }, "expired").await;
    stack.clock.skip(Duration::from_secs(600));
    stack.sweep().await;
    // One without items completes when it is opened.
    open(&stack, &under(Some(top[2]), 0), "empty").await;
    stack.drain().await;
    let states = [ItemState::Failed, ItemState::Failed, ItemState::Succeeded];
    for (item, state) in top.iter().zip(states) {
        assert_eq!(stack.tracking.item(item).await.unwrap(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_has_ended_or_is_gone_stays_as_it_is() {
    let stack = stack().await;
    let (root, top) = open(&stack, &under(None, 2), "root").await;
    let (child, items) = open(&stack, &under(Some(top[0]), 1), "child").await;
    let end = stack.tracking.cancel(root).await.unwrap();
    ack(&stack, &done(&items)).await;
    stack.drain().await;
    assert_eq!(header(&stack, root).await, end);
    assert!(header(&stack, child).await.followed.is_some());
    let (gone, top) = open(&stack, &under(None, 2), "gone").await;
    let (child, items) = open(&stack, &under(Some(top[0]), 1), "orphan").await;
    stack.delete_record("FanoutsTable", &gone.to_string()).await;
    ack(&stack, &done(&items)).await;
    stack.drain().await;
    assert!(!header(&stack, child).await.ending(), "nobody waits for it");
    // A repetition is answered as the first call was.
    assert_eq!(open(&stack, &under(Some(top[0]), 1), "orphan").await.0, child);
}

#[tokio::test(start_paused = true)]
async fn the_task_is_registered_when_it_ends_and_says_how() {
    for state in [FanoutState::Completed, FanoutState::Cancelled] {
        let stack = stack().await;
        let request = OpenRequest {
            then: Some(then()),
            user_key: Some("order 4711".to_owned()),
            notify: Some(Destination::Queue(NoticesQueue::Notices)),
            ..under(None, 3)
        };
        let (id, items) = open(&stack, &request, "one").await;
        ack(&stack, &failed(&items[..1])).await;
        stack.drain().await;
        let task = derived::then_task(id);
        assert!(!stack.tasks.is_stored(&task).await.unwrap(), "not before the end");
        if state == FanoutState::Completed {
            ack(&stack, &done(&items[1..])).await;
        } else {
            stack.tracking.cancel(id).await.unwrap();
        }
        stack.drain().await;
        let mut end = stack.completions().await.remove(0);
        assert_eq!(end.state, state);
        // Which items are missing is found out for the notice, which may come later.
        end.missing_items = None;
        let content = json!({"depot": "117", "report": 1, "fanout": end});
        assert_eq!(called(&stack, task), [content]);
        stack.assert_settled(&[task], 10).await;
        assert!(header(&stack, id).await.ending(), "nobody has seen yet that it is stored");
        for _ in 0..2 {
            stack.sweep().await;
            stack.drain().await;
        }
        assert!(!header(&stack, id).await.ending());
        assert_eq!((called(&stack, task).len(), stack.completions().await.len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_may_be_an_item_of_another_fanout() {
    let stack = stack().await;
    let (root, top) = open(&stack, &under(None, 1), "root").await;
    let request = OpenRequest { then: Some(Then { id: Some(top[0]), ..then() }), ..under(None, 2) };
    let (_, items) = open(&stack, &request, "first stage").await;
    ack(&stack, &done(&items)).await;
    stack.drain().await;
    assert_eq!(called(&stack, TaskId::Item(top[0])).len(), 1);
    assert!(header(&stack, root).await.complete(), "its item was the task");
}

/// Hints that come twice, two at once, an hour late, or that were lost.
#[tokio::test(start_paused = true)]
async fn whatever_hints_come_the_task_is_registered_once() {
    for way in ["twice", "at once", "late", "lost"] {
        let stack = stack().await;
        let (root, top) = open(&stack, &under(None, 1), "root").await;
        let request = OpenRequest { then: Some(then()), ..under(Some(top[0]), 2) };
        let (id, items) = open(&stack, &request, "one").await;
        stack.send(QueueName::Notify, hint(id)).await;
        stack.drain().await;
        assert!(!stack.tasks.is_stored(&derived::then_task(id)).await.unwrap(), "a hint that comes before the end");
        ack(&stack, &done(&items)).await;
        let hints = stack.take(QueueName::Notify).await;
        assert_eq!(hints.len(), 1);
        let twice = || vec![delivery("a", hint(id)), delivery("b", hint(id))];
        match way {
            "twice" => {
                for _ in 0..2 {
                    assert!(stack.hand(QueueName::Notify, hints.clone()).await.is_empty());
                    stack.drain().await;
                }
            }
            "at once" => assert!(stack.hand(QueueName::Notify, twice()).await.is_empty()),
            "late" => {
                assert!(stack.hand(QueueName::Notify, hints.clone()).await.is_empty());
                stack.drain().await;
                stack.clock.skip(Duration::from_secs(3_600));
                assert!(stack.hand(QueueName::Notify, hints).await.is_empty());
            }
            _ => drop(stack.sweep().await),
        }
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(called(&stack, derived::then_task(id)).len(), 1, "{way}");
        assert!(header(&stack, root).await.complete(), "{way}");
        assert!(!header(&stack, id).await.ending(), "{way}");
    }
}

/// The message with the task is a hint, too: it is sent again, after ever longer pauses, until the task is stored.
#[tokio::test(start_paused = true)]
async fn a_task_whose_message_is_lost_is_sent_again() {
    let stack = stack().await;
    let (id, items) = open(&stack, &OpenRequest { then: Some(then()), ..under(None, 1) }, "one").await;
    ack(&stack, &done(&items)).await;
    let mut sent = Vec::new();
    for minute in 0..120 {
        stack.deliver(QueueName::Notify).await;
        if !stack.take(QueueName::Register).await.is_empty() {
            sent.push(minute);
        }
        stack.clock.skip(Duration::from_secs(60));
        while stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.is_err() {}
    }
    assert!((5..=8).contains(&sent.len()), "{sent:?}");
    assert!(sent.windows(3).skip(1).all(|sent| sent[2] - sent[1] > sent[1] - sent[0]), "{sent:?}");
    stack.clock.skip(Duration::from_secs(7_200));
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack, derived::then_task(id)).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_registered_holds_back_no_notice() {
    let stack = stack().await;
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let (id, items) = open(&stack, &OpenRequest { then: Some(then()), notify, ..under(None, 1) }, "one").await;
    stack.put_policy(policy(json!({"target": "content.elsewhere"}))).await;
    ack(&stack, &done(&items)).await;
    for _ in 0..3 {
        stack.deliver(QueueName::Notify).await;
        stack.take(QueueName::Register).await;
    }
    assert_eq!(stack.completions().await.len(), 1);
    assert!(header(&stack, id).await.ending(), "a sweep still looks at it");
    stack.put_policy(policy(json!({}))).await;
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack, derived::then_task(id)).len(), 1);
    stack.clock.skip(HINT_LOST_AFTER);
    stack.sweep().await;
    stack.drain().await;
    assert!(!header(&stack, id).await.ending());
    assert_eq!(stack.completions().await.len(), 0, "it is told once");
}

/// Of two who were done at the same time, each may have left the index to the other.
#[tokio::test(start_paused = true)]
async fn what_is_left_in_the_index_is_forgotten() {
    let stack = stack().await;
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let (id, items) = open(&stack, &OpenRequest { notify, then: Some(then()), ..under(None, 1) }, "one").await;
    ack(&stack, &done(&items)).await;
    let before = header(&stack, id).await;
    stack.drain().await;
    // Whoever found the task stored had read the header before the notice was delivered.
    stack.tracking.fanouts.followed(&before).await.unwrap();
    let listed = async || {
        let records = stack.scan("FanoutsTable").await;
        records.iter().any(|record| record.contains_key("ending"))
    };
    assert!(listed().await && !header(&stack, id).await.ending());
    stack.sweep().await;
    assert!(!listed().await);
}

fn refused(answer: &Result<fanfold::tracking::Opened, TrackingError>) -> (&'static str, String) {
    match answer {
        Err(TrackingError::Follow { field, problem }) => (*field, problem.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_follow_is_refused_when_it_is_opened() {
    let stack = stack().await;
    let (root, top) = open(&stack, &under(None, 2), "root").await;
    let beyond = ItemId { index: 2, ..top[0] };
    let own = derived::fanout("own");
    let itself = ItemId { fanout: own, group: own, index: 0 };
    let with = |parent, id, content| OpenRequest {
        then: Some(Then { id, ..Then::new("parcel", content) }),
        ..under(parent, 1)
    };
    let large = json!({"x": "x".repeat(THEN_BYTES_MAX)});
    for (request, field, says) in [
        (under(Some(beyond), 1), "parent", "0 to 1 is allowed"),
        (under(Some(itself), 1), "parent", "an item of another fan-out"),
        (under(Some(ItemId { group: Uuid::nil(), ..top[0] }), 1), "parent", "has no item group"),
        (with(None, Some(beyond), json!({})), "then.id", "0 to 1 is allowed"),
        (with(Some(top[0]), Some(top[0]), json!({})), "then.id", "as `parent`"),
        (with(None, None, json!({"fanout": 1})), "then.content", "has a field `fanout`"),
        (with(None, None, large), "then.content", "at most 2048 are allowed"),
    ] {
        let (at, problem) = refused(&stack.tracking.open(request, Some("own")).await);
        assert!(at == field && problem.contains(says), "{at} {problem}");
    }
    assert!(stack.tracking.fanouts.get(own).await.unwrap().is_none());
    open(&stack, &with(Some(top[0]), None, json!({"a": 1})), "kept").await;
    for (other, field) in [
        (with(Some(top[1]), None, json!({"a": 1})), "parent"),
        (with(None, None, json!({"a": 1})), "parent"),
        (with(Some(top[0]), None, json!({"a": 2})), "then"),
        (under(Some(top[0]), 1), "then"),
    ] {
        let answer = stack.tracking.open(other, Some("kept")).await;
        assert!(matches!(&answer, Err(TrackingError::KeyReused(what)) if what.contains(field)), "{answer:?}");
    }
    assert!(!header(&stack, root).await.ended());
}

/// A leaf under a child under a root, each with a task that follows; a leaf fails. Returns the struck request.
async fn run(crash: Crash, small: bool) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let mut parent = None;
    let mut fanouts = Vec::new();
    for name in ["root", "child", "leaf"] {
        let request = OpenRequest {
            tolerated_failures: Some(Tolerance::Count(0)),
            then: Some(then()),
            notify: (name == "child").then_some(Destination::Queue(NoticesQueue::Notices)),
            seal: small,
            ..under(parent, 3)
        };
        fanouts.push(open(&stack, &request, name).await);
        parent = Some(fanouts[fanouts.len() - 1].1[0]);
    }
    ack(&stack, &failed(&fanouts[2].1[1..2])).await;
    stack.drain().await;
    for _ in 0..4 {
        stack.clock.skip(fanfold::limits::DRAINED_AFTER);
        stack.sweep().await;
        stack.drain().await;
    }
    let mut tasks = Vec::new();
    for (id, items) in &fanouts {
        let end = header(&stack, *id).await;
        assert!(end.state == FanoutState::Failed && end.ended() && !end.ending(), "{end:?}");
        assert_eq!((end.failed, end.missing), (1, 2), "{end:?}");
        let task = derived::then_task(*id);
        let contents = called(&stack, task);
        assert!(
            !contents.is_empty() && contents.iter().all(|content| content["fanout"]["failed"] == 1),
            "{contents:?}"
        );
        tasks.push(task);
        match stack.tracking.item(&items[2]).await {
            Ok(state) => assert_eq!(state, ItemState::Missing),
            // The last request to be struck is not one of a worker's.
            Err(_) => return None,
        }
    }
    assert_eq!(stack.completions().await.len(), 1, "one notice");
    stack.assert_settled(&tasks, 10).await;
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    assert!(at_every_request(Moment::Before, async |crash| run(crash, false).await).await.len() > 30);
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    assert!(at_every_request(Moment::After, async |crash| run(crash, false).await).await.len() > 30);
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    assert!(at_every_request(Moment::AnswerLost, async |crash| run(crash, false).await).await.len() > 30);
}

#[tokio::test(start_paused = true)]
async fn small_ones_die_at_a_request() {
    assert!(at_every_request(Moment::After, async |crash| run(crash, true).await).await.len() > 30);
}
