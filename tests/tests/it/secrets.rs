//! Secrets that AWS keeps, behind an endpoint that answers as Secrets Manager and SSM do, and is the batch API, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::clock::{Clock, SystemRandom, Timestamp, World};
use fanfold::config::Surroundings;
use fanfold::policy::{BatchApi, Policy};
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Caller, Callers, Calling, Cause, Request};
use fanfold_handle::Handle;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hostile::server::{Deed, Heard, Server};

/// A clock that a test sets.
#[derive(Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp(1_790_000_000_000 + self.0.load(Ordering::Relaxed))
    }
}

impl Hands {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

const SECRETS: &str = r#"{"KEY": "secretsmanager:shop/search#key", "HOOK": "ssm:/shop/hook", "OWN": "own-value"}"#;

/// Callers as a deployed stack has them, whose AWS is the server.
async fn callers(server: &Server, secrets: &'static str) -> (Callers, Arc<Hands>) {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let (endpoint, hands) = (server.url.replace("/trucks", ""), Arc::new(Hands::default()));
    let variables = move |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        "AWS_ENDPOINT_URL" => Some(endpoint.clone()),
        "BATCH_API_PRIVATE_HOSTS" => Some("127.0.0.1".to_owned()),
        "BATCH_API_SECRETS" => Some(secrets.to_owned()),
        _ => None,
    };
    let own = stack.surroundings();
    let world = World { clock: hands.clone(), random: Arc::new(SystemRandom) };
    let surroundings = Surroundings::new(own.dynamodb.clone(), own.sqs.clone(), world, variables);
    (Callers::deployed(&surroundings), hands)
}

/// A batch API at the server, whose headers have the secrets.
fn batch_api(server: &Server) -> BatchApi {
    let headers =
        json!({"Authorization": "Bearer ${secret.KEY}", "X-Hook": "${secret.HOOK}", "X-Own": "${secret.OWN}"});
    let batch_api = json!({"url": server.url, "request": {"headers": headers}, "timeout": "60s"});
    let policy: Policy =
        serde_json::from_value(json!({"kind": "row", "target": "kind", "batch_api": batch_api})).unwrap();
    policy.check().unwrap();
    policy.batch_api
}

async fn call(callers: &Callers, server: &Server) -> Result<Answer, CallError> {
    let batch_api = batch_api(server);
    let content = RawValue::from_string("1".to_owned()).unwrap();
    let members = vec![CallMember { id: fanfold::ids::TaskId::Single(Uuid::nil()), content }];
    let (kind, target) = ("row".to_owned(), "NY".to_owned());
    let call = Call { batch_id: Uuid::from_u128(9), kind, attempt: 1, target, members };
    callers.call(&batch_api, Request::new(&batch_api, &call).unwrap()).await
}

