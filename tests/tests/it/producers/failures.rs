//! Sources that fail, rows that are no tasks, fan-outs that are cut short.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanfold::limits::SOURCE_TRIES_MAX;
use fanfold::producing::ResumeError;
use fanfold::store::fanouts::{FanoutState, Tolerance};
use fanfold::store::findings::{SweepRecord, What};
use fanfold::store::producers::PartitionState;
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_batch_api::{CallError, Cause};
use fanfold_produce::SourceError;
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::{Value, json};

use super::{assert_produced, called, name, open, page, partitions, producer, request, row, tasks};

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_is_asked_again_after_pauses_then_fails_its_partition_and_can_be_resumed() {
    let stack = TestStack::with(json!({})).await;
    let works = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&works);
    // Partition 1 gets no further than row 8.
    stack.sources.answer(move |ask| match ask.cursor.as_u64() {
        Some(8) if ask.partition == 1 && !answers.load(Ordering::Relaxed) => {
            Err(SourceError::again("the database is down"))
        }
        _ => Ok(page(ask, 20, 4)),
    });
    let id = open(&stack, producer(2, &json!({}))).await;
    stack.drain().await;
    let found = partitions(&stack, id).await;
    assert_eq!((found[0].state, found[1].state), (PartitionState::Done, PartitionState::Failed));
    assert_eq!((found[1].rows, found[1].tries, found[1].cursor.as_deref()), (8, SOURCE_TRIES_MAX, Some("8")));
    assert_eq!(found[1].error.as_deref(), Some("the database is down"));
    let asked: Vec<_> =
        stack.sources.asked().into_iter().filter(|it| it.ask.cursor == 8 && it.ask.partition == 1).collect();
    assert_eq!(asked.len(), SOURCE_TRIES_MAX as usize);
    let pauses: Vec<Duration> = asked.windows(2).map(|two| two[1].at.since(two[0].at)).collect();
    assert!(pauses[0] >= Duration::from_secs(1) && pauses[10] >= Duration::from_secs(150), "{pauses:?}");
    // It is left alone, and so is its fan-out; `GET /health` names it.
    assert_eq!(stack.sweep().await.partitions, 0);
    let about = json!([{"name": id.to_string(), "since": found[1].updated_at.0, "error": "the database is down"}]);
    assert_eq!(failed_producers(&stack).await, Some((1, about)));
    stack.drain().await;
    assert_eq!((stack.sources.asked().len(), stack.header(id).await.state), (5 + 2 + 12, FanoutState::Open));
    works.store(true, Ordering::Relaxed);
    let resumed = stack.producing.resume(&stack.header(id).await).await.unwrap();
    let states: Vec<PartitionState> = resumed.iter().map(|it| it.state).collect();
    assert_eq!(states, [PartitionState::Done, PartitionState::Running]);
    stack.sweep().await;
    assert_eq!(failed_producers(&stack).await, None);
    stack.drain().await;
    assert_produced(&stack, id, 0..20).await;
}

