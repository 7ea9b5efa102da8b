//! Notices of ends to AWS: to queues and event buses, to tasks of Step Functions and to durable functions that wait for them.

mod endpoint;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use fanfold::clock::Timestamp;
use fanfold::config::Surroundings;
use fanfold::delivery::Step;
use fanfold::ids::TaskId;
use fanfold::messages::{About, NotifyMessage};
use fanfold::notice::{Event, Notice};
use fanfold::policy::{NoticesQueue, Span};
use fanfold::store::fanouts::{IdleLimit, NotifyOn, Tolerance};
use fanfold_local::{Fate, Interceptor, ServiceRequest};
use fanfold_notify::Notify;
use fanfold_tests::message;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::batches::failing_to;
use super::*;
use endpoint::{Aws, Heard};

const CALLBACK: &str = "Ab+/09==";

#[tokio::test]
async fn a_task_of_step_functions_succeeds_when_its_fanout_completes() {
    let aws = Aws::answering([]).await;
    let fanout = aws.complete(json!({"task_token": "AAAA+/="})).await;
    let header = aws.next_try(fanout).await;
    assert!(header.notice.delivered.is_some());
    let heard = aws.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].header("x-amz-target"), "AWSStepFunctions.SendTaskSuccess");
    assert_eq!((heard[0].header("content-type"), heard[0].path.as_str()), ("application/x-amz-json-1.0", "/"));
    let body = heard[0].json();
    assert_eq!(body["taskToken"], "AAAA+/=");
    let output: Notice = serde_json::from_str(body["output"].as_str().unwrap()).unwrap();
    assert_eq!(output, Notice::ended(&header));
    let at = header.notice.delivered.unwrap();
    assert!(heard[0].is_signed_for("states", at) && !heard[0].is_signed_for("events", at));
}

#[tokio::test]
async fn a_task_of_step_functions_fails_when_its_fanout_ends_otherwise() {
    let (aws, token) = (Aws::answering([]).await, json!({"task_token": "AAAA"}));
    let cancelled = (aws.cancel(token.clone()).await, "fanout.cancelled", "1 succeeded, 0 failed");
    let failed = (aws.fail(token.clone()).await, "fanout.failed", "0 succeeded, 1 failed");
    let expired = (aws.expire(token).await, "fanout.expired", "1 succeeded, 0 failed");
    for (fanout, error, counts) in [cancelled, failed, expired] {
        assert!(aws.next_try(fanout).await.notice.delivered.is_some(), "{error}");
        let heard = aws.heard().pop().unwrap();
        assert_eq!(heard.header("x-amz-target"), "AWSStepFunctions.SendTaskFailure");
        let cause = format!("of 3 items {counts}, 0 were duplicates and 2 were not done (/fanouts/{fanout})");
        assert_eq!(heard.json(), json!({"taskToken": "AAAA", "error": error, "cause": cause}));
    }
}

#[tokio::test]
async fn a_durable_function_is_called_back() {
    let aws = Aws::answering([]).await;
    let completed = aws.complete(json!({"durable_callback": CALLBACK})).await;
    let completed = aws.next_try(completed).await;
    let cancelled = aws.cancel(json!({"durable_callback": CALLBACK})).await;
    let cancelled = aws.next_try(cancelled).await;
    let heard = aws.heard();
    let paths: Vec<&str> = heard.iter().map(|heard| heard.path.as_str()).collect();
    let path = "/2025-12-01/durable-execution-callbacks/Ab%2B%2F09%3D%3D";
    assert_eq!(paths, [format!("{path}/succeed"), format!("{path}/fail")]);
    assert_eq!(serde_json::from_slice::<Notice>(&heard[0].body).unwrap(), Notice::ended(&completed));
    let error = heard[1].json();
    assert_eq!(error["ErrorType"], "fanout.cancelled");
    assert!(error["ErrorMessage"].as_str().unwrap().starts_with("of 3 items 1 succeeded"));
    let data: Notice = serde_json::from_str(error["ErrorData"].as_str().unwrap()).unwrap();
    assert_eq!(data, Notice::ended(&cancelled));
    assert!(heard[1].is_signed_for("lambda", cancelled.notice.delivered.unwrap()));
}

