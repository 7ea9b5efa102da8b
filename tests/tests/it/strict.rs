//! `mode: strict`: one bad member fails its call, and the batch is split until it stands alone. And how long members ask to wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fanfold_batch_api::{Answer, Call, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::{Value, json};

fn number(member: &CallMember) -> usize {
    let content: Value = serde_json::from_str(member.content.get()).unwrap();
    content["order"].as_str().unwrap().trim_start_matches("ORD-").parse().unwrap()
}

/// Answers with what `said` says of the bad orders; the others succeed.
fn bad_are(
    bad: &[usize],
    said: impl Fn(&Call, MemberAnswer) -> Option<MemberAnswer> + Send + Sync + 'static,
) -> Arc<ScriptedApi> {
    let bad = bad.to_vec();
    ScriptedApi::new(move |call| {
        let answer = |member: &CallMember| match bad.contains(&number(member)) {
            true => said(call, MemberAnswer::new(member.id, MemberOutcome::Failed)),
            false => Some(MemberAnswer::new(member.id, MemberOutcome::Succeeded)),
        };
        Ok(Answer::Members(call.members.iter().filter_map(answer).collect()))
    })
}

/// The errors and codes of those that failed, of 64 orders in one batch, and how many calls there were.
async fn run(changes: Value, api: Arc<ScriptedApi>) -> (BTreeMap<usize, (String, Option<String>)>, usize) {
    let strict = json!({"command": ["truck"], "mode": "strict"});
    let changes = fanfold_tests::changed(json!({"max_batch": 64, "linger": 3, "batch_api": strict}), changes);
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..64).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 64).await.remove(&tasks[0]).unwrap();
    let mut failed = BTreeMap::new();
    for (n, task) in tasks.iter().enumerate() {
        let slot = batch.members.slot(task).unwrap();
        if batch.failed.get(slot) {
            failed.insert(n, (batch.error(slot).unwrap().to_owned(), batch.code(slot).map(str::to_owned)));
        }
    }
    (failed, stack.api.seen().len())
}

#[tokio::test(start_paused = true)]
async fn a_bad_member_is_isolated_and_keeps_its_error_and_code() {
    for bad in [0, 31, 32, 63] {
        let api = bad_are(&[bad], |_, member| {
            Some(MemberAnswer { error: Some("too heavy".to_owned()), code: Some("E7".to_owned()), ..member })
        });
        let (failed, calls) = run(json!({}), api).await;
        assert_eq!(failed, BTreeMap::from([(bad, ("too heavy".to_owned(), Some("E7".to_owned())))]));
        assert!((8..=13).contains(&calls), "{calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_missing_is_isolated_once_attempts_are_used_up() {
    let (failed, calls) = run(json!({"max_attempts": 3}), bad_are(&[9], |_, _| None)).await;
    assert_eq!(failed.keys().collect::<Vec<_>>(), [&9]);
    assert!(failed[&9].0.starts_with("gave up after 3 attempts: the answer has no outcome for "), "{failed:?}");
    assert!(calls <= 3 + 13 + 3, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_tried_again_has_the_whole_call_repeated() {
    let api = bad_are(&[5], |call, member| match call.attempt {
        1 | 2 => Some(MemberAnswer { outcome: MemberOutcome::Retry, ..member }),
        _ => Some(MemberAnswer { outcome: MemberOutcome::Succeeded, ..member }),
    });
    let (failed, calls) = run(json!({}), Arc::clone(&api)).await;
    assert_eq!((failed.len(), calls), (0, 3));
    assert!(api.seen().iter().all(|seen| seen.call.members.len() == 64));
}

#[tokio::test(start_paused = true)]
async fn members_that_ask_for_a_delay_are_called_after_the_longest_one() {
    let api = ScriptedApi::new(|call| {
        let answer = |member: &CallMember| {
            let asked = Duration::from_secs(60 * number(member) as u64);
            let outcome = if call.attempt == 1 { MemberOutcome::Retry } else { MemberOutcome::Succeeded };
            MemberAnswer { retry_after: Some(asked), ..MemberAnswer::new(member.id, outcome) }
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    });
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 1..4).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    let seen = stack.api.seen();
    let waited = (seen[1].at - seen[0].at).as_secs();
    assert!(seen.len() == 2 && (180..200).contains(&waited), "{waited} s");
}

/// Members without an outcome, with several, and others than those of the call are named, and what is clear counts.
#[tokio::test(start_paused = true)]
async fn an_answer_that_names_others_than_its_members_counts_as_far_as_it_is_clear() {
    let stranger = "0189abcd-0000-7000-8000-000000000001".parse().unwrap();
    let api = ScriptedApi::new(move |call| {
        let [first, second, _] = &call.members[..] else { return Ok(Answer::AllSucceeded) };
        let say = |id, outcome| MemberAnswer::new(id, outcome);
        use MemberOutcome::{Failed, Succeeded};
        Ok(Answer::Members(vec![
            say(first.id, Succeeded),
            say(first.id, Succeeded),
            say(second.id, Succeeded),
            say(second.id, Failed),
            say(stranger, Succeeded),
        ]))
    });
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    let again: Vec<usize> = stack.api.seen().iter().map(|seen| seen.call.members.len()).collect();
    assert_eq!(again, [3, 2], "the one whose outcome is clear is not called again");
}