/// Rows belong to partitions by the policy's key. It is changed between two pages: with the new one, some rows would be nobody's and
/// others would be two tasks.
#[tokio::test(start_paused = true)]
async fn rows_are_shared_out_by_one_key_though_the_policy_changes() {
    let by_order = json!({"key": "content.order"});
    for (first, then) in [(json!({}), by_order.clone()), (by_order, json!({"key": "'x' + content.order"}))] {
        let stack = TestStack::with(first.clone()).await;
        let changed = Arc::new(AtomicBool::new(false));
        let changes = Arc::clone(&changed);
        // Each partition selects its own rows while the policy has no key. No page but the first comes before the change.
        let selects = first == json!({});
        stack.sources.answer(move |ask| match ask.cursor.as_u64() {
            Some(_) if !changes.load(Ordering::Relaxed) => Err(SourceError::again("later")),
            _ if selects => {
                let from = usize::try_from(ask.cursor.as_u64().unwrap_or(u64::from(ask.partition))).unwrap();
                let rows: Vec<usize> = (from..20).step_by(2).take(3).collect();
                let cursor = rows.last().map(|last| last + 2).filter(|next| *next < 20);
                Ok(json!({"tasks": rows.into_iter().map(row).collect::<Vec<_>>(), "cursor": cursor}))
            }
            _ => Ok(page(ask, 20, 4)),
        });
        let source = json!({"source": {"url": "https://rows.example/"}, "partitions": 2});
        let id = open(&stack, serde_json::from_value(source).unwrap()).await;
        stack.pass_time(Duration::from_secs(10)).await;
        assert!(partitions(&stack, id).await.iter().all(|it| it.rows > 0 && it.state == PartitionState::Running));
        stack.put_policy(policy(then)).await;
        changed.store(true, Ordering::Relaxed);
        stack.drain().await;
        for it in partitions(&stack, id).await {
            let error = it.error.unwrap();
            assert!(it.state == PartitionState::Failed && error.contains("the `key` of policy `parcel`"), "{error}");
            assert!(error.contains("were shared out among its partitions; put it back until"), "{error}");
        }
        stack.put_policy(policy(first)).await;
        stack.pass_time(Duration::from_secs(10)).await;
        stack.producing.resume(&stack.header(id).await).await.unwrap();
        stack.drain().await;
        assert_eq!(stack.header(id).await.state, FanoutState::Completed);
        assert_eq!(called(&stack), (0..20).map(name).collect::<Vec<_>>());
    }
}

/// How many producers the latest sweep found that failed, and which.
async fn failed_producers(stack: &TestStack) -> Option<(u64, Value)> {
    let record = SweepRecord::from_environment(stack.surroundings()).unwrap();
    let found = record.get().await.unwrap().findings.0.remove(&What::ProducerFailed)?;
    Some((found.count, serde_json::to_value(found.oldest).unwrap()))
}

/// It can be resumed no longer, so nobody needs to look at it, and neither does a sweep.
#[tokio::test(start_paused = true)]
async fn partitions_that_failed_are_reported_once_per_fanout_until_it_is_not_open() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|_| Err(SourceError::for_good("there is no such table")));
    let id = open(&stack, producer(3, &json!({}))).await;
    stack.drain().await;
    stack.sweep().await;
    assert_eq!(failed_producers(&stack).await.map(|found| found.0), Some(1));
    stack.tracking.cancel(id).await.unwrap();
    stack.sweep().await;
    assert_eq!(failed_producers(&stack).await, None);
    assert!(partitions(&stack, id).await.iter().all(|it| it.state == PartitionState::Failed && it.closed));
}

#[tokio::test(start_paused = true)]
async fn a_source_is_left_alone_for_as_long_as_it_asks() {
    let stack = TestStack::with(json!({})).await;
    let busy = AtomicBool::new(true);
    stack.sources.answer(move |ask| match busy.swap(false, Ordering::Relaxed) {
        true => Err(SourceError { retry_after: Duration::from_secs(1_800), ..SourceError::again("busy") }),
        false => Ok(page(ask, 4, 4)),
    });
    let id = open(&stack, producer(1, &json!({}))).await;
    for _ in 0..20 {
        stack.seconds(60).await;
        stack.sweep_now().await;
    }
    stack.drain().await;
    let asked = stack.sources.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].at.since(asked[0].at) >= Duration::from_secs(1_800));
    assert_produced(&stack, id, 0..4).await;
}

/// Rows 3 and 9 are no tasks.
fn with_bad_rows(ask: &fanfold_produce::SourceRequest) -> Value {
    let mut answer = page(ask, 20, 4);
    for row in answer["tasks"].as_array_mut().unwrap() {
        if ["ORD-003", "ORD-009"].iter().any(|bad| row["content"]["order"] == *bad) {
            row["content"]["depot"] = json!({"no": "text"});
        }
    }
    answer
}

