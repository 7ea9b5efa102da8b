//! Keys that span fan-outs: within a policy's scope each is accepted once, and a task that is never called keeps none.

mod between;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::store::tasks::{Key, KeyRequest};
use fanfold::tracking::OpenRequest;
use fanfold_batch_api::{Answer, CallError, Cause};
use fanfold_register::Registration;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, order, policy};
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

fn scoped() -> Value {
    policy(json!({"key": "content.order", "scope": "content.push"}))
}

async fn stack() -> TestStack {
    TestStack::new(scoped(), ScriptedApi::always_succeeds(), Crash::never()).await
}

async fn opened(stack: &TestStack, name: &str, items: u32) -> (Uuid, Vec<ItemId>) {
    let request = OpenRequest { items, seal: true, ..OpenRequest::default() };
    stack.open_as(&request, name).await
}

/// An order of a push.
fn pushed(id: TaskId, push: &str, number: usize) -> TaskRequest {
    let mut task = TaskRequest { id: Some(id), ..order(None, "117", number) };
    task.content["push"] = json!(push);
    task
}

fn alone(id: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(id))
}

/// Registers a task; its producer repeats what fails.
async fn register(stack: &TestStack, task: TaskRequest) -> Registration {
    let request = task.id.map(|id| id.to_string()).unwrap_or_default();
    stack.insist(async || stack.register.register(vec![task.clone()], &request).await).await.remove(0).outcome
}