#[tokio::test]
async fn an_event_bus_gets_the_data_as_detail() {
    let aws = Aws::answering([(200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}))]).await;
    let fanout = aws.complete(json!({"event_bus": "mine"})).await;
    let header = aws.next_try(fanout).await;
    let heard = aws.heard();
    assert_eq!(heard[0].header("x-amz-target"), "AWSEvents.PutEvents");
    assert!(heard[0].is_signed_for("events", header.notice.delivered.unwrap()));
    let mut body = heard[0].json();
    let detail: Value = serde_json::from_str(body["Entries"][0]["Detail"].take().as_str().unwrap()).unwrap();
    let entry = json!({"EventBusName": "mine", "Source": "fanfold", "DetailType": "fanout.completed", "Detail": null,
        "Resources": [format!("/fanouts/{fanout}")]});
    assert_eq!(body, json!({"Entries": [entry]}));
    let notice = serde_json::to_value(Notice::ended(&header)).unwrap();
    let mut expected = notice["data"].clone();
    expected["notice"] = notice["id"].clone();
    assert_eq!(detail, expected);
}

#[tokio::test]
async fn an_event_bus_gets_progress_and_waiting_tasks_get_success() {
    let aws = Aws::answering([(200, json!({"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}))]).await;
    let (fanout, ids) = aws.open_on(json!({"event_bus": "mine"}), json!({"progress": ["60%"]})).await;
    aws.stack.ack.apply(&done(&ids[..2])).await.unwrap();
    assert!(aws.next_try(fanout).await.notice.delivered.is_some());
    let entry = aws.heard()[0].json()["Entries"][0].clone();
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&entry["DetailType"], &detail["percentage"], &detail["done"]),
        (&json!("fanout.progress"), &json!("60%"), &json!(2))
    );
    for destination in [json!({"task_token": "AAAA"}), json!({"durable_callback": CALLBACK})] {
        let ends = json!({"ends": ["succeeded", "completed", "failed", "cancelled", "expired"]});
        let (fanout, ids) = aws.open_on(destination, ends).await;
        aws.stack.ack.apply(&done(&ids)).await.unwrap();
        assert!(aws.next_try(fanout).await.notice.delivered.is_some());
    }
    let heard = aws.heard();
    let output: Notice = serde_json::from_str(heard[1].json()["output"].as_str().unwrap()).unwrap();
    assert_eq!(heard[1].header("x-amz-target"), "AWSStepFunctions.SendTaskSuccess");
    assert!(matches!(output.event, Event::FanoutSucceeded(_)) && heard[2].path.ends_with("/succeed"));
}

/// `PutEvents` answers 200 even if it took nothing.
#[tokio::test]
async fn an_event_that_is_refused_is_sent_again_under_the_same_id() {
    let refused =
        json!({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]});
    let aws = Aws::answering([(200, refused)]).await;
    let fanout = aws.complete(json!({"event_bus": "mine"})).await;
    let header = aws.next_try(fanout).await;
    assert_eq!(header.notice.error.as_deref(), Some("events refused the event: ThrottlingException: slow"));
    assert!(!header.notice.over());
    assert!(aws.next_try(fanout).await.notice.delivered.is_some());
    let bodies: Vec<Bytes> = aws.heard().into_iter().map(|heard| heard.body).collect();
    assert_eq!((bodies.len(), &bodies[0]), (2, &bodies[1]));
}

#[tokio::test]
async fn a_queue_of_the_users_gets_the_notice() {
    let aws = Aws::answering([]).await;
    let queue = aws.stack.url(QueueName::Notices);
    let fanout = aws.complete(json!({"sqs": queue})).await;
    let header = aws.next_try(fanout).await;
    assert!(header.notice.delivered.is_some());
    let got = aws.stack.take(QueueName::Notices).await;
    assert_eq!(serde_json::from_str::<Notice>(&got[0].body).unwrap(), Notice::ended(&header));
    let gone = aws.complete(json!({"sqs": "arn:aws:sqs:us-east-1:000000000000:none"})).await;
    let header = aws.next_try(gone).await;
    assert!(!header.notice.over() && header.notice.due.is_some(), "somebody may make it: {:?}", header.notice);
}

/// Of very many failures there are several notices, each of which fits a message.
#[tokio::test(start_paused = true)]
async fn a_queue_of_the_users_gets_failed_tasks() {
    // The queue of notices stands for one of the user's: it has a URL like any other.
    let url = TestStack::with(json!({})).await.url(QueueName::Notices).to_owned();
    let (stack, batch) = failing_to(2_000, json!({"sqs": url})).await;
    stack.drain().await;
    let messages = stack.take(QueueName::Notices).await;
    let got: Vec<Notice> = messages.iter().map(|message| serde_json::from_str(&message.body).unwrap()).collect();
    assert!(got.len() > 1, "{} notices", got.len());
    assert_eq!(got.iter().map(|notice| notice.id).collect::<BTreeSet<_>>().len(), got.len(), "each once");
    let mut failed: Vec<TaskId> = Vec::new();
    for notice in &got {
        let Event::TasksFailed(part) = &notice.event else { panic!("of failures: {notice:?}") };
        assert_eq!((part.batch, notice.source.clone()), (batch.id, format!("/batches/{}", batch.id)));
        failed.extend(part.failures.iter().map(|failure| failure.id));
    }
    assert_eq!(failed, batch.members.ids());
    assert!(stack.batches.get(batch.id).await.unwrap().unwrap().notice.delivered.is_some());
    stack.assert_locks_free().await;
}

#[tokio::test]
async fn an_event_bus_gets_failed_tasks() {
    let (stack, batch) = failing_to(3, json!({"event_bus": "mine"})).await;
    let taken = json!({"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]});
    let aws = Aws::over(stack, Arc::default(), [(200, taken)]).await;
    aws.stack.clock.skip(5 * MINUTE);
    let deliveries = aws.stack.take(QueueName::Notify).await;
    assert!(aws.notify.deliver(deliveries).await.is_empty());
    let heard = aws.heard();
    assert_eq!((heard.len(), heard[0].header("x-amz-target")), (1, "AWSEvents.PutEvents"));
    let notice = aws.stack.batches.get(batch.id).await.unwrap().unwrap().notice;
    assert!(heard[0].is_signed_for("events", notice.delivered.unwrap()));
    let entry = heard[0].json()["Entries"][0].clone();
    let named = (&entry["EventBusName"], &entry["DetailType"], &entry["Resources"][0]);
    assert_eq!(named, (&json!("mine"), &json!("tasks.failed"), &json!(format!("/batches/{}", batch.id))));
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    let ids: Vec<Value> = batch.members.ids().iter().map(|id| json!(id)).collect();
    let failures: Vec<Value> = detail["failures"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!((&detail["batch"], failures), (&json!(batch.id), ids));
    assert!(detail["notice"].as_str().is_some_and(|id| id.parse::<Uuid>().is_ok()));
    aws.stack.assert_locks_free().await;
}

/// The task waits no more: no further try can be better.
#[tokio::test]
async fn a_task_that_no_longer_waits_is_given_up_at_once() {
    for (destination, code) in [
        (json!({"task_token": "AAAA"}), "com.amazonaws.swf.service.v2.model#TaskTimedOut"),
        (json!({"task_token": "AAAA"}), "TaskDoesNotExist"),
        (json!({"task_token": "AAAA"}), "InvalidToken"),
        (json!({"durable_callback": CALLBACK}), "CallbackTimeoutException"),
    ] {
        let aws = Aws::answering([(400, json!({"__type": code, "message": "too late"}))]).await;
        let fanout = aws.complete(destination.clone()).await;
        let header = aws.next_try(fanout).await;
        assert!(header.notice.given_up.is_some(), "{code}");
        let error = header.notice.error.unwrap();
        assert!(error.contains("400 Bad Request") && error.ends_with(": too late"), "{error}");
        let dead = aws.stack.dead(QueueName::Notify).await;
        assert_eq!(dead.len(), 1);
        assert!(!dead[0].contains("AAAA") && !dead[0].contains(CALLBACK), "a token is not shown: {}", dead[0]);
        aws.next_try(fanout).await;
        assert_eq!(aws.heard().len(), 1);
    }
}

#[tokio::test]
async fn what_may_get_better_is_tried_again() {
    for (status, code) in [(400, "AccessDeniedException"), (400, "ThrottlingException"), (500, ""), (503, "")] {
        let aws = Aws::answering([(status, json!({"__type": code}))]).await;
        let fanout = aws.complete(json!({"task_token": "AAAA"})).await;
        let header = aws.next_try(fanout).await;
        assert!(!header.notice.over() && header.notice.due.is_some(), "{status} {code}");
        assert!(aws.next_try(fanout).await.notice.delivered.is_some());
        assert_eq!(aws.answers.lock().unwrap().len(), 0);
    }
}

/// A worker that is dead from its first call of AWS until it is revived.
#[derive(Debug, Default)]
struct DeadOnceHeard {
    heard: Arc<Mutex<Vec<Heard>>>,
    revived: AtomicBool,
}

impl Interceptor for DeadOnceHeard {
    fn before<'a>(&'a self, _: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let dead = !self.heard.lock().unwrap().is_empty() && !self.revived.load(Ordering::Relaxed);
        async move { if dead { Fate::Lost } else { Fate::Pass } }.boxed()
    }
}

#[tokio::test]
async fn a_worker_that_dies_between_delivery_and_mark_is_followed_by_another_that_sends_the_same() {
    let dies = Arc::new(DeadOnceHeard::default());
    let crash = Crash::meeting(Arc::<DeadOnceHeard>::clone(&dies));
    let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]}});
    let stack = TestStack::new(policy, fanfold_tests::ScriptedApi::always_succeeds(), crash).await;
    let aws = Aws::over(stack, Arc::clone(&dies.heard), []).await;
    let fanout = aws.complete(json!({"task_token": "AAAA"})).await;
    aws.deliver(fanout, None).await;
    dies.revived.store(true, Ordering::Relaxed);
    let notice = aws.stack.header(fanout).await.notice;
    assert!(notice.tries == 1 && !notice.over() && notice.due.is_none(), "{notice:?}");
    aws.next_try(fanout).await;
    let header = aws.next_try(fanout).await;
    assert!(header.notice.delivered.is_some() && header.notice.tries == 2);
    let heard = aws.heard();
    assert_eq!((heard.len(), &heard[0].body), (2, &heard[1].body));
}

/// The same step delivers to the stack's own queue, although the others wait.
#[tokio::test]
async fn without_credentials_only_what_needs_them_waits() {
    let stack = stack().await;
    let open = async |notify: Destination| {
        let request = OpenRequest { items: 0, seal: true, notify: Some(notify), ..OpenRequest::default() };
        stack.tracking.open(request, None).await.unwrap().fanout.id
    };
    let waits = open(Destination::EventBus("mine".to_owned())).await;
    let header = open(Destination::Queue(NoticesQueue::Notices)).await;
    stack.deliver(QueueName::Notify).await;
    assert!(stack.header(header).await.notice.delivered.is_some());
    let notice = stack.header(waits).await.notice;
    assert_eq!(notice.error.as_deref(), Some("the environment has no AWS_REGION to call AWS with"));
    assert!(!notice.over());
}
