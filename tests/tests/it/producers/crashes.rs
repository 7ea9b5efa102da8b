//! Workers that die, messages that are lost or come twice, and several workers at one partition.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, policy};
use serde_json::json;

use super::{assert_produced, open, page, producer, row};

/// Rows of the source: two pages.
const ROWS: usize = 6;

/// Runs a producer whose worker dies at one request. The source answers another page each time it is asked at the same cursor: more rows, fewer rows, other
/// ones, in another order. The policy says by which key rows are shared out.
async fn run(crash: Crash) -> Option<String> {
    let stack =
        TestStack::new(policy(json!({"linger": 0, "key": "content.order"})), ScriptedApi::always_succeeds(), crash)
            .await;
    let asked = AtomicUsize::new(0);
    stack.sources.answer(move |ask| {
        let n = asked.fetch_add(1, Ordering::Relaxed);
        let mut answer = page(ask, ROWS, 3 + n % 3);
        let tasks = answer["tasks"].as_array_mut().unwrap();
        if n % 2 == 1 {
            tasks.reverse();
        }
        Ok(answer)
    });
    let id = open(&stack, producer(2, &json!({"key": null}))).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert_produced(&stack, id, 0..ROWS).await;
    stack.crash.struck()
}

async fn dies(moment: Moment) {
    let struck: BTreeSet<String> = at_every_request(moment, async |crash| run(crash).await).await.into_iter().collect();
    for request in ["PutItem", "TransactWriteItems", "UpdateItem", "GetItem", "BatchExecuteStatement", "BatchGetItem"] {
        assert!(struck.contains(&format!("DynamoDb {request}")), "{request} was never struck: {struck:?}");
    }
    assert!(struck.contains("Sqs SendMessageBatch"), "{struck:?}");
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

/// What was read first is the page: rows that the source shows later at the same cursor are not beside it, and those that it does not show any
/// more are not gone.
#[tokio::test(start_paused = true)]
async fn a_page_is_what_was_read_first() {
    for at in 1.. {
        let crash = Crash::new(at, Moment::After);
        let stack = TestStack::new(policy(json!({"linger": 0})), ScriptedApi::always_succeeds(), crash).await;
        let asked = AtomicUsize::new(0);
        // The first answer has rows 0 to 4, later ones have others.
        stack.sources.answer(move |_| {
            let first = asked.fetch_add(1, Ordering::Relaxed) * 10;
            Ok(json!({"tasks": (first..first + 5).map(row).collect::<Vec<_>>()}))
        });
        let id = open(&stack, producer(1, &json!({}))).await;
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(stack.sources.asked().len(), 1, "{at}: what was written down is not asked for again");
        assert_produced(&stack, id, 0..5).await;
        if stack.crash.struck().is_none() {
            assert!(at > 10, "{at} requests");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_workers_at_one_partition_do_what_one_does() {
    for at_once in [2, 5] {
        let stack = TestStack::with(json!({})).await;
        let asked = AtomicUsize::new(0);
        stack.sources.answer(move |ask| Ok(page(ask, 30, 2 + asked.fetch_add(1, Ordering::Relaxed) % 4)));
        let id = open(&stack, producer(2, &json!({}))).await;
        let messages = stack.take(QueueName::Produce).await;
        assert_eq!(messages.len(), 2);
        let workers = (0..at_once).map(|_| stack.hand(QueueName::Produce, messages.clone()));
        for failed in futures::future::join_all(workers).await {
            assert!(failed.is_empty());
        }
        stack.drain().await;
        let partitions = assert_produced(&stack, id, 0..30).await;
        let pages: u64 = partitions.iter().map(|it| it.page).sum();
        assert!(stack.sources.asked().len() as u64 > pages, "they read the same pages: {pages}");
        // Messages that come an hour late find nothing to do.
        let asked = stack.sources.asked().len();
        assert!(stack.hand(QueueName::Produce, messages).await.is_empty());
        stack.drain().await;
        assert_eq!(stack.sources.asked().len(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_messages_are_made_again_by_sweeps() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|ask| Ok(page(ask, 20, 4)));
    let id = open(&stack, producer(3, &json!({}))).await;
    assert_eq!(stack.take(QueueName::Produce).await.len(), 3);
    let report = stack.sweep_now().await;
    assert_eq!(report.partitions, 0, "they are not taken for lost at once");
    stack.sweep().await;
    stack.drain().await;
    assert_produced(&stack, id, 0..20).await;
    assert_eq!(stack.sweep().await.partitions, 0, "nothing is left to be done");
}
