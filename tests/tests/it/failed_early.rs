//! Failing early: as soon as more items failed than are tolerated, nothing is begun any more. One end, one notice, exact counts.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::ids::ItemId;
use fanfold::messages::AckRequest;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::{Fanout, FanoutState, Tolerance};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_batch_api::{Answer, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, deaths, done, failed, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

fn tolerating(tolerance: Tolerance, items: u32, seal: bool) -> OpenRequest {
    OpenRequest { items, seal, tolerated_failures: Some(tolerance), ..OpenRequest::default() }
}

/// A small one of so many items, or an open one with two groups.
async fn opened(stack: &TestStack, tolerance: Tolerance, items: u32, small: bool) -> (Uuid, Vec<ItemId>) {
    let at_once = if small { items } else { items / 2 };
    let (id, mut ids) = stack.open_with(tolerating(tolerance, at_once, small)).await;
    if !small {
        ids.extend(stack.add(id, items - at_once, "second").await);
    }
    (id, ids)
}

/// A batch API that fails every member.
fn all_fail() -> std::sync::Arc<ScriptedApi> {
    ScriptedApi::new(|call| {
        let failed = |id| MemberAnswer::new(id, MemberOutcome::Failed);
        Ok(Answer::Members(call.members.iter().map(|member| failed(member.id)).collect()))
    })
}

/// State, whether it ended, and counts: failed, missing.
fn counts(fanout: &Fanout) -> (FanoutState, bool, [u64; 2]) {
    (fanout.state, fanout.ended(), [fanout.failed, fanout.missing])
}

#[tokio::test(start_paused = true)]
async fn more_failures_than_tolerated_end_it_with_one_notice() {
    for small in [true, false] {
        for tolerated in [0, 2] {
            let stack = stack().await;
            let (fanout, ids) = opened(&stack, Tolerance::Count(tolerated), 12, small).await;
            // Of both groups, each twice: what is repeated counts once.
            let most = usize::try_from(tolerated).unwrap();
            for failure in ids.iter().step_by(6).chain(&ids[1..]).take(most) {
                stack.ack(&failed(&[*failure])).await;
                stack.ack(&failed(&[*failure])).await;
            }
            stack.ack(&done(&ids[3..5])).await;
            assert!(!stack.header(fanout).await.state.cut_short(), "as many as tolerated");
            stack.ack(&failed(&ids[5..6])).await;
            let end = stack.header(fanout).await;
            let missing = 12 - 2 - tolerated - 1;
            assert_eq!(counts(&end), (FanoutState::Failed, true, [tolerated + 1, missing]), "small: {small}");
            stack.ack(&failed(&ids)).await;
            assert_eq!(stack.header(fanout).await, end, "later acks change nothing");
            assert_eq!(stack.tracking.item(&ids[11]).await.unwrap(), ItemState::Missing);
            let late = stack.tracking.add(fanout, 1, Some("late")).await;
            assert!(matches!(late, Err(TrackingError::NotOpen { state: FanoutState::Failed, .. })));
            assert_eq!(stack.tracking.seal(fanout).await.unwrap().state, FanoutState::Failed);
            let cancelled = stack.tracking.cancel(fanout).await;
            assert!(matches!(cancelled, Err(TrackingError::Ended { state: FanoutState::Failed, .. })));
            stack.drain().await;
            stack.sweep().await;
            stack.drain().await;
            let notices = stack.take(QueueName::Notices).await;
            assert_eq!(notices.len(), 1);
            assert!(notices[0].body.contains("\"fanout.failed\""), "{}", notices[0].body);
            assert!(notices[0].body.contains(&format!("\"failed\":{}", tolerated + 1)), "{}", notices[0].body);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_item_fails_it_rather_than_completing_it() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, Tolerance::Count(1), 4, small).await;
        stack.tracking.seal(fanout).await.unwrap();
        stack.ack(&done(&ids[..2])).await;
        stack.ack(&failed(&ids[2..])).await;
        assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Failed, true, [2, 0]), "small: {small}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_tolerated_completes_it() {
    for small in [true, false] {
        for tolerance in [Tolerance::Count(2), Tolerance::Percentage(5_000)] {
            let stack = stack().await;
            let (fanout, ids) = opened(&stack, tolerance, 4, small).await;
            stack.tracking.seal(fanout).await.unwrap();
            stack.ack(&failed(&ids[1..3])).await;
            stack.ack(&done(&ids)).await;
            assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Completed, true, [2, 0]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_is_judged_once_it_is_sealed() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, Tolerance::Percentage(2_500), 8, false).await;
    stack.ack(&failed(&ids[..3])).await;
    stack.sweep().await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Open, "more may come");
    stack.tracking.add(fanout, 4, Some("more")).await.unwrap();
    assert_eq!(stack.tracking.seal(fanout).await.unwrap().state, FanoutState::Sealed, "3 of 12");
    stack.ack(&failed(&ids[7..])).await;
    assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Failed, true, [4, 8]));
    let (other, ids) = stack.open_as(&tolerating(Tolerance::Percentage(2_500), 8, false), "other").await;
    stack.ack(&failed(&ids[..3])).await;
    let sealed = stack.tracking.seal(other).await.unwrap();
    assert_eq!(counts(&sealed), (FanoutState::Failed, true, [3, 5]), "the seal judges");
}

