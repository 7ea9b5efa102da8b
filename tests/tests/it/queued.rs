//! Batch APIs behind an SQS queue: calls are messages, whose outcomes are posted. An endpoint answers as SQS does.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::BatchApi;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold_batch_api::{Call, CallMember, Caller, Callers, Cause, Request};
use fanfold_handle::Handle;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, outcome, policy};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hostile::server::{Deed, Heard, Server};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:books";

/// A stack whose batch API is a queue of SQS, which the server stands for. In real time.
async fn stack(server: &Server, changes: Value) -> TestStack {
    let own = json!({
        "linger": 0, "backoff": {"base": 0, "max": 0}, "max_attempts": 3,
        "batch_api": {"sqs": QUEUE, "timeout": "60s", "answers_within": "1h"}
    });
    let changes = policy(fanfold_tests::changed(own, changes));
    let mut stack = TestStack::new(changes, ScriptedApi::always_succeeds(), Crash::never()).await;
    let callers = Arc::new(Callers::local(variables(server)));
    stack.handle = Arc::new(Handle::from_environment(stack.surroundings(), callers).unwrap());
    stack
}

/// The variables of a process whose SQS is the server.
fn variables(server: &Server) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    let endpoint = server.url.replace("/trucks", "");
    move |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        "AWS_ENDPOINT_URL_SQS" => Some(endpoint.clone()),
        _ => None,
    }
}

fn sent() -> Deed {
    Deed::answer("200 OK", "", json!({"MessageId": Uuid::nil(), "MD5OfMessageBody": "x"}).to_string())
}

/// An error as SQS's JSON protocol has it.
fn refusal(status: &str, code: &str) -> Deed {
    let body = json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": "no"});
    Deed::answer(status, "Content-Type: application/x-amz-json-1.0\r\n", body.to_string())
}

/// A worker's view of a message: its body, and an attribute.
fn call(heard: &Heard) -> Value {
    serde_json::from_str(heard.body["MessageBody"].as_str().unwrap()).unwrap()
}

fn attribute<'a>(heard: &'a Heard, name: &str) -> &'a str {
    heard.body["MessageAttributes"][name]["StringValue"].as_str().unwrap()
}

/// Delivers messages until so many calls were made, and once more: no other call follows at once. Their delivery is over then, so
/// what follows from them is written.
async fn called(stack: &TestStack, server: &Server, calls: usize) -> Vec<Heard> {
    for _ in 0..600 {
        let enough = server.heard().len() >= calls;
        for queue in QueueName::STEPS {
            stack.deliver(queue).await;
        }
        let heard = server.heard();
        if enough {
            assert_eq!(heard.len(), calls);
            return heard;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} of {calls} calls were made", server.heard().len());
}

/// The batch, once all its members have their outcomes.
async fn ended(stack: &TestStack) -> Batch {
    for _ in 0..60 {
        stack.pass_time(Duration::from_millis(500)).await;
        let batch = stack.only_batch().await;
        if batch.status == BatchStatus::Done {
            return batch;
        }
    }
    panic!("the batch does not end");
}

#[tokio::test]
async fn a_queue_gets_the_call_as_a_message_and_outcomes_are_posted() {
    let server = Server::start(|_, _| sent()).await;
    let stack = stack(&server, json!({})).await;
    let (_, ids) = stack.open(3, true).await;
    stack.register_items(&ids).await;
    let heard = called(&stack, &server, 1).await.remove(0);
    assert!(heard.head.starts_with("POST / HTTP/1.1\r\n"), "{}", heard.head);
    assert!(
        heard.head.contains("/eu-west-1/sqs/aws4_request") && heard.head.contains("AmazonSQS.SendMessage"),
        "{}",
        heard.head
    );
    assert_eq!(heard.body["QueueUrl"], "https://sqs.eu-west-1.amazonaws.com/123456789012/books");
    let call = call(&heard);
    let members = call["members"].as_array().unwrap();
    let batch: Uuid = attribute(&heard, "Fanfold-Batch").parse().unwrap();
    assert_eq!((members.len(), &call["batch_id"]), (3, &json!(batch)));
    assert!(attribute(&heard, "Idempotency-Key").starts_with(&batch.to_string()));
    assert_eq!(attribute(&heard, "Fanfold-Attempt"), "1");
    assert_eq!(stack.only_batch().await.later.as_ref().map(|later| later.poll.is_some()), Some(false), "it is open");
    let said: Vec<Value> = members.iter().map(|member| json!({"id": member["id"], "outcome": "succeeded"})).collect();
    assert_eq!(stack.post(batch, attribute(&heard, "Fanfold-Token"), &said).await["open"], 0);
    ended(&stack).await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, server.heard().len()), (1, 3, 1));
}

