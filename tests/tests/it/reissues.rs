//! Reissues: the failed items of a fan-out that has ended become a new one, each once, and nothing that succeeded is called again.

mod at_once;
mod crashes;
pub(crate) mod cut_short;
mod keys;
mod outstanding;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fanfold::ids::{ItemId, TaskId};
use fanfold::producing::{Corrected, ReissueError, ReissueRequest};
use fanfold::registering::Registrar;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::{ItemState, Listed};
use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, ScriptedApi, TestStack, failed, order, policy};
use serde_json::{Value, json};
use uuid::Uuid;

/// The order of a task.
fn name_of(content: &str) -> String {
    serde_json::from_str::<Value>(content).unwrap()["order"].as_str().unwrap().to_owned()
}

/// While it is broken, every third order fails.
fn truck(broken: &AtomicBool, call: &Call) -> Result<Answer, CallError> {
    let broken = broken.load(Ordering::Relaxed);
    let answer = |member: &fanfold_batch_api::CallMember| {
        let number: usize = name_of(member.content.get()).trim_start_matches("ORD-").parse().unwrap();
        let fails = broken && number.is_multiple_of(3);
        let outcome = if fails { MemberOutcome::Failed } else { MemberOutcome::Succeeded };
        MemberAnswer::new(member.id, outcome)
    };
    Ok(Answer::Members(call.members.iter().map(answer).collect()))
}

/// A stack with such a truck.
async fn stack(changes: Value, crash: Crash) -> (TestStack, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = Arc::clone(&broken);
    let api = ScriptedApi::new(move |call| truck(&breaks, call));
    (TestStack::new(policy(changes), api, crash).await, broken)
}

/// A fan-out of groups with so many items has ended, with a task for each: every third one failed.
async fn ended(stack: &TestStack, groups: &[u32]) -> (Uuid, Vec<ItemId>) {
    let (fanout, mut ids) = stack.open(groups[0], false).await;
    for (at, group) in groups.iter().enumerate().skip(1) {
        ids.extend(stack.add(fanout, *group, &at.to_string()).await);
    }
    stack.register_items(&ids).await;
    stack.seal(fanout).await;
    stack.rest().await;
    let header = stack.header(fanout).await;
    assert_eq!((header.state, header.failed), (FanoutState::Completed, ids.len().div_ceil(3) as u64));
    (fanout, ids)
}

fn registrar(stack: &TestStack) -> Registrar {
    Registrar::from_environment(stack.surroundings()).unwrap()
}

async fn try_reissue(stack: &TestStack, of: Uuid, request: &ReissueRequest, key: &str) -> Result<Uuid, ReissueError> {
    let registrar = registrar(stack);
    let from = (&stack.tracking, &registrar, &stack.tasks);
    Ok(stack.producing.reissue(from, of, request, Some(key)).await?.fanout.id)
}

async fn reissue(stack: &TestStack, of: Uuid, request: &ReissueRequest) -> Uuid {
    stack.insist(async || try_reissue(stack, of, request, "again").await).await
}

/// The contents of the tasks of a fan-out's items, by order.
async fn contents(stack: &TestStack, id: Uuid) -> BTreeMap<String, Value> {
    let fanout = stack.header(id).await;
    let all = [ItemState::Pending, ItemState::Succeeded, ItemState::Failed, ItemState::Missing];
    let page = stack.insist(async || stack.tracking.items_in(&fanout, None, &all, usize::MAX).await).await;
    assert_eq!((page.items.len() as u64, page.next), (fanout.total - fanout.duplicates, None));
    let mut contents = BTreeMap::new();
    for item in page.items {
        let task = stack.tasks.get(&TaskId::Item(item)).await.unwrap().expect("an item has no task");
        let content = task.content.unwrap();
        let before = contents.insert(name_of(&content), serde_json::from_str(&content).unwrap());
        assert_eq!(before, None, "an item was reissued twice");
    }
    contents
}

/// The names of orders.
fn orders(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    numbers.into_iter().map(|n| format!("ORD-{n}")).collect()
}

/// Orders that were called for from a call on, each with the sizes of its batches.
fn called(stack: &TestStack, from: usize) -> BTreeMap<String, Vec<usize>> {
    let mut called = BTreeMap::<String, Vec<usize>>::new();
    for seen in &stack.api.seen()[from..] {
        for member in &seen.call.members {
            called.entry(name_of(member.content.get())).or_default().push(seen.call.members.len());
        }
    }
    called
}