/// The orders that the batch API was called for, and for how many tasks. A call whose worker died is repeated.
fn called(stack: &TestStack) -> BTreeMap<String, usize> {
    let mut called: BTreeMap<String, BTreeSet<TaskId>> = BTreeMap::new();
    for member in stack.api.seen().iter().flat_map(|seen| &seen.call.members) {
        let content: Value = serde_json::from_str(member.content.get()).unwrap();
        called.entry(format!("{} {}", content["push"], content["order"])).or_default().insert(member.id);
    }
    called.into_iter().map(|(order, tasks)| (order, tasks.len())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_is_accepted_once_within_its_scope() {
    let stack = stack().await;
    let ((one, first), (_, second)) = (opened(&stack, "one", 2).await, opened(&stack, "two", 2).await);
    let owner = TaskId::Item(first[0]);
    assert_eq!(register(&stack, pushed(owner, "spring", 1)).await, Registration::Registered);
    for other in [TaskId::Item(first[1]), TaskId::Item(second[0]), alone(1)] {
        assert_eq!(register(&stack, pushed(other, "spring", 1)).await, Registration::Duplicate { of: owner });
    }
    assert_eq!(register(&stack, pushed(TaskId::Item(second[1]), "autumn", 1)).await, Registration::Registered);
    stack.drain().await;
    assert_eq!(
        called(&stack),
        BTreeMap::from([("\"autumn\" \"ORD-1\"".into(), 1), ("\"spring\" \"ORD-1\"".into(), 1)])
    );
    let headers = [stack.header(one).await, stack.header(second[0].fanout).await];
    assert!(headers.iter().all(|fanout| fanout.complete() && fanout.duplicates == 1), "{headers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_cannot_be_evaluated_is_a_fault_of_the_task() {
    let stack = stack().await;
    let refused = stack.register.register(vec![order(None, "117", 1)], "r").await.unwrap_err().to_string();
    assert!(refused.contains("scope"), "{refused}");
    assert!(called(&stack).is_empty());
}

/// Sixty-four registrants bring the same orders at once, in an order of their own, each for a fan-out of its own.
async fn race(orders: usize, chunk: usize) {
    let stack = stack().await;
    let registrants = (0..64_usize).map(|n| {
        let stack = &stack;
        async move {
            let (fanout, items) = opened(stack, &n.to_string(), orders as u32).await;
            let (mut accepted, mut duplicates) = (0, 0);
            let mut numbers: Vec<usize> = (0..orders).collect();
            fastrand::Rng::with_seed(n as u64).shuffle(&mut numbers);
            for (numbers, at) in numbers.chunks(chunk).zip(0..) {
                let task = |(number, item): (&usize, &ItemId)| pushed(TaskId::Item(*item), "spring", *number);
                let tasks: Vec<TaskRequest> = numbers.iter().zip(&items[at * chunk..]).map(task).collect();
                let request = format!("{n}-{at}");
                for task in stack.insist(async || stack.register.register(tasks.clone(), &request).await).await {
                    match task.outcome {
                        Registration::Duplicate { .. } => duplicates += 1,
                        _ => accepted += 1,
                    }
                }
            }
            (fanout, accepted, duplicates)
        }
    });
    let registered = join_all(registrants).await;
    stack.drain().await;
    let called = called(&stack);
    assert_eq!((called.len(), called.values().max()), (orders, Some(&1)));
    assert_eq!(registered.iter().map(|(_, accepted, _)| accepted).sum::<usize>(), orders);
    let mut all = 0;
    for (fanout, _, duplicates) in registered {
        let header = stack.header(fanout).await;
        assert!(header.complete() && header.duplicates == duplicates, "{header:?}");
        all += duplicates;
    }
    assert_eq!(all, 63 * orders as u64);
    println!("64 registrants of the same {orders} keys: {} tasks, {all} duplicates", called.len());
}

#[tokio::test(start_paused = true)]
async fn registrants_that_race_share_the_orders_out() {
    race(100, 10).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "640,000 registrations take minutes: `just registrants`"]
async fn registrants_that_race_share_many_orders_out() {
    let orders = std::env::var("RACED_KEYS").map_or(10_000, |keys| keys.parse().unwrap());
    race(orders, 100).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_a_cancelled_fanout_releases_its_key_at_once() {
    let stack = stack().await;
    let ((cancelled, first), (other, second)) = (opened(&stack, "one", 1).await, opened(&stack, "two", 2).await);
    register(&stack, pushed(TaskId::Item(first[0]), "spring", 1)).await;
    let before = register(&stack, pushed(TaskId::Item(second[0]), "spring", 1)).await;
    assert_eq!(before, Registration::Duplicate { of: TaskId::Item(first[0]) });
    stack.tracking.cancel(cancelled).await.unwrap();
    let after = register(&stack, pushed(TaskId::Item(second[1]), "spring", 1)).await;
    assert_eq!(after, Registration::Registered);
    stack.drain().await;
    let members: Vec<TaskId> =
        stack.api.seen().iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect();
    assert_eq!(members, [TaskId::Item(second[1])]);
    assert!(stack.header(other).await.complete());
    assert_eq!(stack.header(cancelled).await.missing, 1);
    let late = register(&stack, pushed(TaskId::Item(first[0]), "spring", 1)).await;
    assert_eq!(late, Registration::Known, "it takes nothing back");
}

/// A request died between its task's key and its task, and is repeated when its fan-out is cancelled: by then a task of another
/// fan-out took the key over, which is cancelled too.
#[tokio::test(start_paused = true)]
async fn what_lost_its_key_before_it_was_stored_takes_nothing_back() {
    let stack = stack().await;
    let ((one, first), (two, second)) = (opened(&stack, "one", 1).await, opened(&stack, "two", 1).await);
    let (lost, other) = (TaskId::Item(first[0]), TaskId::Item(second[0]));
    let key = Key { scope: "parcel=spring".to_owned(), value: "ORD-1".to_owned() };
    stack.tasks.take_keys(&[KeyRequest { key, owner: lost }]).await.unwrap();
    stack.tracking.cancel(one).await.unwrap();
    assert_eq!(register(&stack, pushed(other, "spring", 1)).await, Registration::Registered);
    stack.tracking.cancel(two).await.unwrap();
    assert_eq!(register(&stack, pushed(lost, "spring", 1)).await, Registration::Duplicate { of: other });
    assert_eq!(register(&stack, pushed(alone(1), "spring", 1)).await, Registration::Registered);
    stack.drain().await;
    let members: Vec<TaskId> =
        stack.api.seen().iter().flat_map(|seen| &seen.call.members).map(|member| member.id).collect();
    assert_eq!(members, [alone(1)]);
}

/// Two that had one key, one after the other, are left out by one batch, which releases their keys.
#[tokio::test(start_paused = true)]
async fn what_had_one_key_one_after_the_other_is_left_out_by_one_batch() {
    let stack = stack().await;
    for name in ["one", "two"] {
        let (fanout, items) = opened(&stack, name, 1).await;
        let registered = register(&stack, pushed(TaskId::Item(items[0]), "spring", 1)).await;
        assert_eq!(registered, Registration::Registered);
        stack.tracking.cancel(fanout).await.unwrap();
    }
    stack.drain().await;
    let batches = stack.all_batches().await;
    assert_eq!(batches.iter().map(|batch| batch.dropped.count()).collect::<Vec<_>>(), [2]);
    assert_eq!(register(&stack, pushed(alone(1), "spring", 1)).await, Registration::Registered);
    stack.drain().await;
    assert_eq!(called(&stack), BTreeMap::from([("\"spring\" \"ORD-1\"".into(), 1)]));
}

/// An order whose call failed, and whose fan-out is cancelled before the next; whether the same order is accepted then.
async fn after_a_call(cause: Cause) -> Registration {
    let api = ScriptedApi::new(move |_| Err(CallError { retriable: true, ..CallError::new(cause, "no") }));
    let stack = TestStack::new(scoped(), api, Crash::never()).await;
    let (cancelled, items) = opened(&stack, "one", 1).await;
    register(&stack, pushed(TaskId::Item(items[0]), "spring", 1)).await;
    while stack.api.seen().is_empty() {
        stack.seconds(3).await;
    }
    stack.tracking.cancel(cancelled).await.unwrap();
    let owner = TaskId::Item(items[0]);
    let meanwhile = register(&stack, pushed(alone(1), "spring", 1)).await;
    assert_eq!(meanwhile, Registration::Duplicate { of: owner }, "its call may be under way");
    stack.drain().await;
    register(&stack, pushed(alone(2), "spring", 1)).await
}

#[tokio::test(start_paused = true)]
async fn what_its_batch_leaves_out_releases_its_key_unless_a_call_may_have_worked() {
    assert_eq!(after_a_call(Cause::Status(500)).await, Registration::Registered);
    assert!(matches!(after_a_call(Cause::Silence).await, Registration::Duplicate { .. }));
}

/// The first of two orders is left out by its batch, as its fan-out was cancelled; then it is sent again. Returns the struck
/// request.
async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(scoped(), ScriptedApi::new(|_| Ok(Answer::AllSucceeded)), crash).await;
    let ((cancelled, first), (other, second)) = (opened(&stack, "one", 2).await, opened(&stack, "two", 2).await);
    let both = |items: &[ItemId]| {
        items.iter().zip(0..).map(|(item, number)| pushed(TaskId::Item(*item), "spring", number)).collect()
    };
    stack.register(both(&first)).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stack.deliver(queue).await;
    }
    stack.insist(async || stack.tracking.cancel(cancelled).await).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.register(both(&second)).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let (called, struck) = (called(&stack), stack.crash.struck());
    let silent: u64 = stack.all_batches().await.iter().map(|batch| batch.silent.count()).sum();
    assert!(called.values().all(|times| *times == 1), "{called:?} {struck:?}");
    // A worker that died in an attempt may have called: such an order keeps its key.
    assert_eq!(called.len() as u64 + silent, 2, "{called:?} {struck:?}");
    let header = stack.header(other).await;
    assert!(header.complete() && header.duplicates == silent, "{header:?} {struck:?}");
    struck
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_leaves_members_out_may_die_at_any_request() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        let struck = at_every_request(moment, run).await;
        assert!(struck.len() > 20, "{moment:?}: {struck:?}");
    }
}
