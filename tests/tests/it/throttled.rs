//! Partitions and tables that take no more: work becomes slow, none is lost, and everything drains. The figures are in docs/SCALING.md; they
//! are printed with `--nocapture`.

mod patient;

use std::cell::Cell;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fanfold::ids::{TaskId, expand};
use fanfold::limits::{ATTEMPT_MARGIN, BATCH_API_TIMEOUT_MAX};
use fanfold::messages::RegisterRequest;
use fanfold::store::places::Party;
use fanfold_batch_api::{Answer, CallError, Cause};
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, Partitions, QueueName, ScriptedApi, TestStack, Throughput, done, order, policy, until};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A tenth of DynamoDB's limits: so a tenth of the load shows what the load would do.
fn tenth() -> Throughput {
    Throughput::of_a_new_table(0.1)
}

/// Registers orders of these depots by the queue, a hundred in a message, and lets the stack work until all are handled.
/// Returns whether DynamoDB refused anything meanwhile.
async fn work(changes: Value, limits: Throughput, orders: usize, depots: usize, parameters: &[(&str, &str)]) -> bool {
    let api = ScriptedApi::slow(|_| Duration::from_millis(50), |_| Ok(Answer::AllSucceeded));
    let (stack, partitions) = TestStack::throttled(changes, api, limits, parameters).await;
    for first in (0..orders).step_by(100) {
        let tasks = (first..orders.min(first + 100)).map(|n| order(None, &(n % depots).to_string(), n)).collect();
        stack.send(QueueName::Register, json!(RegisterRequest { tasks })).await;
    }
    let (pumps, begun) = (stack.pumps(), Instant::now());
    let handled = || stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>();
    let minute = Cell::new(Instant::now());
    until(async || {
        if minute.get().elapsed() > Duration::from_secs(60) {
            minute.set(Instant::now());
            let _ = stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await;
        }
        handled() >= orders
    })
    .await;
    let rate = orders as f64 / begun.elapsed().as_secs_f64();
    until(async || stack.backlog().await == 0).await;
    pumps.into_iter().for_each(drop);
    report(&partitions, orders, rate);
    let tasks: Vec<TaskId> = stack.all_batches().await.iter().flat_map(|batch| batch.members.ids().to_vec()).collect();
    assert_eq!((tasks.len(), handled()), (orders, orders), "each is handled once");
    // A place whose release was refused is free when its lease ends.
    tokio::time::sleep(BATCH_API_TIMEOUT_MAX + ATTEMPT_MARGIN).await;
    stack.assert_settled(&tasks, 1_000).await;
    !partitions.throttled().is_empty()
}

fn report(partitions: &Partitions, orders: usize, rate: f64) {
    println!("{orders} in all, {rate:.0} a second; refused: {:?}", partitions.throttled());
}

/// Everything comes at once to tables that were just made.
#[tokio::test(start_paused = true)]
async fn a_burst_on_cold_tables_drains() {
    assert!(work(json!({"key": "content.order", "max_batch": 100}), tenth(), 1_000, 10, &[]).await);
}

/// One lane whose batches are small: its lock is written several times for each of them, and takes that.
#[tokio::test(start_paused = true)]
async fn a_hot_lane_drains() {
    let limits = Throughput { table_writes: f64::INFINITY, ..tenth() };
    assert!(!work(json!({"max_batch": 10, "max_in_flight": 20}), limits, 2_000, 1, &[]).await);
}

/// The same tasks in ten lanes: now their calls meet at the places of their kind.
#[tokio::test(start_paused = true)]
async fn ten_lanes_that_meet_at_the_places_of_their_kind_drain() {
    let limits = Throughput { table_writes: f64::INFINITY, ..tenth() };
    assert!(work(json!({"max_batch": 10, "max_in_flight": 20}), limits, 2_000, 10, &[]).await);
}

