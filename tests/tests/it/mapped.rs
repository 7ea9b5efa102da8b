//! Batch APIs that are called as their policies describe them, over HTTP.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::{BatchApi, Policy};
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Caller, Callers, Cause, MemberOutcome, Request};
use fanfold_handle::Handle;
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hostile::server::{Deed, Heard, Server};

/// The batch API of a policy that can be used.
fn batch_api(batch_api: Value) -> BatchApi {
    let policy: Policy =
        serde_json::from_value(json!({"kind": "row", "target": "kind", "batch_api": batch_api})).unwrap();
    policy.check().unwrap();
    policy.batch_api
}

fn variables(name: &str) -> Option<String> {
    let value = match name {
        "FANFOLD_SECRET_TOKEN" => "t0ken-value",
        "FANFOLD_SECRET_HOOK" => "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz",
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => "test",
        "AWS_REGION" => "eu-west-1",
        _ => return None,
    };
    Some(value.to_owned())
}

fn three() -> Call {
    let member = |n: u128| CallMember {
        id: TaskId::Single(Uuid::from_u128(n)),
        content: RawValue::from_string(json!({"n": n}).to_string()).unwrap(),
    };
    let (kind, target) = ("row".to_owned(), "NY".to_owned());
    Call { batch_id: Uuid::from_u128(9), kind, attempt: 1, target, members: (0..3).map(member).collect() }
}

async fn call(batch_api: &BatchApi) -> Result<Answer, CallError> {
    Callers::local(variables).call(batch_api, Request::new(batch_api, &three()).unwrap()).await
}

fn header<'a>(heard: &'a Heard, name: &str) -> Vec<&'a str> {
    let lines = heard.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[tokio::test]