#[tokio::test(start_paused = true)]
async fn failed_calls_end_it_and_the_rest_is_not_called() {
    for small in [true, false] {
        let changes = json!({"max_batch": 2, "max_in_flight": 1, "max_attempts": 1});
        let api = all_fail();
        let stack = TestStack::new(policy(changes), api, Crash::never()).await;
        let (fanout, ids) = opened(&stack, Tolerance::Count(1), 12, small).await;
        stack.register_items(&ids).await;
        stack.drain().await;
        let end = stack.header(fanout).await;
        assert!(end.state == FanoutState::Failed && end.ended(), "small: {small}: {end:?}");
        assert!(end.failed >= 2 && end.missing > 0 && end.failed + end.missing == 12, "{end:?}");
        assert_eq!(stack.api.seen().len() as u64 * 2, end.failed, "what is called for is counted");
        assert_eq!(stack.completions().await.len(), 1);
    }
}

/// The call for the other item begins after the worker that acks has read the header, and before it writes it.
#[tokio::test(start_paused = true)]
async fn an_item_whose_call_begins_before_one_failure_too_many_is_counted() {
    // The second request of that worker, its write, is late.
    let crash = Crash::new(2, Moment::Late(Duration::from_secs(20))).waiting();
    let api = ScriptedApi::slow(|_| Duration::from_secs(60), |_| Ok(Answer::AllSucceeded));
    let changes = json!({"batch_api": {"command": ["truck"], "timeout": 90}});
    let stack = TestStack::new(policy(changes), api, crash).await;
    let (fanout, ids) = opened(&stack, Tolerance::Count(0), 2, true).await;
    stack.crash.begin();
    let called = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stack.register_items(&ids[1..]).await;
        stack.drain().await;
    };
    let failure = failed(&ids[..1]);
    let (acked, ()) = futures::join!(stack.ack.apply(&failure), called);
    acked.unwrap();
    assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Failed, true, [1, 0]));
    assert_eq!(stack.completions().await[0].succeeded, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_between_counting_and_judging_is_followed_by_a_sweep() {
    // The transaction that counts is applied; the read of the header that follows is not.
    let mut judged = 0;
    for at in 0..12 {
        let crash = Crash::new(at, Moment::Before);
        let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
        let (fanout, ids) = opened(&stack, Tolerance::Count(0), 8, false).await;
        let acked = stack.ack.apply(&failed(&ids[..1])).await;
        stack.crash.revive();
        let stands = stack.header(fanout).await;
        if acked.is_err() && stands.failures == 1 && !stands.ended() {
            judged += 1;
            stack.clock.skip(Duration::from_secs(3_600));
            stack.sweep().await;
            stack.sweep().await;
            assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Failed, true, [1, 7]), "at {at}");
        }
    }
    assert!(judged > 0);
}

