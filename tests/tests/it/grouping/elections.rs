//! Elections: what many workflows of many lanes ask for at once.

use std::time::Duration;

use fanfold::messages::ElectMessage;
use fanfold::waiting::Waiting;
use fanfold_batch_api::Answer;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, message, policy};
use serde_json::{Value, json};

use super::lane;

fn elect(stack: &TestStack, at: &str, waiting: Waiting) -> ElectMessage {
    ElectMessage::stored(lane(at), waiting, stack.world.uuid())
}

/// DynamoDB refuses a read that names one item twice; the lanes of an invocation must not suffer for one another.
#[tokio::test(start_paused = true)]
async fn a_task_named_by_two_lanes_does_not_stop_all_elections() {
    let stack = TestStack::with(json!({})).await;
    let used = [stack.register_orders("117", 0..1).await, stack.register_orders("900", 0..1).await].concat();
    stack.drain().await;
    assert_eq!(used.len(), 2);
    let task = stack.register_orders("117", 1..2).await;
    let innocent = stack.register_orders("331", 0..1).await;
    stack.take(QueueName::Elect).await;
    let deliveries = vec![
        message("a", &elect(&stack, "parcel:0:117", Waiting::alone(task.clone()))),
        message("b", &elect(&stack, "parcel:0:900", Waiting::alone(task))),
        message("c", &elect(&stack, "parcel:0:331", Waiting::alone(innocent))),
    ];
    assert_eq!(stack.hand(QueueName::Elect, deliveries).await, Vec::<String>::new());
}

/// A wake-up names no tasks. It counts beside a workflow all of whose tasks are claimed.
#[tokio::test(start_paused = true)]
async fn a_wake_up_is_heard_beside_a_workflow_that_is_done() {
    let stack = TestStack::with(json!({})).await;
    let done = stack.waiting(&stack.register_orders("117", 0..2).await).await;
    stack.drain().await;
    stack.register_orders("117", 2..4).await;
    stack.take(QueueName::Elect).await;
    let wake_up = message("wake-up", &elect(&stack, "parcel:0:117", Waiting::default()));
    let loser = message("loser", &elect(&stack, "parcel:0:117", done));
    stack.hand(QueueName::Elect, vec![wake_up, loser]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1, "there was no leader");
}

/// A wake-up does not know how many tasks wait: its leader looks at once.
#[tokio::test(start_paused = true)]
async fn a_leader_made_by_a_wake_up_does_not_linger_with_a_full_batch() {
    let stack = TestStack::with(json!({"linger": 600, "max_batch": 5})).await;
    let tasks = stack.register_orders("117", 0..5).await;
    stack.take(QueueName::Elect).await;
    let wake_up = message("wake-up", &elect(&stack, "parcel:0:117", Waiting::default()));
    assert!(stack.hand(QueueName::Elect, vec![wake_up]).await.is_empty());
    stack.deliver(QueueName::Group).await;
    assert_eq!(stack.claimed(&tasks).await, 5);
}

/// A lane that is woken because there is room in flight again forms full batches at once.
#[tokio::test(start_paused = true)]
async fn full_batches_do_not_linger() {
    // A batch API that takes some seconds.
    let api = ScriptedApi::new(|call| match call.attempt {
        1 => Err(fanfold_batch_api::CallError::again("503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let changes = json!({"linger": 600, "max_batch": 5, "max_in_flight": 1});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let begun = stack.world.now();
    let tasks = stack.register_orders("117", 0..40).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    let took = stack.world.now().since(begun);
    assert!(took < Duration::from_secs(600), "eight full batches took {took:?}");
}

/// SQS refuses a message with U+FFFE or U+FFFF in it. A target may hold one.
#[tokio::test(start_paused = true)]
async fn messages_hold_only_what_sqs_takes() {
    let stack = TestStack::with(json!({})).await;
    stack.register_orders("\u{ffff}", 0..1).await;
    let messages = stack.take(QueueName::Elect).await;
    assert_eq!(messages.len(), 1);
    for message in messages {
        assert!(!message.body.contains(['\u{fffe}', '\u{ffff}']), "SQS answers InvalidMessageContents");
    }
}

/// Requests so far. `Crash` counts them; its debug form shows them.
fn requests(stack: &TestStack) -> u64 {
    let text = format!("{:?}", stack.crash);
    let seen = text.split("seen: ").nth(1).unwrap();
    seen[..seen.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

async fn requests_of_a_lane(tasks: usize) -> u64 {
    // A batch API that takes some ten seconds.
    let api = ScriptedApi::new(|call| match call.attempt {
        1 => Err(fanfold_batch_api::CallError::again("503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let changes = json!({"max_batch": 20, "max_in_flight": 1, "backoff": {"base": 10, "max": 10}});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let mut ids = Vec::new();
    for from in (0..tasks).step_by(500) {
        ids.extend(stack.register_orders("117", from..from + 500).await);
    }
    stack.drain().await;
    assert_eq!(stack.claimed(&ids).await, tasks);
    requests(&stack)
}

/// Read units that it takes to form and call the batches of a lane, of which many may be in flight.
async fn reads_of_a_lane(changes: &Value, tasks: usize) -> f64 {
    let stack = TestStack::with(changed(json!({"max_batch": 20, "max_in_flight": 1_000}), changes.clone())).await;
    let mut ids = Vec::new();
    for from in (0..tasks).step_by(500) {
        ids.extend(stack.register_orders("117", from..from + 500).await);
    }
    let before = stack.usage().read_units;
    stack.drain().await;
    let reads = stack.usage().read_units - before;
    assert_eq!(stack.claimed(&ids).await, tasks);
    reads
}

/// A leader must not read all that it leaves for the next one: reads would grow with the square of the lane.
#[tokio::test(start_paused = true)]
async fn reads_of_a_lane_grow_with_its_tasks() {
    for changes in [json!({}), json!({"min_batch": 2, "min_batch_wait": 5})] {
        let (small, large) = (reads_of_a_lane(&changes, 1_000).await, reads_of_a_lane(&changes, 8_000).await);
        assert!(large < small * 10.0, "{changes}: 1,000 tasks take {small} read units, 8,000 take {large}");
    }
}

/// Losers must not read their tasks at every try: requests would grow with the square of the lane.
#[tokio::test(start_paused = true)]
async fn requests_of_a_lane_grow_with_its_tasks() {
    let (small, large) = (requests_of_a_lane(500).await, requests_of_a_lane(4_000).await);
    assert!(large < small * 10, "500 tasks take {small} requests, 4,000 take {large}");
}