/// The same where the kind has 75 places, in five records: none of these is asked for more than it takes.
#[tokio::test(start_paused = true)]
async fn ten_lanes_whose_kind_has_many_places_are_not_throttled() {
    let limits = Throughput { table_writes: f64::INFINITY, ..tenth() };
    let many = [("BATCH_API_CONCURRENCY", "100")];
    assert!(!work(json!({"max_batch": 10, "max_in_flight": 20}), limits, 2_000, 10, &many).await);
}

/// Refuses every change of the kind's gate while this is so.
#[derive(Debug)]
struct Throttles(Arc<AtomicBool>);

impl Interceptor for Throttles {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        let refuses = call.operation == "UpdateItem"
            && body["Key"].to_string().contains(&Party::Kind("parcel".to_owned()).key())
            && self.0.load(Ordering::Relaxed);
        let refusal = || Fate::Answered(ServiceAnswer::error(400, "ThrottlingException", "throttled"));
        ready(if refuses { refusal() } else { Fate::Pass }).boxed()
    }
}

/// Its message does not fail, and so need not wait for its visibility timeout.
#[tokio::test(start_paused = true)]
async fn a_batch_that_gets_no_place_because_of_throttling_comes_again() {
    let throttled = Arc::new(AtomicBool::new(true));
    let crash = Crash::meeting(Arc::new(Throttles(Arc::clone(&throttled))));
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let messages = stack.take(QueueName::Handle).await;
    assert_eq!(messages.len(), 1);
    assert!(stack.hand(QueueName::Handle, messages).await.is_empty());
    assert!(stack.api.seen().is_empty(), "nothing is called without a place");
    throttled.store(false, Ordering::Relaxed);
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.assert_settled(&tasks, 10).await;
}

/// Nor does its attempt count, if a batch API that refuses every call cannot be noted in the gate.
#[tokio::test(start_paused = true)]
async fn a_refused_call_does_not_count_although_the_gate_is_throttled() {
    let throttled = Arc::new(AtomicBool::new(false));
    let crash = Crash::meeting(Arc::new(Throttles(Arc::clone(&throttled))));
    let throttles = Arc::clone(&throttled);
    let api = ScriptedApi::new(move |call| {
        throttles.store(call.attempt == 1, Ordering::Relaxed);
        match call.attempt {
            1 => Err(CallError::new(Cause::Status(503), "busy")),
            _ => Ok(Answer::AllSucceeded),
        }
    });
    let stack = TestStack::new(policy(json!({"max_attempts": 1})), api, crash).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    throttled.store(false, Ordering::Relaxed);
    stack.drain().await;
    // Its first place is free when its lease ends.
    tokio::time::sleep(BATCH_API_TIMEOUT_MAX + ATTEMPT_MARGIN).await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.refused), (3, 1));
}

/// Many producers add few items each to one fan-out: its header is written by each of them.
#[tokio::test(start_paused = true)]
async fn a_hot_header_counts_every_item() {
    let (stack, partitions) =
        TestStack::throttled(json!({}), ScriptedApi::always_succeeds(), Throughput::of_a_new_table(0.1), &[]).await;
    let (fanout, _) = stack.open(0, false).await;
    let begun = Instant::now();
    let adds = join_all((0..200).map(async |n: u32| {
        let key = n.to_string();
        loop {
            if let Ok(groups) = stack.tracking.add(fanout, 1, Some(&key)).await {
                return groups;
            }
        }
    }));
    let groups: Vec<_> = adds.await.into_iter().flatten().collect();
    report(&partitions, groups.len(), groups.len() as f64 / begun.elapsed().as_secs_f64());
    assert!(!partitions.throttled().is_empty());
    stack.seal(fanout).await;
    let items: Vec<_> = expand(fanout, &groups).collect();
    for items in items.chunks(50) {
        while stack.ack.apply(&done(items)).await.is_err() {}
    }
    stack.sweep().await;
    stack.drain().await;
    let completions = stack.completions().await;
    assert_eq!((completions.len(), completions[0].total), (1, 200));
}
