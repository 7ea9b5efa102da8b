//! Results are written before the outcomes that they belong to, and count only with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::grouping::Parts;
use fanfold::ids::TaskId;
use fanfold::messages::HandleMessage;
use fanfold::results::Kept;
use fanfold::store::batches::{Batch, BatchStatus, Settlement};
use fanfold_batch_api::{Answer, Call, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, policy};
use serde_json::{Value, json};

/// That of a call.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What was returned for each member, by attempt.
type Returned = Arc<Mutex<BTreeMap<TaskId, BTreeMap<u32, String>>>>;

/// A batch API whose results differ in every call; some members are called again.
fn labels() -> (Returned, Arc<ScriptedApi>) {
    let returned = Returned::default();
    let said = Arc::clone(&returned);
    let api = ScriptedApi::new(move |call: &Call| {
        let answer = |(n, member): (usize, &CallMember)| {
            if call.attempt == 1 && n % 2 == 1 {
                return MemberAnswer::new(member.id, MemberOutcome::Retry);
            }
            let result = json!({"of": member.id, "attempt": call.attempt}).to_string();
            said.lock().unwrap().entry(member.id).or_default().insert(call.attempt, result.clone());
            MemberAnswer { result: Some(result), ..MemberAnswer::new(member.id, MemberOutcome::Succeeded) }
        };
        Ok(Answer::Members(call.members.iter().enumerate().map(answer).collect()))
    });
    (returned, api)
}

fn keeping(changes: Value) -> Value {
    fanfold_tests::changed(policy(json!({"keep_results": true})), changes)
}

/// The results of a batch's members.
async fn results(stack: &TestStack, batch: &Batch) -> Vec<Option<Kept>> {
    let mut reader = stack.batches.results(batch, 0..batch.members.len());
    let mut results = Vec::new();
    for slot in 0..batch.members.len() {
        results.push(reader.of(slot).await.unwrap());
    }
    results
}

/// Runs some tasks to their end; the struck request, if the worker made that many.
async fn run(crash: Crash) -> Option<String> {
    let (returned, api) = labels();
    let stack = TestStack::new(keeping(json!({"max_batch": 3, "max_attempts": 9})), api, crash).await;
    let (_, ids) = stack.open(5, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    for batch in stack.assert_settled(&tasks, 3).await.into_values() {
        for (slot, kept) in results(&stack, &batch).await.into_iter().enumerate() {
            let id = batch.members.ids()[slot];
            let attempts: Vec<u32> = batch.results.records_of(slot).map(|record| record.attempt).collect();
            let all = returned.lock().unwrap()[&id].clone();
            let Some(Kept::Result(kept)) = kept else { panic!("{id} has no result: {batch:?}") };
            // It is that of a call whose answer counted, although a dead worker may have had another.
            assert!(attempts.iter().any(|attempt| all.get(attempt) == Some(&kept)), "{kept} of {all:?}: {batch:?}");
            assert_eq!(all.values().next_back(), Some(&kept), "the last call is the one that counted");
        }
    }
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    assert!(!at_every_request(Moment::Before, run).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    assert!(!at_every_request(Moment::After, run).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    assert!(!at_every_request(Moment::AnswerLost, run).await.is_empty());
}

/// Records of results beside the batches.
async fn records(stack: &TestStack) -> usize {
    stack.scan("BatchesTable").await.iter().filter(|item| item["id"].as_s().unwrap().contains(':')).count()
}

/// A worker that wakes up late writes its results, and its outcomes are refused.
#[tokio::test(start_paused = true)]
async fn a_result_without_a_recorded_success_is_never_shown() {
    let (_, api) = labels();
    let stack = TestStack::new(keeping(json!({})), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let message: HandleMessage =
        serde_json::from_str(&stack.receive(QueueName::Handle).await[0].body.clone().unwrap()).unwrap();
    let asleep = stack.batches.begin(message.batch, message.attempt, TIMEOUT).await.unwrap().done().unwrap();
    let late = Settlement {
        succeeded: Bits::ones(2),
        failed: Bits::default(),
        silent: Bits::default(),
        freed: Bits::default(),
        errors: Vec::new(),
        codes: Vec::new(),
        results: vec![(0, "\"late\"".to_owned()), (1, "\"late\"".to_owned())],
        refused: 0,
        refused_since: None,
        parts: Parts::default(),
        split: false,
        last_error: None,
        retry_at: None,
    };
    tokio::time::sleep(Duration::from_secs(130)).await;
    stack.handle_message(message).await;
    assert!(!stack.batches.settle(&asleep, late).await.unwrap().is_done(), "the late outcomes are refused");
    assert_eq!(records(&stack).await, 2, "the late results are written, and those that count");
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    for kept in results(&stack, &batch).await {
        assert!(matches!(kept, Some(Kept::Result(kept)) if kept.contains("\"attempt\":2")), "{batch:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn they_cost_a_write_per_call_and_nothing_if_they_are_not_kept() {
    let cost = async |changes: Value, api: Arc<ScriptedApi>| {
        let stack = TestStack::new(policy(changes), api, Crash::never()).await;
        stack.register_orders("117", 0..10).await;
        stack.drain().await;
        assert_eq!(stack.all_batches().await.len(), 1);
        let usage = stack.usage();
        (usage.write_units, usage.dynamodb_requests, records(&stack).await)
    };
    let result = |member: &CallMember| MemberAnswer {
        result: Some(format!("\"label of {}\"", member.id)),
        ..MemberAnswer::new(member.id, MemberOutcome::Succeeded)
    };
    let returns = || ScriptedApi::new(move |call| Ok(Answer::Members(call.members.iter().map(result).collect())));
    let without = cost(json!({}), ScriptedApi::always_succeeds()).await;
    assert_eq!(cost(json!({}), returns()).await, without, "results that are not kept cost nothing");
    let nothing = cost(json!({"keep_results": true}), ScriptedApi::always_succeeds()).await;
    assert_eq!(nothing, without, "no results cost nothing");
    let kept = cost(json!({"keep_results": true}), returns()).await;
    assert_eq!(kept, (without.0 + 1.0, without.1 + 1, 1), "ten small results are one write unit");
}

/// A batch that waits for weeks keeps the results of its first calls.
#[tokio::test(start_paused = true)]
async fn results_of_a_batch_that_waits_are_kept_for_longer() {
    let (_, api) = labels();
    let stack = TestStack::new(keeping(json!({"backoff": {"base": "1day", "max": "1day"}})), api, Crash::never()).await;
    stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let expires = async || -> u64 {
        let items = stack.scan("BatchesTable").await;
        let item = items.iter().find(|item| item["id"].as_s().unwrap().contains(':')).unwrap();
        item["ttl"].as_n().unwrap().parse().unwrap()
    };
    let before = expires().await;
    assert_eq!(stack.all_batches().await.remove(0).status, BatchStatus::InProgress);
    tokio::time::sleep(Duration::from_secs(8 * 24 * 3_600)).await;
    stack.sweep().await;
    assert!(expires().await >= before + 7 * 24 * 3_600);
}