#[tokio::test(start_paused = true)]
async fn each_failed_item_is_in_the_new_fanout_once_and_nothing_else() {
    for groups in [&[7_u32][..], &[10, 1, 25], &[3_000, 2]] {
        let (stack, broken) = stack(json!({"max_batch": 100}), Crash::never()).await;
        let (old, ids) = ended(&stack, groups).await;
        let calls = stack.api.seen().len();
        broken.store(false, Ordering::Relaxed);
        let new = reissue(&stack, old, &ReissueRequest::default()).await;
        stack.rest().await;
        let failed = orders((0..ids.len()).step_by(3));
        let header = stack.header(new).await;
        assert_eq!((header.state, header.total), (FanoutState::Completed, failed.len() as u64));
        assert_eq!(contents(&stack, new).await.into_keys().collect::<BTreeSet<_>>(), failed);
        let called = called(&stack, calls);
        assert!(called.values().all(|calls| calls.len() == 1));
        assert_eq!(called.into_keys().collect::<BTreeSet<_>>(), failed);
        assert_eq!((header.reissue_of(), stack.header(old).await.reissued_as), (Some(old), Some(new)));
        let ends = stack.completions().await;
        assert_eq!(ends.iter().map(|end| (end.fanout, end.total)).collect::<Vec<_>>().len(), 2);
        assert_eq!(reissue(&stack, old, &ReissueRequest::default()).await, new, "a repetition");
    }
}

#[tokio::test(start_paused = true)]
async fn batches_of_a_reissue_are_as_small_as_it_says() {
    for (max_batch, most) in [(1, 1), (4, 4), (99, 10)] {
        let (stack, broken) = stack(json!({"max_batch": 10}), Crash::never()).await;
        let (old, ids) = ended(&stack, &[40]).await;
        let calls = stack.api.seen().len();
        broken.store(false, Ordering::Relaxed);
        reissue(&stack, old, &ReissueRequest { max_batch: Some(max_batch), ..ReissueRequest::default() }).await;
        stack.rest().await;
        let sizes: Vec<usize> = called(&stack, calls).into_values().flatten().collect();
        assert_eq!((sizes.len(), sizes.iter().max()), (ids.len().div_ceil(3), Some(&most)));
    }
}

#[tokio::test(start_paused = true)]
async fn corrected_contents_replace_those_that_failed() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let (old, ids) = ended(&stack, &[9]).await;
    broken.store(false, Ordering::Relaxed);
    let corrected = |at: usize, content: Value| Corrected { id: ids[at], content };
    let right = json!({"depot": "118", "order": "ORD-3", "checked": true});
    let wrong = ReissueRequest {
        contents: vec![corrected(0, json!({"order": 1})), corrected(1, right.clone()), corrected(3, right.clone())],
        max_batch: Some(0),
        ..ReissueRequest::default()
    };
    let Err(ReissueError::Fields(errors)) = try_reissue(&stack, old, &wrong, "again").await else { panic!() };
    assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["max_batch"]);
    let wrong = ReissueRequest { max_batch: None, ..wrong };
    let Err(ReissueError::Fields(errors)) = try_reissue(&stack, old, &wrong, "again").await else { panic!() };
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["contents[1].id", "contents[0].target"], "{errors:?}");
    assert_eq!(stack.header(old).await.reissued_as, None);
    let request = ReissueRequest { contents: vec![corrected(3, right.clone())], ..ReissueRequest::default() };
    let new = reissue(&stack, old, &request).await;
    stack.rest().await;
    let contents = contents(&stack, new).await;
    assert_eq!(contents.keys().cloned().collect::<BTreeSet<_>>(), orders([0, 3, 6]));
    assert_eq!((&contents["ORD-3"], &contents["ORD-6"]), (&right, &json!({"depot": "117", "order": "ORD-6"})));
    assert_eq!(reissue(&stack, old, &request).await, new, "a repetition");
    let other = ReissueRequest { contents: vec![corrected(3, json!({}))], ..ReissueRequest::default() };
    let error = try_reissue(&stack, old, &other, "again").await.unwrap_err();
    assert!(error.to_string().contains("idempotency key"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reissued_says_why() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let none = ReissueRequest::default();
    assert!(matches!(
        try_reissue(&stack, Uuid::nil(), &none, "nobody").await,
        Err(ReissueError::Tracking(fanfold::tracking::TrackingError::UnknownFanout(_)))
    ));
    let (old, _) = ended(&stack, &[7]).await;
    let new = reissue(&stack, old, &none).await;
    assert!(matches!(try_reissue(&stack, new, &none, "early").await, Err(ReissueError::NotEnded { .. })));
    let error = try_reissue(&stack, old, &none, "twice").await.unwrap_err();
    assert!(matches!(&error, ReissueError::Reissued { latest, .. } if *latest == new), "{error}");
    stack.rest().await;
    // It failed again, so its own failed items are reissued; none of those succeed now.
    broken.store(false, Ordering::Relaxed);
    let next = try_reissue(&stack, new, &none, "next").await.unwrap();
    stack.rest().await;
    assert_eq!(stack.header(next).await.total, 3);
    assert!(matches!(try_reissue(&stack, next, &none, "none").await, Err(ReissueError::Nothing { .. })));
    let again = ReissueRequest { again: true, ..none };
    let once_more = try_reissue(&stack, old, &again, "once more").await.unwrap();
    stack.rest().await;
    assert_eq!((stack.header(once_more).await.total, stack.header(old).await.reissued_as), (3, Some(once_more)));
}

/// Items that their own workers ack have no task. They are counted and named, and hold up no other.
#[tokio::test(start_paused = true)]
async fn items_without_a_task_are_counted() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let (old, ids) = stack.open(6, true).await;
    stack.register(vec![order(Some(ids[0]), "117", 0), order(Some(ids[1]), "117", 1)]).await;
    stack.drain().await;
    stack.ack(&failed(&ids[1..])).await;
    stack.rest().await;
    assert_eq!(stack.header(old).await.state, FanoutState::Completed);
    broken.store(false, Ordering::Relaxed);
    let calls = stack.api.seen().len();
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total), (FanoutState::Completed, 1));
    let partition = stack.producing.partitions(&header).await.unwrap().remove(0);
    assert_eq!((partition.rows, partition.bad), (5, 4));
    let problem = &partition.bad_rows[0].problem;
    assert!(problem.contains(&ids[2].to_string()) && problem.contains("no task"), "{problem}");
    assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders([0]));
}

