//! Sources whose cursors name the version of what is read, such as objects: their pages are not written down, and every row is one task all
//! the same.

use std::collections::BTreeSet;

use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, changed, policy};
use serde_json::{Value, json};

use super::*;

/// Rows of the source: several pages of each of two partitions.
const ROWS: usize = 11;

/// A row that policies may refuse.
const ODD: usize = 6;

fn objects(changes: &Value) -> Producer {
    let source = json!({"s3": {"bucket": "rows", "key": "a.ndjson"}});
    producer(2, &changed(json!({"source": source, "key": null}), changes.clone()))
}

/// A page of a partition's own rows, as an object has them: the same whenever it is asked for. The first page has none.
fn own_page(ask: &SourceRequest) -> Value {
    let own: Vec<usize> = (0..ROWS).filter(|n| n % ask.of as usize == ask.partition as usize).collect();
    let Some(from) = ask.cursor.as_u64() else { return json!({"tasks": [], "cursor": 0}) };
    let from = usize::try_from(from).unwrap();
    let to = own.len().min(from + 2);
    let tasks: Vec<Value> = own[from..to].iter().map(|n| row(*n)).collect();
    json!({"tasks": tasks, "cursor": (to < own.len()).then_some(to)})
}

async fn new(crash: Crash) -> TestStack {
    let stack = TestStack::new(policy(json!({"linger": 0})), ScriptedApi::always_succeeds(), crash).await;
    stack.sources.answer(|ask| Ok(own_page(ask)));
    stack
}

/// A policy that has no target for one row.
fn refusing() -> Value {
    let target = format!("content.order == '{}' ? content.nothing : content.depot", name(ODD));
    policy(json!({"linger": 0, "target": target}))
}

async fn drain(stack: &TestStack) {
    for _ in 0..2 {
        stack.drain().await;
        stack.sweep().await;
    }
    stack.drain().await;
}

/// How many pages of a partition were written down.
async fn kept(stack: &TestStack, partitions: &[Partition]) -> usize {
    let mut kept = 0;
    for at in partitions {
        for page in 0..at.page {
            let page = stack.producing.producers.page(&Partition { page, ..at.clone() }).await.unwrap();
            kept += usize::from(page.is_some());
        }
    }
    kept
}

async fn dies(moment: Moment) {
    let run = async |crash| {
        let stack = new(crash).await;
        let id = open(&stack, objects(&json!({}))).await;
        drain(&stack).await;
        let partitions = assert_produced(&stack, id, 0..ROWS).await;
        assert_eq!(kept(&stack, &partitions).await, 0);
        stack.crash.struck()
    };
    let struck: BTreeSet<String> = at_every_request(moment, run).await.into_iter().collect();
    assert!(struck.contains("DynamoDb TransactWriteItems") && struck.contains("DynamoDb UpdateItem"), "{struck:?}");
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    dies(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    dies(Moment::After).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    dies(Moment::AnswerLost).await;
}

/// The policy changes while a page is under way: wherever that is, no row gets another's item, or none.
async fn changes(moment: Moment) {
    let run = async |crash| {
        let stack = new(crash).await;
        let id = open(&stack, objects(&json!({}))).await;
        while stack.crash.struck().is_none() && stack.header(id).await.state == FanoutState::Open {
            stack.deliver(QueueName::Produce).await;
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        }
        let struck = stack.crash.struck()?;
        stack.put_policy(refusing()).await;
        drain(&stack).await;
        let failed = partitions(&stack, id).await.iter().any(|it| it.state == PartitionState::Failed);
        stack.put_policy(policy(json!({"linger": 0}))).await;
        if failed {
            stack.producing.resume(&stack.header(id).await).await.unwrap();
        }
        drain(&stack).await;
        assert_produced(&stack, id, 0..ROWS).await;
        Some((struck, failed))
    };
    let all = at_every_request(moment, run).await;
    let failed = all.iter().filter(|(_, failed)| *failed).count();
    assert!(failed > 10 && failed < all.len(), "{failed} of {}", all.len());
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_before_a_request_moves_no_row() {
    changes(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_after_a_request_moves_no_row() {
    changes(Moment::After).await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_row_fails_its_partition_before_an_item_is_added() {
    let stack = new(Crash::never()).await;
    stack.put_policy(refusing()).await;
    let id = open(&stack, objects(&json!({}))).await;
    stack.drain().await;
    let found = partitions(&stack, id).await;
    assert_eq!((found[0].state, found[1].state), (PartitionState::Failed, PartitionState::Done));
    // Rows 6 and 8 are the page.
    assert_eq!((found[0].rows, found[0].tries, stack.header(id).await.total), (2, 1, 2 + found[1].rows));
    let error = found[0].error.as_deref().unwrap();
    assert!(error.starts_with("not every row is a task") && error.contains("row 3: `target`"), "{error}");
    stack.put_policy(policy(json!({}))).await;
    stack.producing.resume(&stack.header(id).await).await.unwrap();
    stack.drain().await;
    assert_produced(&stack, id, 0..ROWS).await;
}

/// Which rows are left out depends on the policy of the moment, so it is written down.
#[tokio::test(start_paused = true)]
async fn pages_are_kept_if_bad_rows_are_tolerated() {
    let stack = new(Crash::never()).await;
    stack.put_policy(refusing()).await;
    let id = open(&stack, objects(&json!({"tolerated_bad_rows": 1}))).await;
    stack.drain().await;
    let partitions = assert_produced(&stack, id, (0..ROWS).filter(|n| *n != ODD)).await;
    assert_eq!(partitions.iter().map(|it| it.bad).sum::<u64>(), 1);
    let pages: u64 = partitions.iter().map(|it| it.page).sum();
    assert_eq!(kept(&stack, &partitions).await as u64, pages);
}

#[tokio::test(start_paused = true)]
async fn several_workers_at_one_partition_do_what_one_does() {
    let stack = new(Crash::never()).await;
    let id = open(&stack, objects(&json!({}))).await;
    let messages = stack.take(QueueName::Produce).await;
    let workers = (0..4).map(|_| stack.hand(QueueName::Produce, messages.clone()));
    for failed in futures::future::join_all(workers).await {
        assert!(failed.is_empty());
    }
    stack.drain().await;
    assert_produced(&stack, id, 0..ROWS).await;
}

/// Its version says that it is the same, but it is not: no row gets an item that another row had.
#[tokio::test(start_paused = true)]
async fn a_page_of_another_number_of_rows_fails_its_partition() {
    let stack = new(Crash::never()).await;
    let id = open(&stack, objects(&json!({}))).await;
    let first = partitions(&stack, id).await.swap_remove(0);
    stack.tracking.add_page(&Partition { page: 1, ..first }, 1).await.unwrap();
    drain(&stack).await;
    let found = partitions(&stack, id).await;
    let states: Vec<PartitionState> = found.iter().map(|partition| partition.state).collect();
    assert_eq!(states, [PartitionState::Failed, PartitionState::Done]);
    let error = found[0].error.as_deref().unwrap();
    assert!(error.contains("another number of rows") && found[0].rows == 0, "{error}");
}