async fn a_request_goes_out_as_it_is_described() {
    let server = Server::start(|_, _| Deed::answer("200 OK", "", r#"{"errors": [{"at": 1, "why": "no"}]}"#)).await;
    let api = batch_api(json!({
        "url": server.url,
        "request": {
            "method": "PUT", "format": "ndjson", "query": {"v": "${kind} 1"},
            "headers": {"Authorization": "Bearer ${secret.TOKEN}", "X-Key": "${idempotency_key}", "Content-Type": "application/x-lines"},
            "body": {"${members}": ["${content.n}", "${id}"]},
        },
        "response": {"items": "/errors", "match": "exceptions", "index": "item.at", "error": "item.why"},
    }));
    let Answer::Members(members) = call(&api).await.unwrap() else { panic!("it is clear") };
    let outcomes: Vec<MemberOutcome> = members.iter().map(|member| member.outcome).collect();
    assert_eq!(outcomes, [MemberOutcome::Succeeded, MemberOutcome::Failed, MemberOutcome::Succeeded]);
    let heard = server.heard().remove(0);
    assert!(heard.head.starts_with("PUT /trucks?v=row%201 HTTP/1.1\r\n"), "{}", heard.head);
    let lines: Vec<String> = (0..3).flat_map(|n| [n.to_string(), json!(Uuid::from_u128(n)).to_string()]).collect();
    assert_eq!(String::from_utf8(heard.bytes.clone()).unwrap(), lines.join("\n") + "\n");
    assert_eq!(header(&heard, "authorization"), ["Bearer t0ken-value"]);
    assert_eq!(header(&heard, "content-type"), ["application/x-lines"]);
    assert_eq!(
        (header(&heard, "x-key"), header(&heard, "idempotency-key")),
        (vec![heard.key.as_str()], vec![heard.key.as_str()])
    );
}

#[tokio::test]
async fn a_member_that_does_not_fit_fails_alone() {
    let server = Server::start(|_, heard| {
        assert_eq!(heard.body, json!(["a", "c"]));
        Deed::answer("200 OK", "", "[true, true]")
    })
    .await;
    let response = json!({"items": "", "match": "index", "ok": "item"});
    let one = |body: Value| batch_api(json!({"url": server.url, "request": {"body": body}, "response": response}));
    let Answer::Members(members) =
        call(&one(json!({"${members}": "${[['a'], [], ['c']][content.n][0]}"}))).await.unwrap()
    else {
        panic!("it is clear")
    };
    let outcomes: Vec<MemberOutcome> = members.iter().map(|member| member.outcome).collect();
    assert_eq!(outcomes, [MemberOutcome::Succeeded, MemberOutcome::Failed, MemberOutcome::Succeeded]);
    assert!(members[1].error.as_ref().unwrap().ends_with("finds no element 0"), "{:?}", members[1].error);
    // Without any member there is no call.
    let Answer::Members(members) = call(&one(json!({"${members}": "${content.x}"}))).await.unwrap() else {
        panic!("it is clear")
    };
    assert!(members.iter().all(|member| member.outcome == MemberOutcome::Failed) && members.len() == 3);
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_secret_is_shown_in_no_error_and_without_it_there_is_no_call() {
    let server = Server::start(|_, _| Deed::answer("401 Unauthorized", "", "bad key: t0ken-value")).await;
    for response in [Value::Null, json!({"match": "none"})] {
        let headers = json!({"Authorization": "Bearer ${secret.TOKEN}"});
        let api = batch_api(json!({"url": server.url, "request": {"headers": headers}, "response": response}));
        let error = call(&api).await.unwrap_err();
        assert_eq!(error.message, "the batch API answered 401 Unauthorized: bad key: [secret]");
    }
    let calls = server.heard().len();
    let api = batch_api(json!({"url": server.url, "request": {"headers": {"X": "${secret.OTHER}"}}}));
    let error = call(&api).await.unwrap_err();
    assert!(error.message.contains("there is no secret `OTHER`") && error.cause.concerns_every_batch(), "{error:?}");
    assert_eq!(server.heard().len(), calls);
}

#[tokio::test]
async fn requests_are_signed() {
    let server = Server::start(|_, _| Deed::answer("200 OK", "", "")).await;
    let sign = |sign: Value| {
        let headers = json!({"X-Amz-Target": "AmazonSQS.SendMessageBatch"});
        batch_api(json!({"url": server.url, "request": {"headers": headers, "sign": sign, "query": {"a": "b"}}}))
    };
    call(&sign(json!({"aws": "sqs"}))).await.unwrap();
    call(&sign(json!({"webhook": "HOOK"}))).await.unwrap();
    let [aws, webhook] = <[Heard; 2]>::try_from(server.heard()).unwrap();
    let authorization = header(&aws, "authorization").remove(0);
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=test/"), "{authorization}");
    assert!(
        authorization.contains("/eu-west-1/sqs/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target"),
        "{authorization}"
    );
    assert_eq!(header(&webhook, "webhook-id"), [webhook.key.as_str()]);
    let seconds = header(&webhook, "webhook-timestamp").remove(0).parse().unwrap();
    let key = standardwebhooks::Webhook::new(&variables("FANFOLD_SECRET_HOOK").unwrap()).unwrap();
    assert_eq!(header(&webhook, "webhook-signature"), [key.sign(&webhook.key, seconds, &webhook.bytes).unwrap()]);
    let wrong = call(&sign(json!({"webhook": "TOKEN"}))).await.unwrap_err();
    assert!(wrong.message.contains("the secret `TOKEN` is not a key of Standard Webhooks"), "{}", wrong.message);
}

#[tokio::test]
async fn private_addresses_are_called_only_if_the_deployment_names_their_host() {
    let server = Server::start(|_, _| Deed::answer("200 OK", "", "")).await;
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    // The functions of a stack name no host unless a parameter says so.
    let deployed = Callers::deployed(stack.surroundings());
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost"] {
        let api = batch_api(json!({"url": format!("http://{host}:{port}")}));
        let error = deployed.call(&api, Request::new(&api, &three()).unwrap()).await.unwrap_err();
        assert_eq!((error.cause, error.retriable), (Cause::Unreachable, true));
        let expected =
            format!("`{host}` has no public address, and is not a host whose private addresses may be called");
        assert!(error.message.ends_with(&expected), "{}", error.message);
        call(&api).await.unwrap();
    }
    for url in ["https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/", "https://10.0.0.1/"] {
        let error = call(&batch_api(json!({"url": url}))).await.unwrap_err();
        assert!(
            error.cause == Cause::Unreachable && error.message.contains("no public address"),
            "{url}: {}",
            error.message
        );
    }
    assert_eq!(server.heard().len(), 2);
}

#[tokio::test]
async fn a_mapped_answer_does_not_lead_elsewhere() {
    let elsewhere = Server::start(|_, _| Deed::answer("200 OK", "", "{}")).await;
    let location = format!("Location: {}\r\n", elsewhere.url);
    let server = Server::start(move |_, _| Deed::answer("307 Temporary Redirect", &location, "")).await;
    let api = batch_api(json!({"url": server.url, "response": {"match": "none"}}));
    let error = call(&api).await.unwrap_err();
    assert!(error.message.contains(&format!("to {}, which is not followed", elsewhere.url)), "{}", error.message);
    assert_eq!((server.heard().len(), elsewhere.heard().len()), (1, 0));
}

/// Each line of content of a `_bulk` request.
fn documents(heard: &Heard) -> Vec<(String, Value)> {
    let lines: Vec<Value> = String::from_utf8(heard.bytes.clone())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines.chunks(2).map(|pair| (pair[0]["index"]["_id"].as_str().unwrap().to_owned(), pair[1].clone())).collect()
}

/// `_bulk` answers 200 although some documents were refused (vectordotdev/vector#140), and after a partial retry all counts are still
/// right (#26293): documents that were taken are not sent again, busy ones are, bad ones fail.
#[tokio::test]
async fn errors_of_single_documents_in_a_success_count_and_only_busy_ones_are_sent_again() {
    let server = Server::start(|number, heard| {
        let item = |(at, (id, _)): (usize, (String, Value))| match (number, at) {
            (0, 1) => json!({"index": {"_id": id, "status": 400, "error": {"type": "document_parsing_exception", "reason": "bad"}}}),
            (0, 2 | 3) | (1, 0) => json!({"index": {"_id": id, "status": 429, "error": {"type": "busy", "reason": "later"}}}),
            _ => json!({"index": {"_id": id, "status": 201}}),
        };
        let items: Vec<Value> = documents(heard).into_iter().enumerate().map(item).collect();
        Deed::answer("200 OK", "", json!({"errors": number < 2, "items": items}).to_string())
    })
    .await;
    let changes = json!({
        "linger": 0, "backoff": {"base": 0, "max": 0}, "max_attempts": 5, "batch_api": {"use": "elasticsearch", "url": server.url}
    });
    let mut stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await;
    stack.handle =
        Arc::new(Handle::from_environment(stack.surroundings(), Arc::new(Callers::local(|_| None))).unwrap());
    let (_, ids) = stack.open(5, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 4, 1));
    let sent: Vec<usize> = server.heard().iter().map(|heard| documents(heard).len()).collect();
    assert_eq!(sent, [5, 2, 1]);
    let keys: std::collections::BTreeSet<String> = server.heard().into_iter().map(|heard| heard.key).collect();
    assert_eq!(keys.len(), 3, "other bytes have another key");
}

/// A call that may be answered later brings a token; a status 202 is no success of its members, and its `Location` is asked with the
/// policy's headers.
#[tokio::test]
async fn an_answer_that_comes_later_is_announced_and_asked_for() {
    let server = Server::start(|number, heard| match number {
        0 => Deed::answer("202 Accepted", "Location: /jobs/7?x=1\r\nRetry-After: 30\r\n", "{\"accepted\": true}"),
        1 => Deed::answer("202 Accepted", "Retry-After: 5\r\n", ""),
        2 => Deed::answer("200 OK", "", r#"{"errors": [{"at": 1, "why": "no"}]}"#),
        3 => Deed::answer("202 Accepted", "Location: https://example.com/jobs/7\r\n", ""),
        _ => panic!("{}", heard.head),
    })
    .await;
    let api = batch_api(json!({
        "url": server.url, "answers_within": "1h",
        "request": {"headers": {"Authorization": "Bearer ${secret.TOKEN}"}, "query": {"v": "1"}, "body": {"${members}": "${content}"}},
        "response": {"items": "/errors", "match": "exceptions", "index": "item.at", "error": "item.why"},
    }));
    let callers = Callers::local(variables);
    let call = three();
    let request = || Request::new(&api, &call).unwrap().with_token(Some("1.abc".to_owned()));
    let Ok(Answer::Later(later)) = callers.call(&api, request()).await else { panic!("it comes later") };
    let at = later.poll.clone().unwrap();
    assert_eq!(at, server.url.replace("/trucks", "/jobs/7?x=1"));
    assert_eq!((later.after, later.problem, later.members.len()), (Some(Duration::from_secs(30)), None, 0));
    let Ok(Answer::Later(later)) = callers.poll(&api, &at, request()).await else { panic!("not yet") };
    assert_eq!((later.poll, later.after), (None, Some(Duration::from_secs(5))));
    let Ok(Answer::Members(members)) = callers.poll(&api, &at, request()).await else { panic!("it is there") };
    let outcomes: Vec<MemberOutcome> = members.iter().map(|member| member.outcome).collect();
    assert_eq!(outcomes, [MemberOutcome::Succeeded, MemberOutcome::Failed, MemberOutcome::Succeeded]);
    let Ok(Answer::Later(later)) = callers.call(&api, request()).await else { panic!("it comes later") };
    assert!(later.poll.is_none() && later.problem.unwrap().contains("scheme, host and port"), "nobody is sent there");
    let error = callers.poll(&api, "https://example.com/jobs/7", request()).await.unwrap_err();
    assert_eq!(error.cause, Cause::NotMade);
    let heard = server.heard();
    assert_eq!((heard.len(), header(&heard[0], "fanfold-token")), (4, vec!["1.abc"]));
    for asked in &heard[1..3] {
        assert!(asked.head.starts_with("GET /jobs/7?x=1 HTTP/1.1\r\n") && asked.bytes.is_empty(), "{}", asked.head);
        assert_eq!(header(asked, "authorization"), ["Bearer t0ken-value"]);
        assert!(header(asked, "fanfold-token").is_empty() && header(asked, "content-type").is_empty());
    }
}

/// Without `answers_within` a status 202 is an answer like any other.
#[tokio::test]
async fn without_a_time_for_it_a_status_202_is_an_answer() {
    let server = Server::start(|_, _| Deed::answer("202 Accepted", "Location: /jobs/7\r\n", "")).await;
    let api = batch_api(json!({"url": server.url}));
    assert_eq!(call(&api).await, Ok(Answer::AllSucceeded));
    assert!(header(&server.heard()[0], "fanfold-token").is_empty());
}
