//! Partitions that are resumed late, beside a slow worker, or not any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::policy::Span;
use fanfold::producing::Sifted;
use fanfold::store::fanouts::{FanoutState, IdleLimit};
use fanfold::store::producers::{KeptPage, PartitionState};
use fanfold::tracking::OpenRequest;
use fanfold_produce::SourceError;
use fanfold_tests::{QueueName, TestStack, message};
use serde_json::json;

use super::{assert_produced, open, page, partitions, producer, request, row};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The slow worker fails at the same page, with as few tries, but the user wants it to go on.
#[tokio::test(start_paused = true)]
async fn a_slow_worker_does_not_fail_a_partition_that_was_resumed_meanwhile() {
    let stack = TestStack::with(json!({})).await;
    let asked = AtomicUsize::new(0);
    stack.sources.answer(move |ask| match asked.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(SourceError::for_good("there is no such table")),
        _ => Ok(page(ask, 20, 4)),
    });
    let id = open(&stack, producer(1, &json!({}))).await;
    stack.sources.take(Duration::from_secs(60));
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stack.sources.take(Duration::ZERO);
        let copy = message("copy", &partitions(&stack, id).await[0].message());
        assert!(stack.hand(QueueName::Produce, vec![copy]).await.is_empty());
        assert_eq!(partitions(&stack, id).await[0].state, PartitionState::Failed);
        stack.producing.resume(&stack.header(id).await).await.unwrap();
    };
    let (delivered, ()) = futures::join!(stack.deliver(QueueName::Produce), meanwhile);
    assert_eq!(delivered, 1);
    stack.drain().await;
    assert_produced(&stack, id, 0..20).await;
}

/// Nobody can resume it any more, and its rows were not read.
#[tokio::test(start_paused = true)]
async fn a_fanout_is_not_sealed_without_a_partition_whose_record_has_expired() {
    let stack = TestStack::with(json!({})).await;
    let works = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&works);
    stack.sources.answer(move |ask| match answers.load(Ordering::Relaxed) {
        true => Ok(page(ask, 4, 4)),
        false => Err(SourceError::for_good("there is no such table")),
    });
    let id = open(&stack, producer(2, &json!({}))).await;
    stack.drain().await;
    stack.delete_record("ProducersTable", &format!("{id}/0")).await;
    works.store(true, Ordering::Relaxed);
    stack.producing.resume(&stack.header(id).await).await.unwrap();
    stack.drain().await;
    let left: Vec<_> = partitions(&stack, id).await.iter().map(|it| (it.number, it.state)).collect();
    assert_eq!(left, [(1, PartitionState::Done)]);
    assert_eq!(stack.header(id).await.state, FanoutState::Open);
}

/// The source has no rows any more: those of the page that was read are registered all the same.
#[tokio::test(start_paused = true)]
async fn a_partition_that_failed_months_ago_goes_on_with_its_page() {
    let stack = TestStack::with(json!({})).await;
    let idle_limit = Some(IdleLimit { open: Some(Span(365 * DAY)), sealed: None });
    let request = OpenRequest { idle_limit, ..request(producer(1, &json!({}))) };
    let id = stack.producing.open(&stack.tracking, request, Some("open")).await.unwrap().fanout.id;
    let (at, producers) = (partitions(&stack, id).await.remove(0), &stack.producing.producers);
    let tasks = vec![serde_json::from_value(row(7)).unwrap()];
    let page = KeptPage::new(Sifted { tasks, rows: 1, ..Sifted::default() }, None).unwrap();
    producers.take(&at, page).await.unwrap();
    assert!(producers.failed(&at, "the policy was changed", None).await.unwrap().is_done());
    stack.clock.skip(90 * DAY);
    stack.delete_expired().await;
    stack.producing.resume(&stack.header(id).await).await.unwrap();
    stack.drain().await;
    assert_produced(&stack, id, [7]).await;
}
