//! Answers are read as documented, or refused.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const ID: &str = "0189abcd-0000-7000-8000-000000000001";

fn read(body: &[u8]) -> Result<Answer, CallError> {
    Answer::read(body, &crate::call::testing::call(&[ID]))
}

fn members(body: &str) -> Vec<MemberAnswer> {
    match read(body.as_bytes()).unwrap() {
        Answer::Members(members) | Answer::Unclear { members, .. } => members,
        Answer::AllSucceeded | Answer::Later(_) => panic!("{body}"),
    }
}

#[test]
fn reads_outcomes() {
    let body = format!(
        r#"{{"members": [{{"id": "{ID}", "outcome": "failed", "error": "no", "result": {{"a": 1}}}}], "x": 1}}"#
    );
    for body in [body.clone(), format!("\u{feff}\r\n{body}"), body.replace(ID, &ID.to_uppercase())] {
        let members = members(&body);
        let read = (members[0].id.to_string(), members[0].outcome, members[0].error.as_deref());
        assert_eq!(read, (ID.to_owned(), MemberOutcome::Failed, Some("no")), "{body}");
    }
    assert_eq!(read(b" \n").unwrap(), Answer::AllSucceeded);
    assert_eq!(read(b"\xef\xbb\xbf").unwrap(), Answer::AllSucceeded);
}

#[test]
fn what_is_no_answer_is_shown_and_tried_again() {
    for (body, shown) in [
        ("null", "it is null: null"),
        ("{}", "it has no field `members`: {}"),
        ("{\"members\": null}", "it has no field `members`"),
        ("[]", "it is a bare list: []"),
        ("[[{\"id\": \"x\"}]]", "it is a bare list: [[{\"id\": \"x\"}]]"),
        ("<html>\n  <h1>Welcome!</h1>", "it is HTML or XML: <html> <h1>Welcome!</h1>"),
        ("OK", "it is not JSON: OK"),
        ("7", "it is a number: 7"),
        ("\"\\ud800\"", "it is a text"),
        (r#"{"members": {"a": 1}}"#, r#"its `members` is an object, a list is expected: {"members": {"a": 1}}"#),
        (r#"{"members": ["#, "it cannot be read, EOF"),
        (r#"{"members": [], "members": []}"#, "duplicate field `members`"),
    ] {
        let error = read(body.as_bytes()).unwrap_err();
        assert!(error.retriable && error.cause == Cause::BadAnswer, "{body}");
        let shown = format!("the answer is not {{\"members\": [...]}}: {shown}");
        let exact = error.message.starts_with(&shown) || error.message.contains(shown.rsplit(": ").next().unwrap());
        assert!(exact, "{body}: {}", error.message);
    }
    // The answer to one call is kept for each of up to 10,000 members.
    for huge in [format!("\"{}\"", "x".repeat(1_000_000)), "[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        let error = read(huge.as_bytes()).unwrap_err();
        assert!(error.retriable && error.message.len() <= ERROR_BYTES_MAX, "{} bytes", error.message.len());
    }
}

#[test]
fn an_entry_that_cannot_be_read_spoils_no_other() {
    let right = json!({"id": ID, "outcome": "succeeded"});
    for wrong in [
        json!({"id": "ORD-1", "outcome": "failed"}),
        json!({"id": 1, "outcome": "failed"}),
        json!({"outcome": "failed"}),
        json!([ID, "failed"]),
        json!("succeeded"),
        json!(null),
    ] {
        let body = json!({"members": [&wrong, &right, &wrong]}).to_string();
        let Answer::Unclear { members, problem } = read(body.as_bytes()).unwrap() else { panic!("{wrong}") };
        assert_eq!((members.len(), members[0].outcome), (1, MemberOutcome::Succeeded), "{wrong}");
        assert_eq!(problem, format!("its entry {wrong} names no task by its id, nor do 1 others"));
    }
}

#[test]
fn an_outcome_that_is_none_is_shown_of_its_member() {
    for (outcome, shown) in [(json!("FAILED"), "\"FAILED\""), (json!(1), "1"), (json!({"a": 1}), "{\"a\":1}")] {
        let shown = format!("the answer's outcome for it is {shown}, succeeded, failed or retry is expected");
        let member = members(&json!({"members": [{"id": ID, "outcome": outcome}]}).to_string()).remove(0);
        assert_eq!((member.outcome, member.error), (MemberOutcome::Unclear, Some(shown)));
    }
    let member = members(&json!({"members": [{"id": ID, "outcome": null}]}).to_string()).remove(0);
    assert_eq!((member.outcome, member.error.is_some()), (MemberOutcome::Unclear, true));
}

#[test]
fn each_outcome_has_what_belongs_to_it() {
    let member = |entry: serde_json::Value| {
        let mut entry = entry;
        entry["id"] = json!(ID);
        members(&json!({ "members": [entry] }).to_string()).remove(0)
    };
    let all = json!({"code": "E1", "retry_after": 5, "result": {"label": [1]}, "error": "why"});
    let with = |outcome: &str| {
        let mut entry = all.clone();
        entry["outcome"] = json!(outcome);
        let member = member(entry);
        (member.code, member.retry_after.map(|delay| delay.as_secs()), member.result)
    };
    assert_eq!(with("succeeded"), (None, None, Some(r#"{"label":[1]}"#.to_owned())));
    assert_eq!(with("failed"), (Some("E1".to_owned()), None, None));
    assert_eq!(with("retry"), (Some("E1".to_owned()), Some(5), None));
    let null = member(json!({"outcome": "succeeded", "result": null}));
    assert_eq!(null.result, None, "null is no result");
    let soon = member(json!({"outcome": "retry", "retry_after": "soon", "error": "busy"}));
    let shown = "busy; the answer's `retry_after` for it is \"soon\", seconds from 0 on are expected";
    assert_eq!((soon.outcome, soon.error.as_deref()), (MemberOutcome::Retry, Some(shown)), "the outcome counts");
    assert_eq!(member(json!({"status": 201, "result": 7})).result.as_deref(), Some("7"));
}

#[test]
fn an_error_that_is_no_text_is_kept_as_it_is_written() {
    for (error, shown) in [(json!({"code": 7}), Some("{\"code\":7}")), (json!(7), Some("7")), (json!(null), None)] {
        let body = json!({"members": [{"id": ID, "outcome": "failed", "error": error}]}).to_string();
        let member = members(&body).remove(0);
        assert_eq!((member.outcome, member.error.as_deref()), (MemberOutcome::Failed, shown));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&body);
    }
}
