//! How estimated fan-outs end: by the same writes as others, once, in every race.

use std::time::Duration;

use fanfold::policy::Span;
use fanfold::store::fanouts::{FanoutState, IdleLimit, Tolerance};
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

use super::{beginning, counted, open, stack, stands};

fn tolerating(tolerance: Tolerance, items: u32, seal: bool) -> OpenRequest {
    OpenRequest { tolerated_failures: Some(tolerance), ..beginning(items, seal) }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_when_it_is_cancelled_is_missing() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(5, false)).await;
    counted(&stack, fanout, [0, 1, 1]).await.unwrap();
    assert_eq!(stands(&stack.tracking.cancel(fanout).await.unwrap()), (FanoutState::Cancelled, [5, 2, 1]));
    let late = counted(&stack, fanout, [0, 1, 0]).await.unwrap();
    assert_eq!(stands(&late), (FanoutState::Cancelled, [5, 2, 1]), "nothing is counted any more");
    let added = counted(&stack, fanout, [1, 0, 0]).await;
    assert!(matches!(added, Err(TrackingError::CountedOut { state: FanoutState::Cancelled, .. })), "{added:?}");
    stack.drain().await;
    let ends = stack.completions().await;
    assert_eq!([ends[0].total, ends[0].succeeded, ends[0].failed, ends[0].missing], [5, 1, 1, 3]);
    assert_eq!((ends.len(), ends[0].state), (1, FanoutState::Cancelled));
}