#[tokio::test(start_paused = true)]
async fn a_bad_row_fails_its_partition_before_anything_of_its_page_is_taken() {
    let stack = TestStack::with(json!({})).await;
    let repaired = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&repaired);
    stack
        .sources
        .answer(move |ask| Ok(if answers.load(Ordering::Relaxed) { page(ask, 20, 4) } else { with_bad_rows(ask) }));
    let id = open(&stack, producer(1, &json!({}))).await;
    stack.drain().await;
    let failed = &partitions(&stack, id).await[0];
    assert_eq!((failed.state, failed.rows, failed.tries), (PartitionState::Failed, 0, 1));
    let error = failed.error.clone().unwrap();
    assert!(error.starts_with("1 of 4 rows are no tasks") && error.contains("row 3: `target`"), "{error}");
    assert_eq!((tasks(&stack, id).await.len(), stack.sources.asked().len()), (0, 1));
    repaired.store(true, Ordering::Relaxed);
    stack.producing.resume(&stack.header(id).await).await.unwrap();
    stack.drain().await;
    assert_produced(&stack, id, 0..20).await;
}

#[tokio::test(start_paused = true)]
async fn bad_rows_that_are_tolerated_are_left_out_counted_and_shown() {
    for tolerated in [json!(2), json!("10%")] {
        let stack = TestStack::with(json!({})).await;
        stack.sources.answer(|ask| Ok(with_bad_rows(ask)));
        let id = open(&stack, producer(1, &json!({"tolerated_bad_rows": tolerated}))).await;
        stack.drain().await;
        let done = &assert_produced(&stack, id, (0..20).filter(|n| ![3, 9].contains(n))).await[0];
        assert_eq!((done.rows, done.bad, done.dropped), (20, 2, 0));
        assert_eq!(done.bad_rows.iter().map(|bad| bad.row).collect::<Vec<_>>(), [3, 9]);
    }
    for (tolerated, rows) in [(json!(1), 8), (json!("9%"), 16)] {
        let stack = TestStack::with(json!({})).await;
        stack.sources.answer(|ask| Ok(with_bad_rows(ask)));
        let id = open(&stack, producer(1, &json!({"tolerated_bad_rows": tolerated}))).await;
        stack.drain().await;
        let failed = &partitions(&stack, id).await[0];
        assert_eq!((failed.state, failed.rows), (PartitionState::Failed, rows), "{failed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_fails_the_partition_and_says_why() {
    for (answer, why) in [
        (json!([]), "the answer is not {\"tasks\": [...]}"),
        (json!({"tasks": [], "cursor": "x".repeat(3_000)}), "`cursor` has 3002 bytes"),
        (json!({"tasks": [], "cursor": null, "more": true}), "`more`: unknown field"),
    ] {
        let stack = TestStack::with(json!({})).await;
        stack.sources.answer(move |_| Ok(answer.clone()));
        let id = open(&stack, producer(1, &json!({}))).await;
        stack.drain().await;
        let failed = &partitions(&stack, id).await[0];
        assert_eq!(failed.state, PartitionState::Failed);
        assert!(failed.error.as_deref().unwrap().contains(why), "{failed:?}");
        stack.tracking.cancel(id).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_for_a_fanout_that_was_cut_short() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|ask| Ok(page(ask, 20, 4)));
    let id = open(&stack, producer(2, &json!({}))).await;
    stack.tracking.cancel(id).await.unwrap();
    stack.drain().await;
    assert_eq!(stack.sources.asked().len(), 0);
    let fanout = stack.header(id).await;
    assert_eq!((fanout.state, fanout.total, fanout.ended()), (FanoutState::Cancelled, 0, true));
    let partitions = partitions(&stack, id).await;
    assert_eq!(partitions.len(), 2);
    for partition in partitions {
        assert_eq!(partition.state, PartitionState::Failed);
        assert!(partition.error.as_deref().unwrap().contains("is cancelled"), "{partition:?}");
    }
    let refused = stack.producing.resume(&fanout).await.unwrap_err();
    assert!(matches!(refused, ResumeError::NotOpen { state: FanoutState::Cancelled, .. }));
    assert_eq!(stack.sweep().await.partitions, 0);
}

/// One that is cut short while it is read: what was added ends as it does in any fan-out.
#[tokio::test(start_paused = true)]
async fn a_cancel_while_it_is_read_ends_it() {
    let mut totals = Vec::new();
    for pages in 1..5 {
        let stack = Arc::new(TestStack::with(json!({})).await);
        let tracking = stack.tracking.clone();
        let (asked, cancelled) = (std::sync::atomic::AtomicUsize::new(0), Arc::new(tokio::sync::Notify::new()));
        let reached = Arc::clone(&cancelled);
        stack.sources.answer(move |ask| {
            if asked.fetch_add(1, Ordering::Relaxed) == pages {
                reached.notify_one();
            }
            Ok(page(ask, 20, 4))
        });
        let id = open(&stack, producer(1, &json!({}))).await;
        let cancel = async {
            cancelled.notified().await;
            tracking.cancel(id).await.unwrap();
        };
        tokio::join!(stack.drain(), cancel);
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        let fanout = stack.header(id).await;
        assert_eq!((fanout.state, fanout.ended()), (FanoutState::Cancelled, true), "{fanout:?}");
        assert_eq!(fanout.total, fanout.done, "{fanout:?}");
        totals.push(fanout.total);
    }
    assert!(totals.iter().any(|total| *total < 20), "none is cancelled before its last page: {totals:?}");
}

/// A percentage of failures is judged when a fan-out is sealed: by the worker that reads the last page, if all items failed by then.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_source_decides_that_too_many_failed() {
    let fails = ScriptedApi::new(|_| Err(CallError { retriable: false, ..CallError::new(Cause::Status(400), "no") }));
    let stack = TestStack::new(policy(json!({})), fails, Crash::never()).await;
    let late = AtomicBool::new(true);
    stack.sources.answer(move |ask| match ask.cursor.as_u64() {
        Some(8) if late.swap(false, Ordering::Relaxed) => {
            Err(SourceError { retry_after: Duration::from_secs(600), ..SourceError::again("not yet") })
        }
        Some(8) => Ok(json!({"tasks": []})),
        _ => Ok(json!({"tasks": page(ask, 8, 8)["tasks"], "cursor": 8})),
    });
    let tolerated = Some(Tolerance::Percentage(1_000));
    let request = OpenRequest { tolerated_failures: tolerated, ..request(producer(1, &json!({}))) };
    let id = stack.producing.open(&stack.tracking, request, Some("open")).await.unwrap().fanout.id;
    for _ in 0..20 {
        stack.seconds(20).await;
    }
    let before = stack.header(id).await;
    assert_eq!((before.state, before.failed), (FanoutState::Open, 8), "{before:?}");
    stack.drain().await;
    let after = stack.header(id).await;
    assert_eq!((after.state, after.failed, after.missing, after.ended()), (FanoutState::Failed, 8, 0, true));
}

#[tokio::test(start_paused = true)]
async fn a_user_does_not_seal_what_a_producer_seals() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|ask| Ok(page(ask, 20, 4)));
    let id = open(&stack, producer(2, &json!({}))).await;
    assert!(matches!(stack.tracking.seal(id).await, Err(TrackingError::Produced(_))));
    stack.drain().await;
    assert_produced(&stack, id, 0..20).await;
    assert!(stack.tracking.seal(id).await.is_ok(), "sealing again changes nothing");
}

/// It fails its partition, as nothing says which policy to use.
#[tokio::test(start_paused = true)]
async fn a_row_without_a_policy_is_no_task() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|_| Ok(json!({"tasks": [{"kind": "letter", "content": {"order": "x"}}]})));
    let id = open(&stack, producer(1, &json!({}))).await;
    stack.drain().await;
    let failed = &partitions(&stack, id).await[0];
    assert_eq!(failed.state, PartitionState::Failed);
    assert!(failed.error.as_deref().unwrap().contains("there is no policy of this kind"), "{failed:?}");
}
