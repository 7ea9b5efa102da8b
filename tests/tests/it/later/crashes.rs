//! A worker that dies at each of its requests in turn, while a batch API answers later.

use std::collections::BTreeSet;

use super::*;

/// Runs a fan-out through calls that are answered later: one outcome comes before the answer to the call, others after it, in parts;
/// one member is called again. Returns the struck request, if the worker made that many.
async fn run(crash: Crash) -> Option<String> {
    let with = json!({
        "max_batch": 4, "max_attempts": 6, "keep_results": true, "key": "content.order",
        "batch_api": {"url": "https://example.com/", "answers_within": "3m"},
    });
    let stack = TestStack::new(changes(with), ScriptedApi::answers_later(), crash).await;
    let (fanout, ids) = stack.open(4, true).await;
    let tasks = stack.register_items(&ids).await;
    let mut again = BTreeSet::new();
    for _ in 0..60 {
        stack.pass_time(Duration::from_secs(30)).await;
        for batch in stack.all_batches().await {
            let Some(seen) = stack.api.seen().into_iter().rfind(|seen| seen.call.batch_id == batch.id) else {
                continue;
            };
            let token = seen.token.clone().unwrap();
            let members: Vec<TaskId> = seen.call.members.iter().map(|member| member.id).collect();
            for (n, id) in members.iter().enumerate() {
                let first = again.insert((seen.call.attempt, *id)) && seen.call.attempt == 1;
                let posted = match (*id == tasks[0], *id == tasks[1] && first) {
                    (true, _) => json!({"id": id, "outcome": "failed", "error": "no"}),
                    (_, true) => json!({"id": id, "outcome": "retry", "error": "busy"}),
                    _ => json!({"id": id, "outcome": "succeeded", "result": id}),
                };
                let answer = stack.post(batch.id, &token, &[posted.clone()]).await;
                assert!(answer["open"].as_u64().unwrap() <= members.len() as u64, "{answer}");
                if n == 0 {
                    stack.post(batch.id, &token, &[posted]).await;
                }
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
    let by_task = stack.assert_settled(&tasks, 4).await;
    for (n, id) in tasks.iter().enumerate() {
        let batch = &by_task[id];
        let slot = batch.members.slot(id).unwrap();
        assert_eq!(batch.failed.get(slot), n == 0, "order {n}: {batch:?}");
        let kept = stack.batches.results(batch, [slot]).of(slot).await.unwrap();
        assert_eq!(kept.is_some(), n > 0, "a success has its result");
    }
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 3, 1));
    stack.crash.struck()
}

fanfold_tests::deaths!(
    run, 25,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);