/// One that was counted too often.
#[tokio::test(start_paused = true)]
async fn one_below_zero_misses_nothing() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(1, false)).await;
    counted(&stack, fanout, [0, 3, 0]).await.unwrap();
    stack.tracking.cancel(fanout).await.unwrap();
    stack.drain().await;
    let end = stack.completions().await.remove(0);
    assert_eq!([end.total, end.succeeded, end.failed, end.missing], [1, 3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_fanout_that_is_not_counted_for_long_expires() {
    for seal in [true, false] {
        let stack = stack().await;
        let limit = Some(Span::from_secs(7_200));
        let idle_limit = Some(IdleLimit { open: limit, sealed: limit });
        let fanout = open(&stack, OpenRequest { idle_limit, ..beginning(9, seal) }).await;
        let after = async |hours: u64| {
            stack.clock.skip(Duration::from_secs(hours * 3_600 + 300));
            stack.sweep_now().await;
            stands(&stack.header(fanout).await).0
        };
        let before = stack.header(fanout).await.state;
        for _ in 0..4 {
            assert_eq!(after(1).await, before, "each count is activity");
            counted(&stack, fanout, [0, 1, 0]).await.unwrap();
        }
        assert_eq!(after(1).await, before);
        assert_eq!(after(2).await, FanoutState::Expired);
        stack.drain().await;
        let end = stack.completions().await.remove(0);
        assert_eq!((end.state, [end.total, end.succeeded, end.missing]), (FanoutState::Expired, [9, 4, 5]));
    }
}

#[tokio::test(start_paused = true)]
async fn more_failures_than_tolerated_end_it() {
    let stack = stack().await;
    let open_one = open(&stack, tolerating(Tolerance::Count(2), 9, false)).await;
    assert_eq!(stands(&counted(&stack, open_one, [0, 1, 2]).await.unwrap()), (FanoutState::Open, [9, 3, 2]));
    assert_eq!(stands(&counted(&stack, open_one, [0, 0, 1]).await.unwrap()), (FanoutState::Failed, [9, 4, 3]));
    // The last one fails it rather than completing it.
    let last = open(&stack, tolerating(Tolerance::Count(0), 2, true)).await;
    counted(&stack, last, [0, 1, 0]).await.unwrap();
    assert_eq!(stands(&counted(&stack, last, [0, 0, 1]).await.unwrap()), (FanoutState::Failed, [2, 2, 1]));
    // A percentage is judged once it is sealed, of what is counted by then.
    let percentage = open(&stack, tolerating(Tolerance::Percentage(2_500), 4, false)).await;
    assert_eq!(stands(&counted(&stack, percentage, [0, 0, 2]).await.unwrap()), (FanoutState::Open, [4, 2, 2]));
    counted(&stack, percentage, [4, 0, 0]).await.unwrap();
    assert_eq!(stands(&stack.tracking.seal(percentage).await.unwrap()), (FanoutState::Sealed, [8, 2, 2]));
    assert_eq!(stands(&counted(&stack, percentage, [3, 0, 1]).await.unwrap()), (FanoutState::Failed, [11, 3, 3]));
    let tolerated = open(&stack, tolerating(Tolerance::Count(1), 2, true)).await;
    assert_eq!(stands(&counted(&stack, tolerated, [0, 1, 1]).await.unwrap()), (FanoutState::Completed, [2, 2, 1]));
    stack.drain().await;
    let mut states: Vec<_> = stack.completions().await.into_iter().map(|end| end.state.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["completed", "failed", "failed", "failed"]);
}

/// Lets others go on.
async fn turns(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// What is left of a race: one end, and the notice says what the header says.
async fn ended_once(stack: &TestStack, fanout: Uuid, seed: usize) -> FanoutState {
    stack.drain().await;
    let end = stack.header(fanout).await;
    let (state, [total, done, failed]) = stands(&end);
    assert!(end.ended(), "seed {seed}: {end:?}");
    assert!(state != FanoutState::Completed || done >= total, "seed {seed}: {end:?}");
    assert!(end.tolerated.is_none() || end.failures == failed, "seed {seed}: {end:?}");
    let notices = stack.completions().await;
    assert_eq!((notices.len(), notices[0].state), (1, state), "seed {seed}");
    let missing = if state.cut_short() { total - done } else { 0 };
    assert_eq!(
        [notices[0].total, notices[0].succeeded, notices[0].failed, notices[0].missing],
        [total, done - failed, failed, missing]
    );
    state
}

#[tokio::test(start_paused = true)]
async fn counts_seal_cancel_and_failures_race() {
    let (mut ends, mut refused) = (std::collections::BTreeSet::new(), 0);
    for seed in 0..40 {
        let stack = stack().await;
        let tolerance = if seed % 3 == 0 { Tolerance::Percentage(2_000) } else { Tolerance::Count(3) };
        let request = if seed % 2 == 0 { tolerating(tolerance, 20, false) } else { beginning(20, false) };
        let fanout = open(&stack, request).await;
        let mut counts: Vec<[u32; 3]> = (0..20).map(|n| if n % 4 == 0 { [0, 0, 1] } else { [0, 1, 0] }).collect();
        // Some add as many as they do.
        counts.extend([[2, 0, 0], [0, 2, 0], [1, 1, 0]]);
        fastrand::Rng::with_seed(seed as u64).shuffle(&mut counts);
        let counts = counts.into_iter().enumerate().map(async |(n, counts)| {
            turns(n).await;
            counted(&stack, fanout, counts).await
        });
        let cancel = async {
            turns(seed % 12).await;
            if seed % 5 == 0 {
                drop(stack.tracking.cancel(fanout).await);
            }
        };
        let seal = async {
            turns(seed % 4).await;
            drop(stack.tracking.seal(fanout).await.unwrap());
        };
        let (counts, (), ()) = futures::join!(join_all(counts), cancel, seal);
        for error in counts.iter().filter_map(|counted| counted.as_ref().err()) {
            assert!(matches!(error, TrackingError::CountedOut { .. }), "seed {seed}: {error}");
            refused += 1;
        }
        ends.insert(ended_once(&stack, fanout, seed).await.as_str());
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), ["cancelled", "completed", "failed"]);
    assert!(refused > 0, "some add after the end");
}

/// An add comes before the end, or is refused: no notice says that all is done while something is outstanding.
#[tokio::test(start_paused = true)]
async fn an_add_beside_the_last_count_counts_or_is_refused() {
    let mut accepted = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let stack = stack().await;
        let fanout = open(&stack, beginning(1, true)).await;
        let late = async |pauses, counts| {
            turns(pauses).await;
            counted(&stack, fanout, counts).await
        };
        let (last, added) = futures::join!(late(seed / 6, [0, 1, 0]), late(seed % 6, [1, 0, 0]));
        last.unwrap();
        let (state, [total, ..]) = stands(&stack.header(fanout).await);
        let expected = if added.is_ok() { (FanoutState::Sealed, 2) } else { (FanoutState::Completed, 1) };
        assert_eq!((state, total), expected, "seed {seed}");
        accepted.insert(added.is_ok());
        if added.is_ok() {
            counted(&stack, fanout, [0, 1, 0]).await.unwrap();
        }
        ended_once(&stack, fanout, seed).await;
    }
    assert_eq!(accepted.len(), 2, "both happened");
}

/// A failure is counted after the worker that cancels has read the header, and before it writes it.
#[tokio::test(start_paused = true)]
async fn one_that_ends_beside_a_failure_leaves_the_index_of_the_sweep() {
    // The second request of the worker is late.
    let crash = Crash::new(2, Moment::Late(Duration::from_secs(2))).waiting();
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let fanout = open(&stack, OpenRequest { notify: None, ..tolerating(Tolerance::Count(5), 9, false) }).await;
    stack.crash.begin();
    let failure = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        counted(&stack, fanout, [0, 0, 1]).await.unwrap()
    };
    let (cancelled, failed) = futures::join!(stack.tracking.cancel(fanout), failure);
    assert_eq!((cancelled.unwrap().state, failed.state), (FanoutState::Cancelled, FanoutState::Open));
    let listed = async || stack.scan("FanoutsTable").await.iter().any(|record| record.contains_key("ending"));
    let end = stack.header(fanout).await;
    assert!(end.ended() && end.failures == 1 && !end.ending(), "{end:?}");
    assert!(listed().await);
    stack.sweep().await;
    assert!(!listed().await);
}
