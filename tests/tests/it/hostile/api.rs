//! Batch APIs that die, hang, answer rubbish or too late: as a call sees them, and as a whole stack does.

use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::ids::TaskId;
use fanfold::policy::{BatchApi, Span, Way};
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Caller, Callers, MemberAnswer, MemberOutcome, Request};
use fanfold_handle::Handle;
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::server::{Deed, Heard, Server, refusing};

/// Long enough for any answer that comes, however busy the machine is.
pub(super) const PATIENT: Duration = Duration::from_secs(60);

/// Short enough to be waited for where none comes.
const IMPATIENT: Duration = Duration::from_millis(300);

pub(super) async fn call(url: &str, timeout: Duration) -> Result<Answer, CallError> {
    call_for(url, timeout, no_members()).await
}

async fn call_for(url: &str, timeout: Duration, call: Call) -> Result<Answer, CallError> {
    let batch_api = BatchApi::new(Way::Url(url.to_owned()), Span(timeout));
    Callers::local(|_| None).call(&batch_api, Request::new(&batch_api, &call).unwrap()).await
}

/// A call without members, for answers whose members do not matter.
pub(super) fn no_members() -> Call {
    let (kind, target) = ("parcel".to_owned(), "117".to_owned());
    Call { batch_id: Uuid::nil(), kind, attempt: 1, target, members: Vec::new() }
}

/// An answer that never ends.
fn endless(headers: &str, chunk: &str, pause: Duration) -> Deed {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    Deed::Repeat(head.into_bytes(), chunk.as_bytes().to_vec(), pause)
}

/// Answers that say nothing of the members: what they are, how long they may take, and what the error says.
fn no_answers() -> Vec<(&'static str, Deed, Duration, &'static str)> {
    let (not_members, broken) = ("the answer is not {\"members\": [...]}", "the call of the batch API broke off");
    let (too_large, too_late) = ("more than 6291456 bytes", "did not answer in time");
    let ok = |headers: &str, body: &[u8]| Deed::answer("200 OK", headers, body);
    let raw = |bytes: &str| Deed::Say(bytes.as_bytes().to_vec());
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x1_0000));
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff];
    let moment = Duration::from_millis(1);
    vec![
        ("a page", ok("Content-Type: text/html\r\n", b"<html>Welcome!</html>"), PATIENT, not_members),
        ("rubbish in gzip", ok("Content-Encoding: gzip\r\n", &gzip), PATIENT, not_members),
        ("bytes", ok("", &[0, 0xff, 0xfe, 0]), PATIENT, not_members),
        ("half an answer", ok("", b"{\"members\": ["), PATIENT, not_members),
        ("deep brackets", ok("", "[".repeat(100_000).as_bytes()), PATIENT, not_members),
        ("a body too large", ok("", &vec![b' '; 6 * 1_024 * 1_024 + 1]), PATIENT, too_large),
        ("no end of chunks", endless("Transfer-Encoding: chunked\r\n", &chunk, Duration::ZERO), PATIENT, too_large),
        ("no end at all", endless("", &chunk, Duration::ZERO), PATIENT, too_large),
        ("drop by drop", endless("Transfer-Encoding: chunked\r\n", "1\r\n \r\n", moment), IMPATIENT, too_late),
        ("interim answers", endless("", "HTTP/1.1 102 Processing\r\n\r\n", moment), IMPATIENT, too_late),
        ("silence", Deed::Hang, IMPATIENT, too_late),
        ("an end", Deed::Die, PATIENT, broken),
        ("an end within", raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}"), PATIENT, broken),
        ("an end before the body", raw("HTTP/1.1 200 OK\r\n\r\n"), PATIENT, "ended without a body"),
        ("an old server's end before it", raw("HTTP/1.0 201 Created\r\n\r\n"), PATIENT, "ended without a body"),
        ("a bad chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), PATIENT, broken),
        ("another protocol", raw("SSH-2.0-OpenSSH_9.9\r\n"), PATIENT, broken),
        ("a status that is none", raw("HTTP/1.1 20000 OK\r\n\r\n"), PATIENT, broken),
        ("two lengths", raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), PATIENT, broken),
        ("a negative length", raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"), PATIENT, broken),
    ]
}

#[tokio::test]
async fn what_says_nothing_of_the_members_is_tried_again() {
    for (name, deed, timeout, expected) in no_answers() {
        let server = Server::start(move |_, _| deed.clone()).await;
        let error = call(&server.url, timeout).await.unwrap_err();
        assert!(error.retriable && error.retry_after.is_none(), "{name}: {error:?}");
        assert!(error.message.contains(expected), "{name}: {error:?}");
    }
}

#[tokio::test]
async fn headers_without_end_are_cut_off() {
    let header = format!("X-More: {}\r\n", "x".repeat(1_000)).into_bytes();
    let server =
        Server::start(move |_, _| Deed::Repeat(b"HTTP/1.1 200 OK\r\n".to_vec(), header.clone(), Duration::ZERO)).await;
    let error = call(&server.url, PATIENT).await.unwrap_err();
    assert!(error.retriable && error.message.contains("broke off"), "{error:?}");
}

