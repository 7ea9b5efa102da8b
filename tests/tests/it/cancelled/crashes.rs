//! A worker dies at each request in turn while a fan-out is cancelled.

use super::*;

/// Cancels while some items are called for, some wait, some are acked and some have no task. Returns the struck request.
async fn run(crash: Crash, small: bool) -> Option<String> {
    let changes = json!({"max_batch": 2, "max_in_flight": 1});
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let (fanout, ids) = opened(&stack, 10, small).await;
    stack.register(ids[..4].iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
    stack.ack(&done(&ids[8..])).await;
    while stack.api.seen().is_empty() {
        stack.seconds(6).await;
        if stack.backlog().await == 0 {
            stack.sweep().await;
        }
    }
    stack.register(ids[4..6].iter().enumerate().map(|(n, id)| order(Some(*id), "118", n)).collect()).await;
    cancel(&stack, fanout).await;
    let calls = stack.api.seen().len();
    stack.drain().await;
    stack.clock.skip(MISSING_AFTER);
    // After a death behind the last group's end the next sweep goes on.
    for _ in 0..2 {
        stack.sweep().await;
        stack.drain().await;
    }
    assert_eq!(stack.api.seen().len(), calls, "no call begins after it is cancelled");
    let end = stack.header(fanout).await;
    assert!(end.state == FanoutState::Cancelled && end.ended(), "{end:?}");
    let mut missing = 0;
    for id in &ids {
        match stack.item(id).await {
            ItemState::Missing => missing += 1,
            state => assert_eq!(state, ItemState::Succeeded),
        }
    }
    let notices = stack.completions().await;
    assert_eq!(notices.len(), 1, "one notice");
    assert_eq!((notices[0].succeeded, notices[0].missing, end.missing), (10 - missing, missing, missing));
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

/// A worker dies while it registers tasks, and nobody asks again. Their fan-out is cancelled while those that were stored are called
/// for: each of them succeeds. Returns the struck request.
async fn registered_by_the_dead(crash: Crash) -> Option<String> {
    let api = ScriptedApi::slow(|_| Duration::from_secs(60), |_| Ok(Answer::AllSucceeded));
    let changes = json!({"batch_api": {"command": ["truck"], "timeout": 90}});
    let stack = TestStack::new(policy(changes), api, crash.waiting()).await;
    let (fanout, ids) = opened(&stack, 4, false).await;
    stack.crash.begin();
    let tasks = ids[..2].iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect();
    drop(stack.register.register(tasks, "request").await);
    let struck = stack.crash.struck()?;
    stack.crash.revive();
    stack.sweep().await;
    let cancels = async {
        for _ in 0..600 {
            if stack.api.seen().is_empty() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        cancel(&stack, fanout).await
    };
    let (_, ()) = futures::join!(cancels, stack.drain());
    let seen = stack.api.seen();
    let called: BTreeSet<TaskId> = seen.iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect();
    for id in &ids[..2] {
        let state = stack.item(id).await;
        assert_eq!(state == ItemState::Succeeded, called.contains(&TaskId::Item(*id)), "{struck}: {state:?}");
    }
    Some(struck)
}

deaths!(
    registered_by_the_dead,
    4,
    a_worker_that_registers_dies_before_a_request: Before,
    a_worker_that_registers_dies_after_a_request: After,
);
