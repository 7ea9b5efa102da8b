//! Batches that wait on for enough members.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, deaths, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{assert_batched, calls, heal, parcel, register, register_each};

/// A policy whose batches have five members, or have waited for ten minutes beside the linger.
fn enough(changes: Value) -> Value {
    changed(json!({"linger": 6, "min_batch": 5, "min_batch_wait": 600, "max_batch": 8, "max_in_flight": 2}), changes)
}

async fn parcels(stack: &TestStack, name: &str, tasks: usize) -> Vec<TaskId> {
    register(stack, name, (0..tasks).map(|n| parcel(json!({"n": n}))).collect()).await
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_too_small_waits_until_enough_came() {
    for linger in [0, 6] {
        let stack = TestStack::with(enough(json!({"linger": linger}))).await;
        let mut tasks = parcels(&stack, "two", 2).await;
        stack.seconds(60).await;
        tasks.extend(parcels(&stack, "one", 1).await);
        stack.seconds(60).await;
        assert_eq!(stack.claimed(&tasks).await, 0);
        tasks.extend(parcels(&stack, "more", 2).await);
        stack.seconds(12).await;
        assert_batched(&stack, &tasks).await;
        assert_eq!(stack.api.seen().len(), 1, "{:?}", calls(&stack, "n"));
        // The message for which the leader waited finds its batch formed.
        let others = parcels(&stack, "others", 1).await;
        stack.seconds(300).await;
        assert_eq!(stack.claimed(&others).await, 0);
        stack.drain().await;
        stack.assert_settled(&[tasks, others].concat(), 8).await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_when_its_time_is_over() {
    let stack = TestStack::with(enough(json!({}))).await;
    let begun = stack.world.now();
    let tasks = parcels(&stack, "two", 2).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
    assert!(stack.world.now().since(begun) >= Duration::from_secs(600));
}

#[tokio::test(start_paused = true)]
async fn one_that_has_enough_lingers_no_longer_than_without() {
    let stack = TestStack::with(enough(json!({"linger": 60}))).await;
    let tasks = parcels(&stack, "five", 5).await;
    stack.seconds(45).await;
    assert_eq!(stack.claimed(&tasks).await, 0, "more may come");
    stack.seconds(30).await;
    assert_batched(&stack, &tasks).await;
    // And a full one does not linger.
    let tasks = parcels(&stack, "eight", 8).await;
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
}

/// What is full for another reason goes, however small it is.
#[tokio::test(start_paused = true)]
async fn a_small_batch_that_is_full_goes() {
    let stack = TestStack::with(enough(json!({"weight": "content.kg", "max_weight": 10}))).await;
    let heavy = || parcel(json!({"kg": 6}));
    let tasks = register(&stack, "heavy", vec![heavy(), heavy()]).await;
    stack.seconds(24).await;
    assert_eq!((stack.claimed(&tasks).await, stack.api.seen().len()), (1, 1), "the other one waits for more");
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
}

#[tokio::test(start_paused = true)]
async fn with_quiet_and_flush_when_each_counts() {
    let all = json!({"linger": 60, "quiet": 10, "flush_when": "has(content.last)"});
    let stack = TestStack::with(enough(all)).await;
    let mut tasks = parcels(&stack, "two", 2).await;
    stack.seconds(90).await;
    assert_eq!(stack.claimed(&tasks).await, 0, "it is quiet, but they are not enough");
    tasks.extend(register(&stack, "last", vec![parcel(json!({"last": true}))]).await);
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
    let tasks = parcels(&stack, "five", 5).await;
    stack.seconds(30).await;
    assert_batched(&stack, &tasks).await;
}

/// A message that is late names tasks that batches have claimed.
#[tokio::test(start_paused = true)]
async fn tasks_of_other_batches_do_not_count() {
    let stack = TestStack::with(enough(json!({"linger": 1}))).await;
    let single = |n: usize| vec![parcel(json!({"n": n}))];
    let mut tasks = register_each(&stack, "five", (0..5).flat_map(single).collect()).await;
    let late = stack.take(QueueName::Elect).await;
    stack.hand(QueueName::Elect, late.clone()).await;
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
    let others = register_each(&stack, "four", (5..9).flat_map(single).collect()).await;
    stack.seconds(30).await;
    stack.hand(QueueName::Elect, late).await;
    assert_eq!(stack.deliver(QueueName::Group).await, 1, "the leader looks");
    assert_eq!(stack.claimed(&others).await, 0);
    tasks.extend(register(&stack, "fifth", single(9)).await);
    stack.seconds(12).await;
    assert_batched(&stack, &[tasks.clone(), others.clone()].concat()).await;
    stack.drain().await;
    stack.assert_settled(&[tasks, others].concat(), 8).await;
}

/// An index that lags behind: what it showed the last two times, it shows beside what it shows now. A leader may look
/// twice.
#[derive(Debug, Default)]
struct Lags(Mutex<[Vec<Value>; 2]>);

impl Interceptor for Lags {
    fn after<'a>(&'a self, call: &'a ServiceRequest, answer: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        if call.operation != "Query" {
            return ready(Fate::Pass).boxed();
        }
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
        let now = body["Items"].as_array().unwrap().clone();
        let mut before = self.0.lock().unwrap();
        let mut shown: Vec<Value> = Vec::new();
        for item in before.iter().flatten().chain(&now) {
            if !shown.contains(item) {
                shown.push(item.clone());
            }
        }
        let last = std::mem::take(&mut before[1]);
        *before = [last, now];
        body["Items"] = shown.into();
        ready(Fate::Answered(ServiceAnswer { status: answer.status, body: body.to_string().into() })).boxed()
    }
}

/// The index may show tasks for a while that batches have claimed.
#[tokio::test(start_paused = true)]
async fn tasks_that_the_index_still_shows_do_not_count() {
    let lags = Crash::meeting(Arc::new(Lags::default()));
    let stack = TestStack::new(policy(enough(json!({"linger": 0}))), ScriptedApi::always_succeeds(), lags).await;
    let single = |n: usize| vec![parcel(json!({"n": n}))];
    let mut tasks = register_each(&stack, "five", (0..5).flat_map(single).collect()).await;
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
    let sixth = register(&stack, "sixth", single(5)).await;
    stack.seconds(30).await;
    assert_eq!((stack.claimed(&sixth).await, stack.api.seen().len()), (0, 1));
    stack.drain().await;
    tasks.extend(sixth);
    stack.assert_settled(&tasks, 8).await;
}

/// The strongly consistent reads.
#[derive(Debug, Default)]
struct Reads(Mutex<Vec<String>>);

impl Interceptor for Reads {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let body = String::from_utf8_lossy(&call.body);
        if call.operation == "BatchGetItem" && body.contains(r#""ConsistentRead":true"#) {
            self.0.lock().unwrap().push(body.into_owned());
        }
        ready(Fate::Pass).boxed()
    }
}

