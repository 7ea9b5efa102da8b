//! Batch APIs that are Lambda functions, behind an endpoint that answers as Lambda does.

use fanfold::ids::TaskId;
use fanfold::limits::EVENT_BYTES_MAX;
use fanfold::policy::{BatchApi, Policy};
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Caller, Callers, Cause, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hostile::server::{Deed, Heard, Server};

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:book:live";

fn batch_api() -> BatchApi {
    let policy = json!({"kind": "row", "target": "kind", "batch_api": {"lambda": FUNCTION, "timeout": "60s"}});
    let policy: Policy = serde_json::from_value(policy).unwrap();
    policy.check().unwrap();
    policy.batch_api
}

fn two(content: &str) -> Call {
    let content = || RawValue::from_string(content.to_owned()).unwrap();
    let member = |n| CallMember { id: TaskId::Single(Uuid::from_u128(n)), content: content() };
    let (kind, target) = ("row".to_owned(), "NY".to_owned());
    Call { batch_id: Uuid::from_u128(9), kind, attempt: 3, target, members: (0..2).map(member).collect() }
}

/// Invokes a function that the server stands for.
async fn invoke(server: &Server, call: &Call) -> Result<Answer, CallError> {
    let endpoint = server.url.replace("/trucks", "");
    let variables = move |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        "AWS_ENDPOINT_URL_LAMBDA" => Some(endpoint.clone()),
        _ => None,
    };
    let api = batch_api();
    Callers::local(variables).call(&api, Request::new(&api, call).unwrap()).await
}

fn header<'a>(heard: &'a Heard, name: &str) -> &'a str {
    let lines = heard.head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).unwrap().1
}

#[tokio::test]
async fn a_function_gets_the_call_as_its_event_and_its_answer_is_read() {
    let named = json!({"batchItemFailures": [{"itemIdentifier": Uuid::from_u128(1)}]}).to_string();
    let server = Server::start(move |number, _| match number {
        0 => Deed::answer("200 OK", "", "null"),
        _ => Deed::answer("200 OK", "", &named),
    })
    .await;
    let call = two("{\"a\": 1}");
    assert_eq!(invoke(&server, &call).await, Ok(Answer::AllSucceeded));
    let Ok(Answer::Members(members)) = invoke(&server, &call).await else { panic!("it names members") };
    assert_eq!(members.len(), 2);
    let heard = server.heard().remove(0);
    let path =
        "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A123456789012%3Afunction%3Abook%3Alive/invocations";
    assert!(heard.head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", heard.head);
    assert!(header(&heard, "authorization").contains("/eu-west-1/lambda/aws4_request"), "{}", heard.head);
    assert_eq!(
        (&heard.body["batch_id"], &heard.body["members"][0]["content"]),
        (&json!(call.batch_id), &json!({"a": 1}))
    );
    let context = base64(header(&heard, "x-amz-client-context"));
    let context: Value = serde_json::from_slice(&context).unwrap();
    assert!(context["custom"]["idempotency_key"].as_str().unwrap().starts_with(&call.batch_id.to_string()));
    assert_eq!(context["custom"]["attempt"], 3);
}

/// Decodes base64, for one short text.
fn base64(text: &str) -> Vec<u8> {
    aws_smithy_types::base64::decode(text).unwrap()
}

#[tokio::test]
async fn what_fails_says_why_and_whether_to_call_again() {
    let busy = r#"{"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded", "message": "Rate Exceeded."}"#;
    let server = Server::start(move |number, _| match number {
        0 => Deed::answer(
            "429 Too Many Requests",
            "x-amzn-errortype: TooManyRequestsException\r\nRetry-After: 7\r\n",
            busy,
        ),
        1 => Deed::answer(
            "200 OK",
            "x-amz-function-error: Unhandled\r\n",
            r#"{"errorType": "KeyError", "errorMessage": "'id'"}"#,
        ),
        2 => Deed::answer(
            "200 OK",
            "x-amz-function-error: Unhandled\r\n",
            r#"{"errorMessage": "Task timed out after 3.00 seconds"}"#,
        ),
        _ => Deed::answer(
            "404 Not Found",
            "x-amzn-errortype: ResourceNotFoundException\r\n",
            r#"{"Message": "Function not found"}"#,
        ),
    })
    .await;
    let call = two("1");
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(invoke(&server, &call).await.unwrap_err());
    }
    let causes: Vec<Cause> = errors.iter().map(|error| error.cause).collect();
    assert_eq!(causes, [Cause::Status(429), Cause::Exit, Cause::Silence, Cause::Status(404)]);
    assert!(errors[0].retry_after.is_some() && errors[0].message.contains("TooManyRequestsException: Rate Exceeded."));
    assert_eq!(errors[1].message, "the function failed: KeyError: 'id'");
    assert!(errors[3].message.contains("Function not found") && errors[3].cause.concerns_every_batch());
}

#[tokio::test]
async fn too_large_a_call_is_not_sent_and_is_split() {
    let server = Server::start(|_, _| Deed::answer("200 OK", "", "null")).await;
    let call = two(&format!("\"{}\"", "x".repeat(EVENT_BYTES_MAX / 2)));
    let error = invoke(&server, &call).await.unwrap_err();
    assert_eq!(error.cause, Cause::NotSent);
    assert!(
        error.message.contains("at most 6291456 are allowed as the event of a Lambda function"),
        "{}",
        error.message
    );
    assert_eq!(server.heard().len(), 0);
}
