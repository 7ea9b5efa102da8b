//! Cancelling: nothing is begun any more, what is in progress ends and is counted, the rest is missing. One end, one notice.

mod beside;
mod crashes;

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::{GROUP_ITEMS_MAX, MISSING_AFTER};
use fanfold::store::fanouts::{Fanout, FanoutState};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, deaths, done, order, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

async fn cancel(stack: &TestStack, fanout: Uuid) -> Fanout {
    stack.insist(async || stack.tracking.cancel(fanout).await).await
}

/// State and counts: failed, duplicates, missing.
fn counts(fanout: &Fanout) -> (FanoutState, bool, [u64; 3]) {
    (fanout.state, fanout.ended(), [fanout.failed, fanout.duplicates, fanout.missing])
}

/// An open fan-out with two groups of so many items, or a small one.
async fn opened(stack: &TestStack, items: u32, small: bool) -> (Uuid, Vec<ItemId>) {
    if small {
        return stack.open(items, true).await;
    }
    let (fanout, _) = stack.open(0, false).await;
    let mut ids = stack.add(fanout, items / 2, "first").await;
    ids.extend(stack.add(fanout, items - items / 2, "second").await);
    (fanout, ids)
}

#[tokio::test(start_paused = true)]
async fn without_tasks_it_ends_at_once_with_one_notice() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, 6, small).await;
        stack.ack.apply(&done(&ids[..2])).await.unwrap();
        for _ in 0..3 {
            let cancelled = stack.tracking.cancel(fanout).await.unwrap();
            assert_eq!(counts(&cancelled), (FanoutState::Cancelled, true, [0, 0, 4]), "small: {small}");
            stack.drain().await;
        }
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(stack.take(QueueName::Notices).await.len(), 1, "delivered once");
        assert_eq!(stack.tracking.item(&ids[0]).await.unwrap(), ItemState::Succeeded);
        assert_eq!(stack.tracking.item(&ids[5]).await.unwrap(), ItemState::Missing);
    }
}

#[tokio::test(start_paused = true)]
async fn the_notice_says_how_it_ended() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, 6, false).await;
    stack.ack.apply(&done(&ids[..2])).await.unwrap();
    stack.tracking.cancel(fanout).await.unwrap();
    stack.drain().await;
    let notice = stack.take(QueueName::Notices).await.remove(0);
    assert!(notice.body.contains("\"fanout.cancelled\""), "{}", notice.body);
    assert!(notice.body.contains("\"missing\":4") && notice.body.contains("\"succeeded\":2"), "{}", notice.body);
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_after_the_end() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, 6, small).await;
        let ended = stack.tracking.cancel(fanout).await.unwrap();
        let late = stack.tracking.add(fanout, 1, Some("late")).await;
        assert!(matches!(late, Err(TrackingError::NotOpen { state: FanoutState::Cancelled, .. })));
        assert_eq!(stack.tracking.seal(fanout).await.unwrap().state, FanoutState::Cancelled);
        stack.ack.apply(&done(&ids)).await.unwrap();
        assert_eq!(stack.header(fanout).await, ended, "later acks change nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_complete_is_not_cancelled() {
    let stack = stack().await;
    let (fanout, ids) = stack.open(2, true).await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    let refused = stack.tracking.cancel(fanout).await;
    assert!(matches!(refused, Err(TrackingError::Ended { state: FanoutState::Completed, .. })));
    assert!(matches!(stack.tracking.cancel(Uuid::nil()).await, Err(TrackingError::UnknownFanout(_))));
    let empty = stack.tracking.open(OpenRequest::default(), None).await.unwrap();
    assert!(stack.tracking.cancel(empty.fanout.id).await.unwrap().ended(), "nothing of it is in progress");
}

