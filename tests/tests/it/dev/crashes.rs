//! A worker that dies at each of its requests in turn, while a session comes, goes and is killed.

use std::collections::BTreeSet;

use super::*;

/// How long outcomes may come.
const WITHIN: Duration = Duration::from_secs(15);

/// Runs a fan-out through calls of a session, which renews its lease, answers some batches, and is gone for good then. Returns the
/// struck request, if the worker made that many.
async fn run(crash: Crash) -> Option<String> {
    let with = json!({"max_batch": 1, "max_attempts": 1, "batch_api": {"url": "https://example.com/"}});
    let stack = TestStack::new(policy(with), ScriptedApi::always_succeeds(), crash).await;
    stack.insist(async || stack.take_dev_for("anna", WITHIN).await).await;
    let (fanout, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    let mut answered = BTreeSet::new();
    for round in 0..60 {
        stack.pass_time(Duration::from_secs(5)).await;
        if round < 2 {
            stack.insist(async || stack.take_dev_for("anna", WITHIN).await).await;
        } else if round == 2 {
            stack.insist(async || stack.give_back_dev("anna").await).await;
        }
        for seen in stack.seen_by_dev().0 {
            // The first batch succeeds, the second is handed back, the third hears nothing more.
            answered.insert(seen.call.batch_id);
            let place = answered.iter().position(|id| *id == seen.call.batch_id).unwrap();
            let token = seen.token.clone().unwrap();
            let members: Vec<TaskId> = seen.call.members.iter().map(|member| member.id).collect();
            match (place, round) {
                (0, _) => drop(stack.post(seen.call.batch_id, &token, &outcomes(&members, "succeeded")).await),
                (1, 3..) => drop(stack.post(seen.call.batch_id, &token, &outcomes(&members, "retry")).await),
                _ => {}
            }
        }
        if stack.header(fanout).await.ended() {
            break;
        }
        stack.sweep_now().await;
    }
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let by_task = stack.assert_settled(&tasks, 1).await;
    assert!(by_task.values().all(|batch| batch.succeeded.count() == batch.members.len() as u64), "{by_task:?}");
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 3, 0));
    stack.crash.struck()
}

fanfold_tests::deaths!(
    run, 40,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);
