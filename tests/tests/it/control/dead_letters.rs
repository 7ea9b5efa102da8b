//! Dead letters are moved back to the queues of their steps: none is lost, whichever request fails.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use fanfold::control::{DeadLetterError, DeadLetters, DeadQueue, Redriven};
use fanfold::limits::MESSAGE_BYTES_MAX;
use fanfold::messages::RegisterMessage;
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, deaths, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

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

/// The tasks of a letter that is larger than a message may be once they have ids.
const MANY: usize = 3_000;

fn large() -> Value {
    let task = |n: usize| json!({"kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{n}")}});
    let letter = json!({"tasks": (0..MANY).map(task).collect::<Vec<_>>()});
    assert!(letter.to_string().len() < MESSAGE_BYTES_MAX);
    letter
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_ids_make_too_large_is_moved_in_parts() {
    let stack = TestStack::with(json!({"linger": 0, "max_batch": 1_000})).await;
    bury(&stack, QueueName::Register, &large()).await;
    let redriven = letters(&stack).redrive("register").await.unwrap();
    assert_eq!(redriven, Redriven { moved: 1, ..Redriven::default() });
    assert_eq!(stack.backlog().await, 2);
    assert_eq!(count(&letters(&stack).list().await.unwrap(), "register"), 0);
    stack.drain().await;
    assert_eq!(stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), MANY);
}

/// A worker dies at each request of this, also between two parts. Each task has the same id in whatever is sent.
async fn moved_in_parts(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash.waiting()).await;
    bury(&stack, QueueName::Register, &large()).await;
    stack.crash.begin();
    let letters = letters(&stack);
    for _ in 0..2 {
        stack.insist(async || letters.redrive("register").await).await;
        // What a dead worker had taken is visible again.
        tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    }
    assert_eq!(count(&stack.insist(async || letters.list().await).await, "register"), 0);
    let mut ids = BTreeSet::new();
    for delivery in stack.take(QueueName::Register).await {
        let message: RegisterMessage = serde_json::from_str(&delivery.body).unwrap();
        ids.extend(message.tasks().into_iter().map(|task| task.id.unwrap()));
    }
    assert_eq!(ids.len(), MANY);
    stack.crash.struck()
}

deaths!(
    moved_in_parts,
    4,
    a_letter_in_parts_dies_before_a_request: Before,
    a_letter_in_parts_dies_after_a_request: After,
    a_letter_in_parts_loses_an_answer: AnswerLost,
);

/// What cannot be read is moved as it is, if SQS takes it.
#[tokio::test(start_paused = true)]
async fn a_large_letter_that_cannot_be_read_is_moved() {
    let stack = TestStack::with(json!({})).await;
    bury(&stack, QueueName::Register, &json!("x".repeat(MESSAGE_BYTES_MAX))).await;
    let redriven = letters(&stack).redrive("register").await.unwrap();
    assert_eq!(redriven, Redriven { moved: 1, ..Redriven::default() });
    assert_eq!(stack.take(QueueName::Register).await.len(), 1);
}

/// SQS answers each message that is larger than it may be with this error.
#[derive(Debug)]
struct Answers(&'static str);

impl Interceptor for Answers {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let meets = call.operation == "SendMessageBatch" && call.body.len() > MESSAGE_BYTES_MAX;
        let answer = || Fate::Answered(ServiceAnswer::error(400, self.0, "it is refused"));
        ready(if meets { answer() } else { Fate::Pass }).boxed()
    }
}

/// One that is too large stays, and the others are moved. What SQS says for another reason is no fault of the letter.
#[tokio::test(start_paused = true)]
async fn a_letter_that_is_too_large_stays() {
    for (kind, stays) in [
        ("com.amazonaws.sqs#BatchRequestTooLong", true),
        ("InvalidParameterValue", true),
        ("InvalidMessageContents", true),
        ("AccessDeniedException", false),
        ("com.amazonaws.sqs#KmsAccessDenied", false),
        ("com.amazonaws.sqs#KmsThrottled", false),
    ] {
        let crash = Crash::meeting(Arc::new(Answers(kind)));
        let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
        bury(&stack, QueueName::Register, &json!("x".repeat(MESSAGE_BYTES_MAX))).await;
        bury(&stack, QueueName::Register, &json!({"kind": "parcel", "content": {"depot": "117"}})).await;
        match letters(&stack).redrive("register").await {
            Ok(redriven) => {
                assert!(stays, "{kind}");
                assert_eq!(redriven, Redriven { moved: 1, refused: 1, ..Redriven::default() });
                assert_eq!(count(&letters(&stack).list().await.unwrap(), "register"), 1);
            }
            Err(error) => assert!(!stays && matches!(error, DeadLetterError::Service { .. }), "{kind}: {error}"),
        }
    }
}

/// SQS takes all messages of a call but the first.
#[derive(Debug)]
struct RefusesOne;

impl Interceptor for RefusesOne {
    fn after<'a>(&'a self, call: &'a ServiceRequest, answer: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        if call.operation != "SendMessageBatch" {
            return ready(Fate::Pass).boxed();
        }
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap();
        let refused = body["Successful"].as_array_mut().unwrap().remove(0);
        body["Failed"] = json!([{"Id": refused["Id"], "SenderFault": false, "Code": "InternalError"}]);
        ready(Fate::Answered(ServiceAnswer { status: answer.status, body: body.to_string().into() })).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_is_refused_beside_others_stays() {
    let crash = Crash::meeting(Arc::new(RefusesOne));
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    for depot in ["117", "118"] {
        bury(&stack, QueueName::Register, &json!({"kind": "parcel", "content": {"depot": depot}})).await;
    }
    let redriven = letters(&stack).redrive("register").await.unwrap();
    assert_eq!(redriven, Redriven { moved: 1, refused: 1, ..Redriven::default() });
    assert_eq!(count(&letters(&stack).list().await.unwrap(), "register"), 1);
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