#[tokio::test(start_paused = true)]
async fn members_whose_call_has_not_begun_are_not_called() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, 6, small).await;
        let tasks = stack.register_items(&ids).await;
        let cancelled = cancel(&stack, fanout).await;
        assert_eq!(counts(&cancelled), (FanoutState::Cancelled, false, [0, 0, 0]), "they may be in progress");
        stack.drain().await;
        assert!(stack.api.seen().is_empty());
        assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, 6]), "small: {small}");
        assert_eq!(stack.completions().await.len(), 1);
        let batches = stack.assert_settled(&tasks, 10).await;
        assert!(batches.values().all(|batch| batch.dropped.count() == batch.members.len() as u64));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_progress_ends_and_is_counted() {
    for small in [true, false] {
        let minute = Duration::from_secs(60);
        let api = ScriptedApi::slow(move |_| minute, |_| Ok(Answer::AllSucceeded));
        let changes = json!({"max_batch": 2, "max_in_flight": 1, "batch_api": {"command": ["truck"], "timeout": 90}});
        let stack = TestStack::new(policy(changes), api, Crash::never()).await;
        let (fanout, ids) = opened(&stack, 6, small).await;
        stack.register_items(&ids).await;
        let cancel = async {
            while stack.api.seen().is_empty() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            stack.tracking.cancel(fanout).await.unwrap()
        };
        let (cancelled, ()) = futures::join!(cancel, stack.drain());
        assert!(!cancelled.ended());
        assert_eq!(stack.api.seen().len(), 1, "the call that had begun");
        assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, 4]), "small: {small}");
        assert_eq!(stack.completions().await[0].succeeded, 2);
    }
}

/// Another fan-out's members are called, under a key that goes with them.
#[tokio::test(start_paused = true)]
async fn members_of_other_fanouts_are_called() {
    let stack = stack().await;
    let (cancelled, ids) = stack.open(3, true).await;
    let other =
        stack.tracking.open(OpenRequest { items: 3, seal: true, ..OpenRequest::default() }, None).await.unwrap();
    let others: Vec<ItemId> = fanfold::ids::expand(other.fanout.id, &other.groups).collect();
    let both: Vec<ItemId> = ids.iter().chain(&others).copied().collect();
    stack.register_items(&both).await;
    cancel(&stack, cancelled).await;
    stack.drain().await;
    let called: Vec<TaskId> =
        stack.api.seen().iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect();
    assert_eq!(called.len(), 3);
    assert!(others.iter().all(|item| called.contains(&TaskId::Item(*item))), "{called:?}");
    assert!(stack.header(other.fanout.id).await.complete());
    assert_eq!(stack.header(cancelled).await.missing, 3);
}

/// Members to be tried again are not, and the rest of their batch has another key.
#[tokio::test(start_paused = true)]
async fn no_other_attempt_is_begun() {
    let stack =
        TestStack::new(policy(json!({})), ScriptedApi::new(|_| Err(CallError::again("503"))), Crash::never()).await;
    let (fanout, ids) = stack.open(3, true).await;
    stack.register_items(&ids).await;
    while stack.api.seen().is_empty() {
        stack.seconds(3).await;
    }
    let calls = stack.api.seen().len();
    cancel(&stack, fanout).await;
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), calls);
    stack.api.members_by_key();
    assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, 3]));
}

/// Tasks that no worker handles keep no end from coming.
#[tokio::test(start_paused = true)]
async fn untouched_items_are_missing_after_a_while() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, 6, small).await;
        stack.register_items(&ids[..1]).await;
        for queue in QueueName::STEPS {
            stack.take(queue).await;
        }
        stack.ack.apply(&done(&ids[4..])).await.unwrap();
        let cancelled = cancel(&stack, fanout).await;
        let missing = if small { 0 } else { 1 };
        assert_eq!(counts(&cancelled), (FanoutState::Cancelled, false, [0, 0, missing]), "the group without tasks");
        stack.sweep().await;
        assert!(!stack.header(fanout).await.ended(), "it may be in progress");
        stack.clock.skip(MISSING_AFTER);
        stack.sweep().await;
        assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, 4]), "small: {small}");
        stack.drain().await;
        assert_eq!(stack.completions().await.len(), 1);
        assert!(stack.api.seen().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_fanout_is_closed_by_sweeps() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    for n in 0..12 {
        stack.tracking.add(fanout, GROUP_ITEMS_MAX * 98 + 1, Some(&n.to_string())).await.unwrap();
    }
    let total = stack.header(fanout).await.total;
    let cancelled = stack.tracking.cancel(fanout).await.unwrap();
    assert!(!cancelled.ended() && cancelled.open_groups > 0, "the answer does not wait for all of them");
    stack.sweep().await;
    assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, total]));
}