/// Each task that is read is charged for: what the index shows is read only if it seems to be enough.
#[tokio::test(start_paused = true)]
async fn what_waits_is_not_read_at_each_look() {
    let reads = Arc::new(Reads::default());
    let crash = Crash::meeting(Arc::<Reads>::clone(&reads));
    let stack = TestStack::new(policy(enough(json!({"linger": 0}))), ScriptedApi::always_succeeds(), crash).await;
    let is_read = |id: &TaskId| reads.0.lock().unwrap().iter().any(|read| read.contains(&id.to_string()));
    let mut tasks = parcels(&stack, "first", 1).await;
    stack.seconds(12).await;
    reads.0.lock().unwrap().clear();
    for n in 1..4 {
        tasks.extend(parcels(&stack, &format!("next-{n}"), 1).await);
        stack.seconds(12).await;
    }
    assert!(is_read(&tasks[1]), "its message names it");
    assert!(!is_read(&tasks[0]), "there are too few in any case");
    tasks.extend(parcels(&stack, "fifth", 1).await);
    stack.seconds(12).await;
    assert_batched(&stack, &tasks).await;
    assert!(is_read(&tasks[0]));
}

/// The leader's message names tasks that were cancelled since.
#[tokio::test(start_paused = true)]
async fn cancelled_tasks_do_not_count() {
    let stack = TestStack::with(enough(json!({"linger": 30}))).await;
    let tasks = register_each(&stack, "five", (0..5).map(|n| parcel(json!({"n": n}))).collect()).await;
    stack.seconds(12).await;
    assert_eq!(stack.cancelling.cancel(tasks[..3].to_vec()).await.unwrap().len(), 3);
    stack.seconds(60).await;
    assert_eq!((stack.claimed(&tasks[3..]).await, stack.api.seen().len()), (0, 0), "two wait for three more");
    // Who finds nobody at the end of the linger makes room.
    stack.cancelling.cancel(tasks[3..].to_vec()).await.unwrap();
    stack.seconds(20).await;
    let more = parcels(&stack, "more", 5).await;
    stack.seconds(60).await;
    assert_batched(&stack, &more).await;
}

/// No message is sent while nothing comes, and none for what comes while the leader lingers.
#[tokio::test(start_paused = true)]
async fn a_leader_that_waits_on_does_not_poll() {
    let stack = TestStack::with(enough(json!({"linger": 30}))).await;
    let tasks = parcels(&stack, "two", 2).await;
    stack.pass(&[QueueName::Elect]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let more = parcels(&stack, "one", 1).await;
    stack.pass(&[QueueName::Elect]).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 0, "the leader lingers");
    stack.take(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(stack.deliver(QueueName::Group).await, 1);
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 0, "it looked once");
    stack.drain().await;
    stack.assert_settled(&[tasks, more].concat(), 8).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_drops_the_field_waits_no_longer_from_the_next_look_on() {
    let stack = TestStack::with(enough(json!({}))).await;
    let mut tasks = parcels(&stack, "two", 2).await;
    stack.seconds(30).await;
    stack.put_policy(policy(json!({"linger": 6, "max_batch": 8}))).await;
    tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    tasks.extend(parcels(&stack, "one", 1).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
    let begun = stack.world.now();
    tasks.extend(parcels(&stack, "next", 2).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
    assert!(stack.world.now().since(begun) < Duration::from_secs(60));
}

/// Its message is on its way, and a sweep does not take it for lost.
#[tokio::test(start_paused = true)]
async fn a_leader_that_waits_on_is_not_silent() {
    let stack = TestStack::with(enough(json!({}))).await;
    let tasks = parcels(&stack, "two", 2).await;
    stack.minutes(4).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
}

/// A leader whose message is lost may be silent for all of its time, and is woken then.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_message_is_lost_is_woken() {
    let stack = TestStack::with(enough(json!({"min_batch_wait": 120}))).await;
    let tasks = parcels(&stack, "two", 2).await;
    stack.pass(&[QueueName::Elect]).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1);
    stack.take(QueueName::Elect).await;
    stack.minutes(1).await;
    assert_eq!(stack.claimed(&tasks).await, 0);
    stack.minutes(6).await;
    stack.assert_settled(&tasks, 8).await;
}

async fn run(crash: Crash) -> Option<String> {
    let changes = enough(json!({"min_batch_wait": 60}));
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = parcels(&stack, "two", 2).await;
    stack.seconds(18).await;
    tasks.extend(parcels(&stack, "four", 4).await);
    stack.seconds(18).await;
    tasks.extend(parcels(&stack, "one", 1).await);
    heal(&stack, &tasks, 8).await;
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
