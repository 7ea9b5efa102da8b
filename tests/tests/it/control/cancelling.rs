//! Tasks that no batch has claimed are cancelled: they are never called.

use std::collections::BTreeSet;

use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::messages::{AckRequest, TaskRequest};
use fanfold::store::fanouts::FanoutState;
use fanfold::store::tasks::Task;
use fanfold::tracking::{ItemState, OpenRequest};
use fanfold_register::Registration;
use fanfold_tests::{QueueName, TestStack, order, policy};
use serde_json::json;
use uuid::Uuid;

use super::{kind, lose_all, target};

async fn task(stack: &TestStack, id: &TaskId) -> Task {
    stack.tasks.get(id).await.unwrap().unwrap()
}

async fn cancel(stack: &TestStack, ids: &[TaskId]) -> usize {
    stack.insist(async || stack.cancelling.cancel(ids.iter().copied()).await).await.len()
}

/// The tasks that were called.
fn called(stack: &TestStack) -> BTreeSet<TaskId> {
    stack.api.seen().iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect()
}

fn single(id: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(id))
}

#[tokio::test(start_paused = true)]
async fn one_alone_and_some_of_a_bundle() {
    let stack = TestStack::with(json!({})).await;
    let alone = stack.register_orders("117", 0..1).await;
    let bundled = stack.register_orders("118", 0..6).await;
    assert_eq!(cancel(&stack, &[alone[0], bundled[1], bundled[4]]).await, 3);
    assert_eq!(cancel(&stack, &[alone[0], bundled[1]]).await, 2, "cancelling them again changes nothing");
    stack.drain().await;
    let rest: BTreeSet<TaskId> = [0, 2, 3, 5].map(|at| bundled[at]).into();
    assert_eq!(called(&stack), rest);
    for id in [alone[0], bundled[1], bundled[4]] {
        let task = task(&stack, &id).await;
        assert!(task.cancelled && task.batch.is_none());
    }
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack), rest);
    stack.assert_locks_free().await;
    assert!(stack.scan("TasksTable").await.iter().all(|item| !item.contains_key("pending")), "nothing is left to do");
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_has_is_not_cancelled() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    assert_eq!(cancel(&stack, &tasks).await, 0);
    assert_eq!(cancel(&stack, &[single(99)]).await, 0, "there is no such task");
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    assert_eq!(cancel(&stack, &tasks).await, 0);
}

/// The policy names fewer lanes by now. What waits in the others is found.
#[tokio::test(start_paused = true)]
async fn a_target_is_cancelled_in_lanes_that_its_policy_does_not_name_any_more() {
    let stack = TestStack::with(json!({"partitions": 8, "key": "content.order"})).await;
    let tasks = stack.register_orders("117", 0..40).await;
    let others = stack.register_orders("118", 40..44).await;
    lose_all(&stack).await;
    stack.put_policy(policy(json!({"partitions": 2, "key": "content.order"}))).await;
    let (mut cancelled, mut after) = (0, None);
    loop {
        let page = stack.cancelling.cancel_page(&target("117"), after.as_ref()).await.unwrap();
        cancelled += page.cancelled;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(cancelled, 40);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack), others.into_iter().collect());
    assert!(task(&stack, &tasks[0]).await.cancelled);
}

/// Either a cancellation or a batch gets the task, however they meet.
#[tokio::test(start_paused = true)]
async fn it_races_with_claims_and_one_of_both_wins() {
    let mut won = [0, 0];
    for n in 0..64_u32 {
        let stack = TestStack::with(json!({"linger": 0, "max_batch": 4, "max_in_flight": 4})).await;
        let tasks = stack.register_orders("117", 0..if n % 2 == 0 { 1 } else { 6 }).await;
        stack.deliver(QueueName::Elect).await;
        let late = async {
            for _ in 0..n % 16 {
                tokio::task::yield_now().await;
            }
            stack.cancelling.cancel(tasks.iter().copied()).await.unwrap()
        };
        let (cancelled, _) = futures::join!(late, stack.deliver(QueueName::Group));
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        let called = called(&stack);
        for id in &tasks {
            let task = task(&stack, id).await;
            assert_eq!(task.cancelled, cancelled.contains(id));
            assert_eq!((task.batch.is_some(), called.contains(id)), (!task.cancelled, !task.cancelled), "{n}");
            won[usize::from(task.cancelled)] += 1;
        }
        stack.assert_locks_free().await;
    }
    assert!(won.iter().all(|won| *won > 10), "{won:?}");
}

