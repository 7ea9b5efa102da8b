//! What happens beside a cancellation, between its read of the header and its write.

use fanfold_tests::Moment;

use super::*;

/// A task is registered, and its call begins.
#[tokio::test(start_paused = true)]
async fn an_item_whose_call_begins_before_the_decision_is_counted() {
    // The second request of the worker that cancels, its write, is late.
    let crash = Crash::new(2, Moment::Late(Duration::from_secs(20))).waiting();
    let api = ScriptedApi::slow(|_| Duration::from_secs(60), |_| Ok(Answer::AllSucceeded));
    let changes = json!({"batch_api": {"command": ["truck"], "timeout": 90}});
    let stack = TestStack::new(policy(changes), api, crash).await;
    let (fanout, ids) = opened(&stack, 1, true).await;
    stack.crash.begin();
    let called = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stack.register_items(&ids).await;
        stack.drain().await;
    };
    let (cancelled, ()) = futures::join!(stack.tracking.cancel(fanout), called);
    assert_eq!(counts(&cancelled.unwrap()), (FanoutState::Cancelled, false, [0, 0, 0]), "it is in progress");
    assert_eq!(counts(&stack.header(fanout).await), (FanoutState::Cancelled, true, [0, 0, 0]));
    assert_eq!(stack.completions().await[0].succeeded, 1);
}
