//! Steps ask the tables of an engine in their process by the SDK or without it, which comes to the same.

use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_local::Usage;
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::json;

const ITEMS: u32 = 130;

const TABLES: [&str; 6] = ["TasksTable", "LocksTable", "BatchesTable", "FanoutsTable", "GroupsTable", "PoliciesTable"];

/// The first attempt of each batch leaves one member to be tried again, and fails another one.
fn answer(call: &Call) -> Result<Answer, CallError> {
    let outcome = |at: usize| match (call.attempt, at) {
        (1, 0) => MemberOutcome::Retry,
        (1, 1) => MemberOutcome::Failed,
        _ => MemberOutcome::Succeeded,
    };
    let members = call.members.iter().enumerate();
    Ok(Answer::Members(members.map(|(at, member)| MemberAnswer::new(member.id, outcome(at))).collect()))
}

/// Handles the items of a fan-out, each registered twice. Returns what was asked for, and what is in the tables then.
async fn handled(crash: Crash) -> (Usage, Vec<String>) {
    let changes = json!({"key": "content.order", "linger": "300ms", "backoff": {"base": 1, "max": 1}});
    let stack = TestStack::new(policy(changes), ScriptedApi::new(answer), crash).await;
    let (fanout, items) = stack.open(ITEMS, true).await;
    for _ in 0..2 {
        stack.register_items(&items).await;
    }
    stack.drain().await;
    let header = stack.header(fanout).await;
    assert!(header.complete(), "{header:?}");
    let mut content = Vec::new();
    for table in TABLES {
        for item in stack.scan(table).await {
            let item: std::collections::BTreeMap<_, _> = item.into_iter().collect();
            content.push(format!("{table}: {item:?}"));
        }
    }
    content.sort();
    (stack.usage(), content)
}

#[tokio::test(start_paused = true)]
async fn a_run_comes_to_the_same_with_the_sdk_and_without() {
    let (without, left) = handled(Crash::unseen()).await;
    let (with, wanted) = handled(Crash::never()).await;
    assert!(with.dynamodb_requests > 50, "{with:?}");
    assert_eq!(without, with);
    assert_eq!(left.len(), wanted.len());
    for (left, wanted) in left.iter().zip(&wanted) {
        assert_eq!(left, wanted);
    }
}