/// A task that succeeded is not called again, though somebody acked its item as failed before.
#[tokio::test(start_paused = true)]
async fn what_succeeded_is_not_reissued_whatever_its_item_says() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let (old, ids) = stack.open(4, true).await;
    stack.ack(&failed(&ids[1..2])).await;
    stack.register_items(&ids).await;
    stack.rest().await;
    broken.store(false, Ordering::Relaxed);
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    assert_eq!(contents(&stack, new).await.into_keys().collect::<BTreeSet<_>>(), orders([0, 3]));
    let partition = stack.producing.partitions(&stack.header(new).await).await.unwrap().remove(0);
    assert!(partition.bad_rows[0].problem.contains("its task succeeded"), "{:?}", partition.bad_rows);
}

/// Tasks of a fan-out that was cut short were never called: they are reissued if that is asked for.
#[tokio::test(start_paused = true)]
async fn missing_items_are_reissued_if_asked_for() {
    let (stack, broken) = stack(json!({}), Crash::never()).await;
    let (old, ids) = stack.open(5, false).await;
    stack.register_items(&ids).await;
    stack.tracking.cancel(old).await.unwrap();
    stack.rest().await;
    stack.minutes(20).await;
    let header = stack.header(old).await;
    assert!(header.ended(), "{header:?}");
    assert!(stack.api.seen().is_empty());
    broken.store(false, Ordering::Relaxed);
    let error = try_reissue(&stack, old, &ReissueRequest::default(), "again").await.unwrap_err();
    assert!(error.to_string().contains("5 are missing"), "{error}");
    let new = reissue(&stack, old, &ReissueRequest { missing: true, ..ReissueRequest::default() }).await;
    stack.rest().await;
    assert_eq!(contents(&stack, new).await.into_keys().collect::<BTreeSet<_>>(), orders(0..5));
    assert!(called(&stack, 0).values().all(|calls| calls.len() == 1));
}

/// Of several requests at once one is fulfilled, and the others learn which.
#[tokio::test(start_paused = true)]
async fn of_two_requests_at_once_the_other_learns_what_stands() {
    let (stack, _) = stack(json!({}), Crash::never()).await;
    let (old, _) = ended(&stack, &[7]).await;
    let none = ReissueRequest::default();
    let both = tokio::join!(try_reissue(&stack, old, &none, "one"), try_reissue(&stack, old, &none, "other"));
    let ((Ok(new), Err(error)) | (Err(error), Ok(new))) = both else { panic!("{both:?}") };
    assert!(matches!(error, ReissueError::Reissued { latest, .. } if latest == new), "{error:?}");
    let same = tokio::join!(try_reissue(&stack, old, &none, "one"), try_reissue(&stack, old, &none, "one"));
    assert!(same.0.is_ok() == same.1.is_ok(), "{same:?}");
}

#[tokio::test(start_paused = true)]
async fn groups_are_counted_some_at_a_time() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(9, false).await;
    for n in 0..6_u32 {
        stack.add(fanout, 10 + n, &n.to_string()).await;
    }
    let header = stack.header(fanout).await;
    for at_once in [1, 2, 3, 7, 100] {
        let (mut listed, mut calls) = (Listed::default(), 0);
        loop {
            let all;
            (listed, all) = stack.tracking.count_listed(&header, listed, at_once).await.unwrap();
            calls += 1;
            if all {
                break;
            }
        }
        assert_eq!((listed.items, calls), (header.total, 7_usize.div_ceil(at_once)), "{at_once} at once");
    }
}
