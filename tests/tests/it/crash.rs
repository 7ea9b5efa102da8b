//! The whole flow with a worker that dies at each of its requests in turn: before the request is applied, after it is
//! applied, or with the answer lost. Whatever it was, redelivery and one sweep heal it.

use std::collections::BTreeSet;

use fanfold::ids::TaskId;
use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, at_every_request, order};
use serde_json::{Value, json};

/// Items of the first scenario's fan-out, of which one fails for good and one is a duplicate.
const ITEMS: usize = 8;

fn policy() -> Value {
    json!({
        "kind": "parcel", "target": "content.depot", "key": "content.order", "max_batch": 2, "linger": 1,
        "max_in_flight": 2, "max_attempts": 6, "backoff": {"base": 1, "max": 4}, "batch_api": {"command": ["truck"]}
    })
}

/// Refuses the first call of every batch, order 3 for good, and order 5 at first.
fn truck(call: &Call) -> Result<Answer, CallError> {
    if call.attempt == 1 {
        return Err(CallError::again("429"));
    }
    let answer = |member: &fanfold_batch_api::CallMember| {
        let content: Value = serde_json::from_str(member.content.get()).unwrap();
        let outcome = match content["order"].as_str().unwrap() {
            "ORD-3" => MemberOutcome::Failed,
            "ORD-5" if call.attempt == 2 => MemberOutcome::Retry,
            _ => MemberOutcome::Succeeded,
        };
        MemberAnswer::new(member.id, outcome)
    };
    Ok(Answer::Members(call.members.iter().map(answer).collect()))
}

/// Runs the scenario; the struck request, if the worker made that many.
async fn run(crash: Crash, small: bool) -> Option<String> {
    let api = ScriptedApi::new(truck);
    let stack = TestStack::new(policy(), api, crash).await;
    let (fanout, ids) = if small {
        stack.open(ITEMS as u32, true).await
    } else {
        let (fanout, _) = stack.open(0, false).await;
        let mut ids = stack.add(fanout, 3, "first").await;
        ids.extend(stack.add(fanout, ITEMS as u32 - 3, "second").await);
        (fanout, ids)
    };
    // The last item brings the key of the one before it.
    let tasks = |range: std::ops::Range<usize>| {
        let depot = |n: usize| if n.is_multiple_of(4) { "117" } else { "900" };
        range.map(|n| order(Some(ids[n]), depot(n), n.min(ITEMS - 2))).collect::<Vec<_>>()
    };
    stack.register(tasks(0..5)).await;
    stack.drain().await;
    stack.register(tasks(5..ITEMS)).await;
    if !small {
        stack.seal(fanout).await;
    }
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let registered: Vec<TaskId> = ids[..ITEMS - 1].iter().map(|id| TaskId::Item(*id)).collect();
    let by_task = stack.assert_settled(&registered, 2).await;
    for (n, id) in registered.iter().enumerate() {
        let batch = &by_task[id];
        assert_eq!(batch.failed.get(batch.members.slot(id).unwrap()), n == 3, "order {n}");
    }
    let completions = stack.completions().await;
    assert_eq!(completions.len(), 1, "one completion notice");
    let end = &completions[0];
    let counts = (end.total, end.succeeded, end.failed, end.duplicates);
    assert_eq!((end.fanout, counts), (fanout, (ITEMS as u64, ITEMS as u64 - 2, 1, 1)));
    stack.crash.struck()
}

async fn dies(moment: Moment, small: bool) {
    let struck: BTreeSet<String> =
        at_every_request(moment, async |crash| run(crash, small).await).await.into_iter().collect();
    // Every kind of request that the flow makes was struck at least once.
    for request in ["BatchExecuteStatement", "BatchGetItem", "GetItem", "PutItem", "UpdateItem"] {
        assert!(struck.contains(&format!("DynamoDb {request}")), "{request} was never struck: {struck:?}");
    }
    assert!(struck.contains("Sqs SendMessageBatch"), "{struck:?}");
    assert!(small || struck.contains("DynamoDb TransactWriteItems"), "{struck:?}");
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    dies(Moment::Before, false).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    dies(Moment::After, false).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    dies(Moment::AnswerLost, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_small_fanout_dies_before_a_request() {
    dies(Moment::Before, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_small_fanout_dies_after_a_request() {
    dies(Moment::After, true).await;
}