fn header(heard: &Heard, name: &str) -> Option<String> {
    let mut lines = heard.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// What was called, in order: an operation of AWS, or the batch API with its header.
fn asked(server: &Server) -> Vec<String> {
    let of = |heard: &Heard| header(heard, "x-amz-target").or_else(|| header(heard, "authorization")).unwrap();
    server.heard().iter().map(of).collect()
}

/// Answers as AWS does. None: it is a call of the batch API.
fn aws(heard: &Heard, key: &str) -> Option<Deed> {
    let answer = |document: Value| Some(Deed::answer("200 OK", "", document.to_string()));
    match header(heard, "x-amz-target")?.as_str() {
        "secretsmanager.GetSecretValue" => {
            assert_eq!(heard.body, json!({"SecretId": "shop/search"}));
            assert!(heard.head.contains("/eu-west-1/secretsmanager/aws4_request"), "{}", heard.head);
            answer(json!({"Name": "shop/search", "SecretString": json!({"key": key}).to_string()}))
        }
        "AmazonSSM.GetParameter" => {
            assert_eq!(heard.body, json!({"Name": "/shop/hook", "WithDecryption": true}));
            assert!(heard.head.contains("/eu-west-1/ssm/aws4_request"), "{}", heard.head);
            answer(json!({"Parameter": {"Name": "/shop/hook", "Type": "SecureString", "Value": "hook-value"}}))
        }
        other => panic!("{other}"),
    }
}

const FETCHED: [&str; 2] = ["AmazonSSM.GetParameter", "secretsmanager.GetSecretValue"];

#[tokio::test]
async fn secrets_are_fetched_once_and_again_after_a_while() {
    let server = Server::start(|number, heard| {
        let key = if number < 4 { "first-key" } else { "second-key" };
        aws(heard, key).unwrap_or_else(|| {
            assert_eq!(
                (header(heard, "x-hook"), header(heard, "x-own")),
                (Some("hook-value".into()), Some("own-value".into()))
            );
            Deed::answer("200 OK", "", "")
        })
    })
    .await;
    let (callers, hands) = callers(&server, SECRETS).await;
    assert_eq!(call(&callers, &server).await, Ok(Answer::AllSucceeded));
    hands.pass(Duration::from_secs(599));
    call(&callers, &server).await.unwrap();
    assert_eq!(asked(&server)[2..], ["Bearer first-key", "Bearer first-key"], "they are kept");
    hands.pass(Duration::from_secs(1));
    call(&callers, &server).await.unwrap();
    let asked = asked(&server);
    let mut again = asked[4..6].to_vec();
    again.sort();
    assert_eq!((again, asked.len()), (FETCHED.map(str::to_owned).to_vec(), 7));
    assert_eq!(asked[6], "Bearer second-key", "it was rotated");
}

/// Secrets are fetched before an attempt begins: afterwards nothing keeps its call from being sent.
#[tokio::test]
async fn a_call_that_was_prepared_fetches_nothing() {
    let server = Server::start(|_, heard| aws(heard, "key").unwrap_or_else(|| Deed::answer("200 OK", "", ""))).await;
    let (callers, hands) = callers(&server, SECRETS).await;
    callers.prepare(&batch_api(&server)).await.unwrap();
    assert_eq!(asked(&server).len(), 2);
    hands.pass(Duration::from_secs(591));
    call(&callers, &server).await.unwrap();
    assert_eq!(asked(&server)[2..], ["Bearer key"]);
    // They would have to be fetched between the beginning and the call.
    callers.prepare(&batch_api(&server)).await.unwrap();
    hands.pass(Duration::from_secs(10));
    call(&callers, &server).await.unwrap();
    assert_eq!((asked(&server).len(), asked(&server).last().unwrap().as_str()), (6, "Bearer key"));
}

#[tokio::test]
async fn a_refused_call_has_a_rotated_secret_fetched_and_shows_none() {
    let server = Server::start(|number, heard| {
        let key = if number < 4 { "first-key" } else { "second-key" };
        aws(heard, key).unwrap_or_else(|| match header(heard, "authorization").unwrap().as_str() {
            "Bearer second-key" => Deed::answer("200 OK", "", ""),
            other => Deed::answer("401 Unauthorized", "", format!("bad: {other}, hook-value, own-value")),
        })
    })
    .await;
    let (callers, hands) = callers(&server, SECRETS).await;
    let error = call(&callers, &server).await.unwrap_err();
    assert_eq!(error.message, "the batch API answered 401 Unauthorized: bad: Bearer [secret], [secret], [secret]");
    hands.pass(Duration::from_secs(60));
    call(&callers, &server).await.unwrap_err();
    assert_eq!(server.heard().len(), 4, "what was fetched just now is not fetched again");
    hands.pass(Duration::from_secs(60));
    call(&callers, &server).await.unwrap_err();
    assert_eq!(
        call(&callers, &server).await,
        Ok(Answer::AllSucceeded),
        "the one before was refused with an old secret"
    );
    assert_eq!(server.heard().len(), 8);
}

/// Without any value the kind waits; with one from before, calls go on.
#[tokio::test]
async fn a_secret_that_cannot_be_fetched_makes_the_kind_wait_and_an_old_one_is_used() {
    let denied = |heard: &Heard| {
        let body = json!({"__type": "AccessDeniedException", "Message": "not authorized to perform secretsmanager:GetSecretValue"});
        header(heard, "x-amz-target").map(|_| Deed::answer("400 Bad Request", "", body.to_string()))
    };
    let server = Server::start(move |number, heard| match number {
        0 | 1 | 5.. => denied(heard).unwrap_or_else(|| Deed::answer("200 OK", "", "")),
        _ => aws(heard, "first-key").unwrap_or_else(|| Deed::answer("200 OK", "", "")),
    })
    .await;
    let (callers, hands) = callers(&server, SECRETS).await;
    let error = call(&callers, &server).await.unwrap_err();
    assert!(error.cause == Cause::Unreachable && error.cause.concerns_every_batch() && error.retriable);
    let said = "the secret `HOOK` cannot be fetched (ssm:/shop/hook): SSM answered 400 Bad Request: AccessDeniedException: not";
    assert!(error.message.starts_with(said), "{}", error.message);
    call(&callers, &server).await.unwrap();
    hands.pass(Duration::from_secs(600));
    call(&callers, &server).await.unwrap();
    assert_eq!(server.heard().len(), 8, "they could not be fetched, and the batch API was called");
    hands.pass(Duration::from_secs(59));
    call(&callers, &server).await.unwrap();
    assert_eq!(server.heard().len(), 9, "they are not asked for with every call");
}

#[tokio::test]
async fn an_object_of_secrets_that_cannot_be_read_makes_the_kind_wait() {
    let server = Server::start(|_, heard| panic!("{}", heard.head)).await;
    let (callers, _) = callers(&server, r#"{"KEY": "t0p-value", "#).await;
    let error = call(&callers, &server).await.unwrap_err();
    assert!(error.message.starts_with("BATCH_API_SECRETS is not JSON (line 1, column 21)"), "{}", error.message);
    assert!(error.cause.concerns_every_batch() && error.retriable && !error.message.contains("t0p"));
}

/// A batch API whose secrets cannot be fetched.
struct Unready(Arc<ScriptedApi>);

impl Caller for Unready {
    fn prepare<'a>(&'a self, _: &'a BatchApi) -> BoxFuture<'a, Result<(), CallError>> {
        ready(Err(CallError::new(Cause::Unreachable, "the secret `KEY` cannot be fetched"))).boxed()
    }

    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        self.0.call(batch_api, request)
    }
}

#[tokio::test(start_paused = true)]
async fn without_what_a_call_needs_none_is_made() {
    let mut stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let caller = Arc::new(Unready(Arc::clone(&stack.api)));
    stack.handle = Arc::new(Handle::from_environment(stack.surroundings(), caller).unwrap());
    let tasks = stack.register_orders("117", 0..2).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    let batch = stack.only_batch().await;
    assert_eq!(
        (stack.api.seen().len(), batch.attempts, batch.refused, batch.unsettled().len()),
        (0, 1, 1, tasks.len())
    );
    assert_eq!(batch.last_error.as_deref(), Some("the secret `KEY` cannot be fetched"));
}
