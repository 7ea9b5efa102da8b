//! A worker dies at each request in turn while ends pass through three levels: a sweep does what is left, once.

use super::*;

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
        fanouts.push(stack.open_as(&request, name).await);
        parent = Some(fanouts[fanouts.len() - 1].1[0]);
    }
    stack.ack(&failed(&fanouts[2].1[1..2])).await;
    stack.drain().await;
    for _ in 0..4 {
        stack.clock.skip(fanfold::limits::MISSING_AFTER);
        stack.sweep().await;
        stack.drain().await;
    }
    let mut tasks = Vec::new();
    for (id, items) in &fanouts {
        let end = stack.header(*id).await;
        assert!(end.state == FanoutState::Failed && end.ended() && !end.ending(), "{end:?}");
        assert_eq!((end.failed, end.missing), (1, 2), "{end:?}");
        let task = derived::then_task(*id);
        let contents = called(&stack, task);
        assert!(
            !contents.is_empty() && contents.iter().all(|content| content["fanout"]["failed"] == 1),
            "{contents:?}"
        );
        tasks.push(task);
        assert_eq!(stack.item(&items[2]).await, ItemState::Missing);
    }
    assert_eq!(stack.completions().await.len(), 1, "one notice");
    stack.assert_settled(&tasks, 10).await;
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
    small_ones_die_at_a_request: After,
);