#[tokio::test(start_paused = true)]
async fn an_item_counts_as_failed_and_its_fanout_ends() {
    for (items, groups) in [(4, false), (4, true)] {
        let stack = TestStack::with(json!({})).await;
        let (fanout, ids) = if groups {
            let (fanout, _) = stack.open(0, false).await;
            let ids = stack.add(fanout, items, "add").await;
            stack.seal(fanout).await;
            (fanout, ids)
        } else {
            stack.open(items, true).await
        };
        let tasks = stack.register_items(&ids).await;
        assert_eq!(cancel(&stack, &tasks[..2]).await, 2);
        stack.drain().await;
        let header = stack.header(fanout).await;
        assert_eq!((header.state, header.total), (FanoutState::Completed, 4));
        assert_eq!(stack.tracking.item(&ids[0]).await.unwrap(), ItemState::Failed);
        let ended = stack.completions().await;
        assert_eq!((ended.len(), ended[0].succeeded, ended[0].failed, ended[0].missing), (1, 2, 2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_one_of_the_failures_that_a_fanout_tolerates() {
    let stack = TestStack::with(json!({})).await;
    let tolerated_failures = Some(fanfold::store::fanouts::Tolerance::Count(0));
    let (fanout, ids) =
        stack.open_with(OpenRequest { items: 3, seal: true, tolerated_failures, ..OpenRequest::default() }).await;
    let tasks = stack.register_items(&ids).await;
    cancel(&stack, &tasks[..1]).await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Failed);
    stack.drain().await;
    assert!(stack.api.seen().is_empty());
}

/// An item that its user acked keeps that outcome.
#[tokio::test(start_paused = true)]
async fn what_was_acked_before_stays_so() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, ids) = stack.open(2, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.ack(&fanfold_tests::done(&ids[..1])).await;
    cancel(&stack, &tasks).await;
    lose_all(&stack).await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Completed);
    assert_eq!(stack.tracking.item(&ids[0]).await.unwrap(), ItemState::Succeeded);
    stack.ack(&AckRequest::default()).await;
}

#[tokio::test(start_paused = true)]
async fn another_task_may_have_its_key() {
    for policy in ["release", "keep"] {
        let stack = TestStack::with(json!({"key": "content.order", "key_after_failure": policy})).await;
        let new = |id| vec![TaskRequest { id: Some(single(id)), ..order(None, "117", 7) }];
        let register = async |id| stack.register.register(new(id), "r").await.unwrap().remove(0).outcome;
        assert_eq!(register(1).await, Registration::Registered);
        assert_eq!(register(2).await, Registration::Duplicate { of: single(1) });
        assert_eq!(cancel(&stack, &[single(1), single(2)]).await, 1, "a duplicate waits for nothing");
        assert_eq!(register(3).await, Registration::Registered);
        assert_eq!(register(1).await, Registration::Known, "it stays cancelled");
        stack.drain().await;
        assert_eq!(called(&stack), [single(3)].into());
    }
}

/// No batch may claim from a bundle that fills. The tasks of a dead bundle are freed, and wait on their own.
#[tokio::test(start_paused = true)]
async fn tasks_of_bundles_that_fill_or_are_dead() {
    use fanfold::grouping::{Bundle, BundleState, Load, Loads};
    use fanfold::policy::HeadStart;
    use fanfold::store::tasks::NewTask;
    let stack = TestStack::with(json!({})).await;
    let ids: Vec<TaskId> = (1..5).map(single).collect();
    let lane: Lane = "parcel:0:117".parse().unwrap();
    let slots = (ids.iter().copied().collect(), Loads::default());
    let bundle = Bundle::filling(stack.world.uuid(), lane.clone(), slots, stack.world.now());
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    let new = |id: &TaskId| NewTask {
        id: *id,
        lane: lane.clone(),
        content: "{}".to_owned(),
        key: None,
        load: Load::default(),
        head_start: HeadStart::NONE,
        bundle: Some(bundle.id),
    };
    stack.tasks.insert(&ids[..3].iter().map(new).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(cancel(&stack, &ids).await, 0, "it fills");
    assert!(task(&stack, &ids[0]).await.fills);
    // Declared dead, but its worker died before it freed the tasks.
    stack.tasks.bury(&bundle).await.unwrap();
    assert_eq!(cancel(&stack, &ids[..2]).await, 2);
    let dead = stack.tasks.bundles(&[bundle.id], true).await.unwrap();
    assert_eq!(dead[&bundle.id].state, BundleState::Dead);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack), [ids[2]].into(), "the others are freed and called");
    // The worker comes late, and stores the last one for the dead bundle.
    stack.tasks.insert(&[new(&ids[3])]).await.unwrap();
    assert_eq!(cancel(&stack, &ids[3..]).await, 1);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_selection_is_cancelled_page_by_page() {
    for scope in [kind(), target("117")] {
        let stack = TestStack::with(json!({"max_batch": 5, "partitions": 3, "key": "content.order"})).await;
        let mut tasks = Vec::new();
        for n in 0..150 {
            tasks.extend(stack.register_orders("117", n * 10..n * 10 + if n % 3 == 0 { 10 } else { 1 }).await);
        }
        let others = stack.register_orders("118", 5_000..5_020).await;
        lose_all(&stack).await;
        let (mut cancelled, mut after, mut pages) = (0, None, 0);
        loop {
            let page = stack.cancelling.cancel_page(&scope, after.as_ref()).await.unwrap();
            (cancelled, pages) = (cancelled + page.cancelled, pages + 1);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let all = if scope == kind() { tasks.len() + others.len() } else { tasks.len() };
        assert!(cancelled == all as u64 && pages > 2, "{cancelled} of {all} in {pages}");
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(called(&stack).len(), tasks.len() + others.len() - all);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_is_followed_by_a_sweep() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let (fanout, ids) = stack.open(2, true).await;
    let tasks = stack.register_items(&ids).await;
    lose_all(&stack).await;
    // It died right after it had written the note.
    let note = stack.world.uuid();
    stack.tasks.note_cancelling(note, &tasks.iter().copied().collect()).await.unwrap();
    assert_eq!(stack.sweep_now().await.cancelled, 0, "it may be at work");
    assert_eq!(stack.sweep().await.cancelled, 1);
    assert_eq!(stack.sweep().await.cancelled, 0);
    stack.drain().await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Completed);
    assert!(stack.api.seen().is_empty());
}