/// The message may have been sent: a worker may see the call twice, with one key and the same bytes, and either token counts.
#[tokio::test]
async fn a_message_whose_answer_is_lost_is_sent_again_under_the_same_key() {
    for lost in [Deed::Die, refusal("500 Internal Server Error", "InternalFailure")] {
        let server = Server::start(move |number, _| if number == 0 { lost.clone() } else { sent() }).await;
        let stack = stack(&server, json!({})).await;
        let tasks = stack.register_orders("117", 0..2).await;
        let heard = called(&stack, &server, 2).await;
        assert_eq!(heard[0].body["MessageBody"], heard[1].body["MessageBody"]);
        assert_eq!(attribute(&heard[0], "Idempotency-Key"), attribute(&heard[1], "Idempotency-Key"));
        assert_eq!((attribute(&heard[0], "Fanfold-Attempt"), attribute(&heard[1], "Fanfold-Attempt")), ("1", "2"));
        let batch = stack.only_batch().await;
        for (heard, id) in heard.iter().zip(&tasks) {
            stack.post(batch.id, attribute(heard, "Fanfold-Token"), &[outcome(*id, "succeeded")]).await;
        }
        let batch = ended(&stack).await;
        assert_eq!((batch.succeeded.count(), server.heard().len()), (2, 2));
    }
}

#[tokio::test]
async fn a_worker_that_asks_for_it_gets_the_call_again() {
    let server = Server::start(|_, _| sent()).await;
    let stack = stack(&server, json!({"batch_api": {"sqs": format!("{QUEUE}.fifo"), "answers_within": "1h"}})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    called(&stack, &server, 1).await;
    let batch = stack.only_batch().await.id;
    let again: Vec<Value> = tasks.iter().map(|id| outcome(*id, "retry")).collect();
    stack.post(batch, attribute(&server.heard()[0], "Fanfold-Token"), &again).await;
    let heard = called(&stack, &server, 2).await;
    assert_eq!(heard[0].body["MessageGroupId"], heard[1].body["MessageGroupId"], "the lane");
    assert_ne!(heard[0].body["MessageDeduplicationId"], heard[1].body["MessageDeduplicationId"], "SQS drops neither");
    assert_ne!(heard[0].body["MessageGroupId"], json!(batch));
}

/// Nothing is wrong with the members: they wait, their attempts do not count, and the kind stands still.
#[tokio::test]
async fn what_sqs_refuses_for_every_call_makes_the_kind_wait() {
    for (status, code) in [
        ("403 Forbidden", "AccessDeniedException"),
        ("400 Bad Request", "QueueDoesNotExist"),
        ("400 Bad Request", "ThrottlingException"),
    ] {
        let server = Server::start(move |_, _| refusal(status, code)).await;
        let stack = stack(&server, json!({"max_attempts": 1})).await;
        for depot in ["117", "200", "300"] {
            stack.register_orders(depot, 0..1).await;
        }
        called(&stack, &server, 3).await;
        for batch in stack.all_batches().await {
            assert_eq!((batch.failed.count(), batch.refused), (0, 1), "{code}: {batch:?}");
            assert!(batch.last_error.as_ref().is_some_and(|error| error.contains(code)), "{batch:?}");
        }
        let gate = stack.gates.get_many(&["parcel"]).await.unwrap().pop().unwrap();
        assert!(gate.stopped.is_some(), "{code}: three refusals in a row stop the kind");
    }
}

/// A batch is not formed so large; but a policy may have become another one since.
#[tokio::test]
async fn too_large_a_call_is_not_sent_and_is_split() {
    let server = Server::start(|_, _| sent()).await;
    let batch_api = json!({"sqs": QUEUE, "answers_within": "1h"});
    let batch_api: BatchApi = serde_json::from_value(batch_api).unwrap();
    let content = || RawValue::from_string(format!("\"{}\"", "x".repeat(524_200))).unwrap();
    let member = |n| CallMember { id: TaskId::Single(Uuid::from_u128(n)), content: content() };
    let (kind, target) = ("parcel".to_owned(), "117".to_owned());
    let call = Call { batch_id: Uuid::nil(), kind, attempt: 1, target, members: (0..2).map(member).collect() };
    let request = Request::new(&batch_api, &call).unwrap().with_token(Some("1.abc".to_owned()));
    let error = Callers::local(variables(&server)).call(&batch_api, request).await.unwrap_err();
    assert!(error.cause == Cause::NotSent && error.cause.may_be_one_member(), "{error}");
    assert!(error.message.contains("at most 1048576 are allowed as a message of SQS"), "{error}");
    assert_eq!(server.heard().len(), 0);
}