/// A task's content goes to the endpoint that the policy names, and nowhere else.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_, _| Deed::answer("200 OK", "", "")).await;
    for status in
        ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let location = format!("Location: {}\r\n", elsewhere.url);
        let server = Server::start(move |_, _| Deed::answer(status, &location, "")).await;
        let error = call(&server.url, PATIENT).await.unwrap_err();
        assert!(!error.retriable && error.cause.concerns_every_batch() && error.cause.answered(), "{error:?}");
        assert!(error.message.contains(&format!("{status} to {}, which is not followed", elsewhere.url)), "{error:?}");
        assert_eq!((server.heard().len(), elsewhere.heard().len()), (1, 0), "{status}");
    }
}

#[tokio::test]
async fn a_delay_is_taken_only_if_it_is_one() {
    for (value, seconds) in [
        ("7", Some(7)),
        ("3600", Some(3_600)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", Some(u64::MAX)),
        ("-1", None),
        ("NaN", None),
        ("1e400", None),
        ("1.5", None),
        ("", None),
        ("Sat, 21 Nov 2026 07:28:00 GMT", Some(0)),
        ("Sun, 22 Nov 2026 07:28:00 GMT", Some(5_280)),
        ("Sun, 22 Nov 2036 07:28:00 GMT", Some(315_624_480)),
        ("Sun, 22 Nov 2026 07:28:00 CET", None),
        ("\u{ff17}", None),
    ] {
        let header = format!("Retry-After: {value}\r\n");
        let server = Server::start(move |_, _| Deed::answer("503 Service Unavailable", &header, "")).await;
        let error = call(&server.url, PATIENT).await.unwrap_err();
        // Sun, 22 Nov 2026 06:00:00 GMT.
        let now = Timestamp(1_795_327_200_000);
        let waited = error.retry_after.map(|retry_after| retry_after.delay(now).as_secs());
        assert_eq!(waited, seconds, "{value}");
        assert!(error.retriable, "{value}");
    }
}

#[tokio::test]
async fn a_delay_of_a_success_holds_for_the_members_to_be_sent_again() {
    let answer = |heard: &Heard, own: Value| {
        let members = heard.body["members"].as_array().unwrap();
        let outcomes = ["retry", "retry", "succeeded"];
        let mut members: Vec<_> = members
            .iter()
            .zip(outcomes)
            .map(|(member, outcome)| json!({"id": member["id"], "outcome": outcome}))
            .collect();
        members[0]["retry_after"] = own;
        json!({ "members": members }).to_string().into_bytes()
    };
    for status in ["200 OK", "207 Multi-Status"] {
        let server =
            Server::start(move |_, heard| Deed::answer(status, "Retry-After: 60\r\n", answer(heard, json!(5)))).await;
        let member = |n| CallMember {
            id: TaskId::Single(Uuid::from_u128(n)),
            content: RawValue::from_string("{}".to_owned()).unwrap(),
        };
        let call = Call { members: (0..3).map(member).collect(), ..no_members() };
        let Answer::Members(members) = call_for(&server.url, PATIENT, call).await.unwrap() else { panic!("{status}") };
        let asked: Vec<_> = members.iter().map(|member| member.retry_after.map(|delay| delay.as_secs())).collect();
        assert_eq!(asked, [Some(5), Some(60), None], "{status}");
    }
}

/// Whatever its body is, a success may ask to wait.
#[tokio::test]
async fn a_delay_of_a_success_holds_for_members_without_a_clear_outcome_and_for_what_cannot_be_read() {
    let member = |n| CallMember {
        id: TaskId::Single(Uuid::from_u128(n)),
        content: RawValue::from_string("{}".to_owned()).unwrap(),
    };
    let call = || Call { members: (0..2).map(member).collect(), ..no_members() };
    let answered = async |body: &'static str| {
        let server = Server::start(move |_, _| Deed::answer("200 OK", "Retry-After: 60\r\n", body)).await;
        call_for(&server.url, PATIENT, call()).await
    };
    for body in [r#"{"status": "busy"}"#, "busy"] {
        let error = answered(body).await.unwrap_err();
        assert_eq!(error.retry_after.map(|asked| asked.delay(Timestamp(0))), Some(Duration::from_secs(60)), "{body}");
    }
    let Answer::Members(members) = answered(r#"{"members": []}"#).await.unwrap() else { panic!() };
    let asks = |members: &[MemberAnswer], outcome: MemberOutcome| {
        assert_eq!(members.len(), 2);
        let asks = |of: &MemberAnswer| of.outcome == outcome && of.retry_after == Some(Duration::from_secs(60));
        assert!(members.iter().all(asks), "{members:?}");
    };
    asks(&members, MemberOutcome::Unnamed);
    let unclear = r#"{"members": [{"id": "00000000-0000-0000-0000-000000000000", "outcome": "maybe"}, 7]}"#;
    let Answer::Unclear { members, .. } = answered(unclear).await.unwrap() else { panic!() };
    let outcomes: Vec<MemberOutcome> = members.iter().map(|member| member.outcome).collect();
    assert_eq!(outcomes, [MemberOutcome::Unclear, MemberOutcome::Unnamed]);
    assert!(members.iter().all(|member| member.retry_after == Some(Duration::from_secs(60))));
    // One that asks for nothing, or that says all, is as it was.
    assert_eq!(answered("").await, Ok(Answer::AllSucceeded));
}

/// A stack whose batch API is that server, in real time.
pub(super) async fn stack(server: &Server, max_attempts: u32, timeout: Duration) -> TestStack {
    stack_of(json!({"url": server.url, "timeout": Span(timeout)}), max_attempts).await
}

/// A stack that calls this batch API, in real time.
pub(super) async fn stack_of(batch_api: Value, max_attempts: u32) -> TestStack {
    let changes = json!({
        "linger": 0, "refusals": "fail", "backoff": {"base": 0, "max": 0}, "max_attempts": max_attempts,
        "batch_api": batch_api
    });
    let mut stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await;
    stack.handle =
        Arc::new(Handle::from_environment(stack.surroundings(), Arc::new(Callers::local(|_| None))).unwrap());
    stack
}

/// An outcome for each member of a call.
pub(super) fn outcomes(heard: &Heard, outcome: &str) -> Vec<u8> {
    let members = heard.body["members"].as_array().unwrap();
    let members: Vec<_> = members.iter().map(|member| json!({"id": member["id"], "outcome": outcome})).collect();
    json!({ "members": members }).to_string().into_bytes()
}

fn succeeded(heard: &Heard) -> Deed {
    Deed::answer("200 OK", "", outcomes(heard, "succeeded"))
}

/// A batch of five, one fan-out, and a batch API with a bad start: all succeed in the end, with one key for all calls.
async fn recovers(bad: impl Fn(usize, &Heard) -> Deed + Send + Sync + 'static, timeout: Duration) {
    let server =
        Server::start(move |number, heard| if number < 3 { bad(number, heard) } else { succeeded(heard) }).await;
    let stack = stack(&server, 100, timeout).await;
    let (_, ids) = stack.open(5, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 5, 0));
    let heard = server.heard();
    assert!(heard.len() > 3, "{} calls", heard.len());
    assert!(heard.iter().all(|call| call.key == heard[0].key && call.bytes == heard[0].bytes));
    let attempts: Vec<String> = heard.iter().map(|call| call.attempt.clone()).collect();
    assert_eq!(attempts, (1..=heard.len()).map(|attempt| attempt.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_batch_api_that_dies_is_called_again() {
    let within = |_: &Heard| Deed::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"members\": [".to_vec());
    recovers(move |number, heard| if number == 1 { within(heard) } else { Deed::Die }, PATIENT).await;
}

#[tokio::test]
async fn a_batch_api_that_hangs_is_called_again() {
    recovers(|_, _| Deed::Hang, IMPATIENT).await;
}

#[tokio::test]
async fn a_batch_api_that_answers_rubbish_is_called_again() {
    let rubbish = ["<html>", "{\"members\": {}}", "[]"];
    recovers(move |number, _| Deed::answer("200 OK", "", rubbish[number % 3]), PATIENT).await;
}

/// What it says after its time counts no more.
#[tokio::test]
async fn a_batch_api_that_answers_after_its_time_out_is_called_again() {
    recovers(
        |_, heard| {
            let Deed::Say(failed) = Deed::answer("200 OK", "", outcomes(heard, "failed")) else { unreachable!() };
            Deed::Late(IMPATIENT * 2, failed)
        },
        IMPATIENT,
    )
    .await;
}

/// A batch API that never does what it should: its tasks fail with the reason, and their fan-out ends.
#[tokio::test]
async fn a_batch_api_that_never_answers_ends_its_tasks() {
    let gone = refusing();
    let mut dead = Server::start(|_, _| Deed::Die).await;
    dead.url = format!("http://{}/", gone.local_addr().unwrap());
    for (server, timeout, reason) in [
        (dead, PATIENT, "the batch API cannot be reached"),
        (Server::start(|_, _| Deed::Die).await, PATIENT, "the call of the batch API broke off"),
        (Server::start(|_, _| Deed::Hang).await, IMPATIENT, "the batch API did not answer in time"),
        (Server::start(|_, _| Deed::answer("200 OK", "", "<html>")).await, PATIENT, "the answer is not"),
    ] {
        let stack = stack(&server, 2, timeout).await;
        let (_, ids) = stack.open(3, true).await;
        let tasks = stack.register_items(&ids).await;
        stack.drain().await;
        let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
        let error = batch.error(0).unwrap();
        assert!(error.starts_with("gave up after 2 attempts: ") && error.contains(reason), "{error}");
        let ends = stack.completions().await;
        assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 0, 3));
    }
}
