//! Dead letters are moved back to the queues of their steps: none is lost, whichever request fails.

use fanfold::control::{DeadLetterError, DeadLetters, DeadQueue, Redriven};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, policy};
use serde_json::json;

fn letters(stack: &TestStack) -> DeadLetters {
    DeadLetters::from_environment(stack.surroundings()).unwrap()
}

/// Sends a message to the dead-letter queue of a step. Returns its id.
async fn bury(stack: &TestStack, queue: QueueName, body: &serde_json::Value) -> String {
    let url = stack.url(queue).replace("Queue", "DeadLetterQueue");
    // By a client whose requests come through.
    let send = async || {
        stack
            .surroundings()
            .sqs
            .send_message()
            .queue_url(&url)
            .message_body(body.to_string())
            .send()
            .await
            .map_err(|error| error.to_string())
    };
    stack.insist(send).await.message_id.unwrap()
}

fn count(queues: &[DeadQueue], step: &str) -> u64 {
    queues.iter().find(|queue| queue.step == step).unwrap().messages
}

async fn moved(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(json!({"linger": 0})), ScriptedApi::always_succeeds(), crash).await;
    let task = |n: usize| json!({"kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{n}")}});
    for n in 0..12 {
        bury(&stack, QueueName::Register, &json!({"tasks": [task(2 * n), task(2 * n + 1)]})).await;
    }
    let letters = letters(&stack);
    stack.insist(async || letters.list().await).await;
    stack.insist(async || letters.redrive("register").await).await;
    // Those that a dead worker had taken are visible again.
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    stack.insist(async || letters.redrive("register").await).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let left = stack.insist(async || letters.list().await).await;
    assert_eq!(count(&left, "register"), 0);
    let batches = stack.all_batches().await;
    let succeeded = batches.iter().map(|batch| batch.succeeded.count()).sum::<u64>();
    // A send that the test repeated may have worked before.
    assert!(succeeded == 24 || (succeeded == 26 && stack.crash.struck().is_some()), "{succeeded}");
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    at_every_request(Moment::Before, async |crash| moved(crash).await).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    at_every_request(Moment::After, async |crash| moved(crash).await).await;
}

/// Some of its tasks were stored before it became a dead letter, under ids that follow from its own.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_letter_that_are_stored_are_not_stored_again() {
    let stack = TestStack::with(json!({"linger": 0})).await;
    let content = json!({"depot": "117", "order": "ORD-1"});
    let id = bury(&stack, QueueName::Register, &json!({"kind": "parcel", "content": content})).await;
    let task = fanfold::messages::TaskRequest { id: None, kind: "parcel".to_owned(), content };
    stack.register.register(vec![task], &id).await.unwrap();
    assert_eq!(count(&letters(&stack).list().await.unwrap(), "register"), 1);
    let redriven = letters(&stack).redrive("register").await.unwrap();
    assert_eq!(redriven, Redriven { moved: 1, ..Redriven::default() });
    stack.drain().await;
    assert_eq!(stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 1);
    assert!(matches!(letters(&stack).redrive("api").await, Err(DeadLetterError::UnknownStep(_))));
}

/// Counts are not idempotent, and a letter may be moved twice.
#[tokio::test(start_paused = true)]
async fn counts_stay_where_they_are() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, ids) = stack.open(1, true).await;
    bury(&stack, QueueName::Ack, &json!({"counts": [{"fanout": fanout, "add": 1}]})).await;
    bury(&stack, QueueName::Ack, &json!({"items": [ids[0]]})).await;
    let redriven = letters(&stack).redrive("ack").await.unwrap();
    assert_eq!(redriven, Redriven { moved: 1, kept: 1, ..Redriven::default() });
    stack.drain().await;
    assert!(stack.header(fanout).await.ended());
    assert_eq!(count(&letters(&stack).list().await.unwrap(), "ack"), 1);
}