/// One sweep looks at some of the groups. That it closes these does not make the next one wait for the others.
#[tokio::test(start_paused = true)]
async fn groups_that_had_tasks_are_closed_without_further_pauses() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.extend(stack.add(fanout, GROUP_ITEMS_MAX * 98 + 1, &n.to_string()).await);
    }
    ids.retain(|id| id.index == 0);
    let groups = stack.tracking.groups_with(&ids).await.unwrap();
    stack.tracking.mark(&groups, &ids).await.unwrap();
    let cancelled = cancel(&stack, fanout).await;
    assert_eq!(cancelled.open_groups, 3 * 99);
    stack.clock.skip(MISSING_AFTER);
    for closed in 1..=3 {
        let header = stack.tracking.close(stack.header(fanout).await, 1).await.unwrap();
        assert_eq!((header.open_groups, header.ended()), (3 * 99 - 99 * closed, closed == 3));
        assert_eq!(header.updated_at == cancelled.updated_at, closed < 3, "closing is no activity");
    }
    // An ack is.
    let stack = self::stack().await;
    let (fanout, ids) = opened(&stack, 30, false).await;
    let groups = stack.tracking.groups_with(&ids).await.unwrap();
    stack.tracking.mark(&groups, &ids).await.unwrap();
    cancel(&stack, fanout).await;
    stack.clock.skip(MISSING_AFTER);
    let group: Vec<_> = ids.iter().filter(|id| id.group == ids[0].group).copied().collect();
    stack.ack.apply(&done(&group)).await.unwrap();
    let header = stack.tracking.close(stack.header(fanout).await, 1).await.unwrap();
    assert!(!header.ended() && header.missing == 0, "{header:?}");
}

#[tokio::test(start_paused = true)]
async fn acks_adds_seal_and_cancel_race() {
    let mut happened = BTreeSet::new();
    for seed in 0..20_u64 {
        let stack = stack().await;
        let (fanout, mut ids) = opened(&stack, 40, seed.is_multiple_of(2)).await;
        fastrand::Rng::with_seed(seed).shuffle(&mut ids);
        let requests: Vec<_> = ids.chunks(3).map(done).collect();
        let acks = join_all(requests.iter().map(|acks| stack.ack.apply(acks)));
        // Each comes somewhere between the others. Acks that lose a write pause for some milliseconds.
        let late = async |milliseconds: u64| tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        let cancels = join_all((0..2).map(async |n| {
            late(seed * seed * (n + 1)).await;
            stack.tracking.cancel(fanout).await
        }));
        let add = stack.tracking.add(fanout, 5, Some("more"));
        let seal = async {
            late(seed % 3 * 20).await;
            stack.tracking.seal(fanout).await
        };
        let (acked, cancelled, added, sealed) = futures::join!(acks, cancels, add, seal);
        acked.into_iter().for_each(|answer| drop(answer.unwrap()));
        sealed.unwrap();
        stack.drain().await;
        let end = stack.header(fanout).await;
        assert!(end.ended(), "seed {seed}: {end:?}");
        assert!(added.is_ok() || matches!(added, Err(TrackingError::NotOpen { .. })), "seed {seed}: {added:?}");
        assert_eq!(end.total, 40 + if added.is_ok() { 5 } else { 0 });
        for answer in cancelled {
            match answer {
                Ok(fanout) => assert_eq!((fanout.state, end.state), (FanoutState::Cancelled, FanoutState::Cancelled)),
                Err(TrackingError::Ended { state, .. }) => assert_eq!((state, end.complete()), (end.state, true)),
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        happened.insert((end.state.as_str(), added.is_ok()));
        let notices = stack.completions().await;
        assert_eq!(notices.len(), 1, "seed {seed}");
        assert_eq!((notices[0].missing, notices[0].total), (end.missing, end.total));
        assert_eq!(notices[0].succeeded, end.total - end.missing);
    }
    let of = |what: fn(&(&str, bool)) -> bool| happened.iter().any(what);
    assert!(
        of(|it| it.0 == "cancelled") && of(|it| it.0 == "completed") && of(|it| it.1) && of(|it| !it.1),
        "{happened:?}"
    );
}
