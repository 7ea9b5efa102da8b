//! Workers die and answers are lost: no request counts twice by itself, and what was counted is finished by a sweep.

use std::time::Duration;

use fanfold::policy::Span;
use fanfold::store::fanouts::{FanoutState, IdleLimit, Tolerance};
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, at_every_request, deaths, policy};
use serde_json::json;

use super::{beginning, counted, stands};

/// Each count is sent once, whether or not it is answered; then nothing happens for long. Returns the struck request.
async fn run(crash: Crash, tolerated: bool) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let limit = Some(Span::from_secs(7_200));
    let idle_limit = Some(IdleLimit { open: limit, sealed: limit });
    let tolerated_failures = tolerated.then_some(Tolerance::Count(1));
    let request = OpenRequest { idle_limit, tolerated_failures, ..beginning(2, false) };
    let opened = stack.insist(async || stack.tracking.open(request.clone(), Some("open")).await).await;
    let fanout = opened.fanout.id;
    let (mut most, mut least) = ([2_u64, 0, 0], [2_u64, 0, 0]);
    for counts in [[2, 0, 0], [0, 2, 0], [1, 0, 1], [0, 1, 1]] {
        if counts == [0, 1, 1] {
            stack.insist(async || stack.tracking.seal(fanout).await).await;
        }
        let answer = counted(&stack, fanout, counts).await;
        stack.crash.revive();
        let ended = stack.header(fanout).await.ended();
        let [add, succeeded, failed] = counts.map(u64::from);
        let plus = |sum: [u64; 3]| [sum[0] + add, sum[1] + succeeded + failed, sum[2] + failed];
        most = plus(most);
        if answer.is_ok() && !(ended && stands(&stack.header(fanout).await).1 == least) {
            least = plus(least);
        }
        // A count that may be lost is an error of the store.
        assert!(answer.is_ok() || matches!(answer, Err(TrackingError::Store(_))), "{answer:?}");
    }
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
        stack.clock.skip(Duration::from_secs(7_200));
    }
    let end = stack.header(fanout).await;
    let (state, counts) = stands(&end);
    assert!(end.ended(), "{end:?}");
    assert!((0..3).all(|at| least[at] <= counts[at] && counts[at] <= most[at]), "{least:?}, {counts:?}, {most:?}");
    match state {
        FanoutState::Completed => {
            assert!(counts[0] == counts[1] && counts[2] <= if tolerated { 1 } else { 2 }, "{end:?}")
        }
        FanoutState::Failed => assert!(tolerated && counts[2] == 2, "{end:?}"),
        _ => assert!(counts[1] < counts[0], "{end:?}"),
    }
    let notices = stack.completions().await;
    assert_eq!((notices.len(), notices[0].state, notices[0].total), (1, state, counts[0]), "one notice");
    stack.crash.struck()
}

deaths!(
    async |crash| run(crash, false).await,
    10,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);

#[tokio::test(start_paused = true)]
async fn one_whose_failures_are_judged_dies_at_a_request() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        assert!(at_every_request(moment, async |crash| run(crash, true).await).await.len() > 10);
    }
}

/// Other writes are sent again by the SDK when their answer is lost, and meet their own condition; a count would be counted twice.
#[tokio::test(start_paused = true)]
async fn a_count_whose_answer_is_lost_is_not_sent_again() {
    let crash = Crash::new(2, Moment::AnswerLost);
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let fanout = super::open(&stack, beginning(1, true)).await;
    let lost = counted(&stack, fanout, [0, 1, 0]).await;
    assert!(matches!(lost, Err(TrackingError::Store(_))), "{lost:?}");
    assert_eq!(
        stands(&stack.header(fanout).await),
        (FanoutState::Sealed, [1, 1, 0]),
        "counted once, and the answer is lost"
    );
    stack.sweep().await;
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Completed, [1, 1, 0]));
}

/// A count is answered although ending the fan-out failed: repeated, it would count again.
#[tokio::test(start_paused = true)]
async fn a_count_is_answered_although_ending_the_fanout_fails() {
    let crash = Crash::new(3, Moment::Before);
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let fanout = super::open(&stack, beginning(1, true)).await;
    let last = counted(&stack, fanout, [0, 1, 0]).await.unwrap();
    assert_eq!(stands(&last), (FanoutState::Sealed, [1, 1, 0]));
    stack.crash.revive();
    stack.sweep().await;
    stack.drain().await;
    assert!(stack.header(fanout).await.complete());
    assert_eq!(stack.completions().await.len(), 1);
}