#[tokio::test(start_paused = true)]
async fn acks_seal_cancel_and_failures_race() {
    let mut ends = BTreeSet::new();
    for seed in 0..20_u64 {
        let stack = stack().await;
        let tolerance = if seed % 3 == 0 { Tolerance::Percentage(1_000) } else { Tolerance::Count(4) };
        let (fanout, mut ids) = opened(&stack, tolerance, 40, seed.is_multiple_of(2)).await;
        fastrand::Rng::with_seed(seed).shuffle(&mut ids);
        let requests: Vec<_> =
            ids.chunks(2).map(|ids| AckRequest { items: done(&ids[1..]).items, ..failed(&ids[..1]) }).collect();
        let acks = join_all(requests.iter().chain(&requests).map(|acks| stack.ack.apply(acks)));
        let cancel = async {
            // Acks that lose a write pause for some milliseconds.
            tokio::time::sleep(Duration::from_millis(seed * seed)).await;
            if seed % 5 == 0 { Some(stack.tracking.cancel(fanout).await) } else { None }
        };
        let (acked, cancelled, sealed) = futures::join!(acks, cancel, stack.tracking.seal(fanout));
        acked.into_iter().for_each(|answer| drop(answer.unwrap()));
        sealed.unwrap();
        stack.drain().await;
        let end = stack.header(fanout).await;
        assert!(end.ended(), "seed {seed}: {end:?}");
        let wanted = match cancelled {
            Some(Ok(fanout)) => fanout.state,
            Some(Err(TrackingError::Ended { state, .. })) => state,
            None => FanoutState::Failed,
            other => panic!("seed {seed}: {other:?}"),
        };
        assert!(end.state == wanted && wanted.cut_short(), "seed {seed}: {wanted:?}, {end:?}");
        ends.insert(end.state.as_str());
        assert!(end.state != FanoutState::Failed || end.failed > 4, "seed {seed}: {end:?}");
        assert!(end.inline.is_some() || end.failures == end.failed, "seed {seed}: {end:?}");
        let notices = stack.completions().await;
        assert_eq!(notices.len(), 1, "seed {seed}");
        assert_eq!((notices[0].failed, notices[0].missing, notices[0].state), (end.failed, end.missing, end.state));
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), ["cancelled", "failed"], "both win");
}

#[tokio::test(start_paused = true)]
async fn an_open_repeated_with_another_tolerance_is_refused() {
    let stack = stack().await;
    opened(&stack, Tolerance::Count(3), 4, true).await;
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let request = OpenRequest { notify, ..tolerating(Tolerance::Count(4), 4, true) };
    let other = stack.tracking.open(request, Some("open")).await;
    assert!(matches!(&other, Err(TrackingError::KeyReused(what)) if what.contains("tolerated_failures")), "{other:?}");
}

/// One of its groups has tasks, of which two fail; users ack failures of the other. Returns the struck request.
async fn run(crash: Crash, small: bool) -> Option<String> {
    let changes = json!({"max_batch": 2, "max_in_flight": 1, "max_attempts": 1});
    let api = all_fail();
    let stack = TestStack::new(policy(changes), api, crash).await;
    let (fanout, ids) = opened(&stack, Tolerance::Count(2), 12, small).await;
    stack.register_items(&ids[..6]).await;
    stack.ack(&failed(&ids[6..7])).await;
    stack.drain().await;
    // What comes again after a death is activity, too.
    for _ in 0..3 {
        stack.clock.skip(fanfold::limits::MISSING_AFTER);
        stack.sweep().await;
        stack.drain().await;
    }
    let end = stack.header(fanout).await;
    assert!(end.state == FanoutState::Failed && end.ended(), "{end:?}");
    assert!(end.failed > 2 && end.failed + end.missing == 12, "{end:?}");
    assert!(small || end.failures == end.failed, "{end:?}");
    let notices = stack.completions().await;
    assert_eq!(notices.len(), 1, "one notice");
    assert_eq!((notices[0].failed, notices[0].missing, notices[0].succeeded), (end.failed, end.missing, 0));
    stack.assert_locks_free().await;
    stack.crash.struck()
}

deaths!(
    async |crash| run(crash, false).await,
    30,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);

deaths!(
    async |crash| run(crash, true).await,
    30,
    a_small_one_dies_at_a_request: After,
);
