//! Reads and writes that are late lose no hint.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::grouping::BundleState;
use fanfold::messages::ElectMessage;
use fanfold::store::locks::Leader;
use fanfold::store::tasks::Tasks;
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, Moment, ScriptedApi, at_every_request, policy};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::*;

/// A table whose second eventually consistent read shows what the first one saw.
#[derive(Debug)]
struct Lags(&'static str, Mutex<Vec<ServiceAnswer>>);

impl Interceptor for Lags {
    fn after<'a>(&'a self, call: &'a ServiceRequest, answer: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        let body = String::from_utf8_lossy(&call.body);
        let consistent = body.contains(r#""ConsistentRead":true"#);
        if call.operation != "BatchGetItem" || consistent || !body.contains(self.0) {
            return ready(Fate::Pass).boxed();
        }
        let mut seen = self.1.lock().unwrap();
        seen.push(answer.clone());
        let fate = if seen.len() == 2 { Fate::Answered(seen[0].clone()) } else { Fate::Pass };
        ready(fate).boxed()
    }
}

async fn lagging(table: &'static str) -> TestStack {
    let crash = Crash::meeting(Arc::new(Lags(table, Mutex::default())));
    TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await
}

async fn elect(stack: &TestStack, message: &ElectMessage) {
    assert!(stack.hand(QueueName::Elect, vec![fanfold_tests::message("elect", message)]).await.is_empty());
}

/// Nobody repeats a wake-up.
#[tokio::test(start_paused = true)]
async fn a_wake_up_does_not_rely_on_a_lock_that_was_held_a_moment_ago() {
    let stack = lagging("LocksTable").await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.take(QueueName::Elect).await;
    let batch = Uuid::from_u128(1);
    let lock = stack.locks.acquire(&lane(), batch, 3).await.unwrap().done().unwrap();
    elect(&stack, &ElectMessage::wake(lane(), stack.world.uuid())).await;
    stack.locks.resign(&Leader { lane: &lane(), batch, epoch: lock.epoch }).await.unwrap();
    elect(&stack, &ElectMessage::wake(lane(), stack.world.uuid())).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// A bundle of three tasks, stored for it, that still fills.
async fn filling(stack: &TestStack) -> (Bundle, Vec<TaskId>) {
    let tasks: Vec<TaskId> = (1..4).map(|id| TaskId::Single(Uuid::from_u128(id))).collect();
    let slots = (tasks.iter().copied().collect(), Loads::default());
    let bundle = Bundle::filling(stack.world.uuid(), lane(), slots, stack.world.now());
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    let (content, load, head_start) = (json!({"depot": "117"}).to_string(), Load::default(), HeadStart::NONE);
    let new = |id: &TaskId| NewTask {
        id: *id,
        lane: lane(),
        content: content.clone(),
        key: None,
        load,
        head_start,
        bundle: Some(bundle.id),
    };
    stack.tasks.insert(&tasks.iter().map(new).collect::<Vec<_>>()).await.unwrap();
    (bundle, tasks)
}

/// An election may see tasks in the bundle from which they were freed a moment ago.
#[tokio::test(start_paused = true)]
async fn tasks_that_were_freed_a_moment_ago_have_their_election() {
    let stack = lagging("TasksTable").await;
    let (bundle, tasks) = filling(&stack).await;
    let waiting = Waiting::alone(tasks.iter().copied());
    let before = Tasks::from_environment(stack.surroundings()).unwrap().taken(&waiting).await.unwrap();
    assert!(before.tasks.is_empty() && stack.waiting(&tasks).await.is_empty());
    stack.tasks.bury(&bundle).await.unwrap();
    elect(&stack, &ElectMessage::left(lane(), waiting, stack.world.uuid())).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// A worker is so slow that the bundle of its tasks is declared dead. Returns its late request.
async fn buried(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash.waiting()).await;
    stack.crash.begin();
    let buries = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let records = stack.scan("TasksTable").await;
        let bundle = |id: &str| id.strip_prefix("bundle:").map(|id| id.parse::<Uuid>().unwrap());
        let ids: Vec<Uuid> = records.iter().filter_map(|item| bundle(item["id"].as_s().unwrap())).collect();
        for bundle in stack.tasks.bundles(&ids, true).await.unwrap().values() {
            if bundle.state == BundleState::Filling {
                stack.tasks.bury(bundle).await.unwrap();
            }
        }
    };
    let (tasks, ()) = futures::join!(stack.register_orders("117", 0..3), buries);
    let late = stack.crash.struck()?;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    Some(late)
}

#[tokio::test(start_paused = true)]
async fn the_lane_of_a_bundle_that_was_declared_dead_is_woken() {
    let late = at_every_request(Moment::Late(Duration::from_secs(60)), buried).await;
    assert!(late.len() > 3, "{late:?}");
}
