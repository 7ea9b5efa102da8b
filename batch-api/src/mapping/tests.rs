mod more;
mod presets;

use fanfold::policy::Policy;
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::*;
use crate::{Answer, CallMember, MemberOutcome, Request};
use MemberOutcome::{Failed, Retry, Succeeded, Unclear};

/// A policy's batch API; the policy can be used, so far as its batch API is concerned.
fn batch_api(batch_api: Value) -> BatchApi {
    let policy = json!({"kind": "row", "target": "kind", "distinct": "content.k", "batch_api": batch_api});
    let policy: Policy = serde_json::from_value(policy).unwrap();
    policy.check().unwrap();
    policy.batch_api
}

fn call(contents: &[Value]) -> Call {
    let member = |(n, content): (usize, &Value)| CallMember {
        id: fanfold::ids::TaskId::Single(Uuid::from_u128(n as u128)),
        content: RawValue::from_string(content.to_string()).unwrap(),
    };
    let members = contents.iter().enumerate().map(member).collect();
    Call { batch_id: Uuid::from_u128(7), kind: "row".to_owned(), attempt: 1, target: "NY".to_owned(), members }
}

fn read(api: &BatchApi, call: &Call, status: u16, body: &[u8]) -> Result<Readings, CallError> {
    Request::new(api, call)?.mapping.unwrap().read(call, status, &status.to_string(), body)
}

/// What an answer says of members: outcomes, and errors if there are any.
fn said(
    response: Value,
    members: usize,
    status: u16,
    body: &Value,
) -> (Vec<Option<MemberOutcome>>, Vec<String>, Option<String>) {
    let api = batch_api(json!({"url": "https://example.com/", "with": {"t": "a/b"}, "response": response}));
    let contents: Vec<Value> = (0..members).map(|n| json!({"k": n, "n": format!("n{n}")})).collect();
    let readings = read(&api, &call(&contents), status, body.to_string().as_bytes()).unwrap();
    let outcomes = readings.members.iter().map(|reading| reading.as_ref().map(|reading| reading.outcome)).collect();
    let errors = readings.members.iter().flatten().filter_map(|reading| reading.error.clone()).collect();
    (outcomes, errors, readings.problem)
}

/// The error of an answer that says nothing of members.
fn whole(response: Value, members: usize, status: u16, body: &str) -> CallError {
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    read(&api, &call(&vec![json!({}); members]), status, body.as_bytes()).unwrap_err()
}

fn by_index() -> Value {
    json!({"items": "/items", "match": "index", "ok": "item.ok", "retry": "item.?again.orValue(false)", "error": "item.why"})
}

#[test]
fn by_index_there_is_an_item_for_each_member_or_the_answer_is_an_error() {
    let body =
        json!({"items": [{"ok": true}, {"ok": false, "why": "no"}, {"ok": false, "again": true, "why": "later"}]});
    let (outcomes, errors, problem) = said(by_index(), 3, 200, &body);
    assert_eq!(outcomes, [Some(Succeeded), Some(Failed), Some(Retry)]);
    assert_eq!((errors, problem), (vec!["no".to_owned(), "later".to_owned()], None));
    for members in [2, 4] {
        let error = whole(by_index(), members, 200, &body.to_string());
        assert_eq!((error.cause, error.retriable), (Cause::BadAnswer, true));
        let expected = format!("the answer has 3 items for {members} members, so no item is known to be of a member: ");
        assert!(error.message.starts_with(&expected), "{}", error.message);
    }
    for (body, problem) in [
        ("", "the answer is empty"),
        ("OK", "the answer is not JSON: OK"),
        ("{}", "the answer has no list at `/items`"),
        (r#"{"items": null}"#, "the answer has no list at `/items`"),
        (r#"{"items": {}}"#, "the answer has no list at `/items`, but another value"),
    ] {
        let error = whole(by_index(), 1, 200, body);
        assert!(error.cause == Cause::BadAnswer && error.message.starts_with(problem), "{}", error.message);
    }
}

#[test]
fn an_item_that_does_not_say_whether_its_member_succeeded_leaves_it_open() {
    let body = json!({"items": [{}, {"ok": "yes"}, {"ok": false}, {"ok": false, "again": 1}]});
    let (outcomes, errors, _) = said(by_index(), 4, 200, &body);
    assert_eq!(outcomes, [Some(Unclear), Some(Unclear), Some(Failed), Some(Unclear)]);
    assert_eq!(errors[0], "`batch_api.response.ok`: `item.ok` finds no field `ok`; the item is {}");
    assert_eq!(errors[2], "{\"ok\":false}", "without its error, the item is shown");
    assert!(errors[3].starts_with("`batch_api.response.retry`: "), "{}", errors[3]);
}

#[test]
fn absence_among_exceptions_means_success_only_with_2xx_and_if_every_item_names_a_member() {
    let response = json!({
        "items": "/errors?", "match": "exceptions", "index": "item.at", "error": "item.why", "retry": "item.?again.orValue(false)",
        "statuses": [400],
    });
    let body = json!({"errors": [{"at": 1, "why": "no"}, {"at": "2", "why": "later", "again": true}]});
    let (outcomes, ..) = said(response.clone(), 4, 207, &body);
    assert_eq!(outcomes, [Some(Succeeded), Some(Failed), Some(Retry), Some(Succeeded)]);
    let (outcomes, ..) = said(response.clone(), 4, 400, &body);
    assert_eq!(outcomes, [None, Some(Failed), Some(Retry), None]);
    for none in [json!({}), json!({"errors": null}), json!({"errors": []})] {
        assert_eq!(said(response.clone(), 1, 200, &none).0, [Some(Succeeded)]);
    }
    assert_eq!(said(response.clone(), 1, 207, &json!({"errors": []})).0, [Some(Succeeded)]);
    for none in ["{}", "{\"errors\": null}"] {
        assert_eq!(whole(response.clone(), 1, 207, none).cause, Cause::BadAnswer, "outcomes differ, and none is named");
    }
    for (stranger, shown) in [
        (json!({"at": 4, "why": "x"}), "names the position 4, and there are 4 members, from 0 on"),
        (json!({"at": -1}), "names the position -1"),
        (json!({"why": "x"}), "names no member: `item.at` finds no field `at`"),
    ] {
        let (outcomes, _, problem) =
            said(response.clone(), 4, 200, &json!({"errors": [{"at": 0, "why": "no"}, stranger]}));
        assert_eq!(outcomes, [Some(Failed), None, None, None], "{shown}");
        assert!(problem.unwrap().starts_with(&format!("an item of it {shown}")));
    }
    let listed = json!({"items": ["/errors", "/x/errors?"], "match": "exceptions", "index": "item.at"});
    for other in ["{}", "{\"errors\": null}", "{\"status\": \"accepted\"}", ""] {
        let error = whole(listed.clone(), 1, 200, other);
        assert_eq!(
            (error.cause, error.retriable),
            (Cause::BadAnswer, true),
            "the list is where the mapping says: {other}"
        );
    }
    assert_eq!(said(listed, 1, 200, &json!({"x": {}, "errors": []})).0, [Some(Succeeded)]);
    // What is no object says nothing, and absence means something only in an answer that is one.
    for body in ["[]", "7", "null", "<html>"] {
        assert_eq!(whole(response.clone(), 1, 200, body).cause, Cause::BadAnswer, "{body}");
    }
    let error = whole(response, 2, 400, "{\"errors\": 3}");
    assert_eq!((error.cause, error.retriable), (Cause::Status(400), false), "it says at least that the call failed");
}

#[test]
fn ids_name_members_and_the_others_have_no_outcome() {
    let response = json!({
        "items": ["/done", "/failed"], "match": "id", "id": "item.name", "member": "content.n",
        "ok": "from == '/done'", "error": "item.why", "result": "item.r",
    });
    let body = json!({"done": [{"name": "n2", "r": 5}], "failed": [{"name": "n0", "why": "no"}]});
    let (outcomes, errors, problem) = said(response.clone(), 4, 200, &body);
    assert_eq!(
        (outcomes, errors, problem),
        (vec![Some(Failed), None, Some(Succeeded), None], vec!["no".to_owned()], None)
    );
    let strange = json!({"done": [{"name": "n0"}, {"name": "n9"}, {"name": null}]});
    let (outcomes, _, problem) = said(response.clone(), 1, 200, &strange);
    assert_eq!(outcomes, [Some(Succeeded)]);
    assert_eq!(problem.unwrap(), "an item of it names \"n9\", which no member has, and 1 others name none either");
    let twice = json!({"done": [{"name": "n0"}], "failed": [{"name": "n0", "why": "no"}]});
    let (outcomes, errors, _) = said(response.clone(), 1, 200, &twice);
    assert_eq!((outcomes, errors[0].as_str()), (vec![Some(Unclear)], "the answer has several outcomes for it"));
    assert_eq!(said_nothing(response.clone()), Cause::BadAnswer);
    let same = batch_api(json!({"url": "https://example.com/", "response": response}));
    let both = call(&[json!({"n": "x"}), json!({"n": "x"}), json!({"n": "y"})]);
    let body = json!({"done": [{"name": "x"}, {"name": "y"}]}).to_string();
    let readings = read(&same, &both, 200, body.as_bytes()).unwrap();
    assert_eq!(readings.members.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true]);
    assert!(readings.problem.unwrap().contains("names \"x\", which several members have"));
}

/// The cause of the error of an answer without any list.
fn said_nothing(response: Value) -> Cause {
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    read(&api, &call(&[json!({"n": "x"})]), 200, b"{}").unwrap_err().cause
}

#[test]
fn what_is_echoed_did_not_succeed_and_is_tried_again() {
    let response = json!({"items": "/left/${with.t}?", "match": "echo", "echo": "item.put", "member": "content"});
    let body = json!({"left": {"a/b": [{"put": {"n": "n1", "k": 2}}]}});
    let (outcomes, _, problem) = said(response.clone(), 3, 200, &body);
    assert_eq!((outcomes, problem.is_some()), (vec![None; 3], true), "what nobody sent says nothing of the others");
    let body = json!({"left": {"a/b": [{"put": {"n": "n1", "k": 1}}]}});
    let (outcomes, errors, problem) = said(response.clone(), 3, 200, &body);
    assert_eq!((outcomes, problem), (vec![Some(Succeeded), Some(Retry), Some(Succeeded)], None));
    assert_eq!(errors, ["{\"put\":{\"k\":1,\"n\":\"n1\"}}"]);
    assert_eq!(said(response.clone(), 1, 200, &json!({"left": {}})).0, [Some(Succeeded)]);
    assert_eq!(
        whole(response, 1, 200, "{\"other\": {}}").cause,
        Cause::BadAnswer,
        "what the list would stand in is missing"
    );
}

#[test]
fn a_member_may_be_named_by_its_content_as_json() {
    let response = json!({"items": "/i", "match": "id", "id": "item", "member": "json(content)", "ok": "true"});
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    let call = call(&[json!({"b": 1, "a": 2}), json!(7)]);
    let named = call.members[0].content.get();
    let readings = read(&api, &call, 200, json!({"i": [named]}).to_string().as_bytes()).unwrap();
    assert_eq!(readings.members.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn without_items_the_status_is_the_outcome_of_all() {
    let response = json!({"match": "none", "whole": {"error": "body.message", "retry": "status == 422 ? true : null"}});
    assert_eq!(said(response.clone(), 2, 200, &json!({"x": 1})).0, [Some(Succeeded); 2]);
    assert_eq!(whole(response.clone(), 2, 207, "{}").cause, Cause::BadAnswer, "outcomes differ, and it has none");
    let error = whole(response.clone(), 2, 400, r#"{"message": "bad record"}"#);
    assert_eq!(
        (error.cause, error.retriable),
        (Cause::Status(400), false),
        "a refusal of the whole call, which may be split"
    );
    assert_eq!(error.message, "the batch API answered 400: bad record");
    assert!(whole(response.clone(), 2, 422, "{}").retriable);
    let error = whole(response.clone(), 2, 503, "<html>");
    assert!(error.retriable && error.message.ends_with("503: <html>"), "{}", error.message);
    let final_one = json!({"match": "none", "whole": {"retry": "status != 409"}});
    assert!(!whole(final_one, 1, 409, "").retriable);
}

#[test]
fn a_success_may_say_that_the_call_failed() {
    let response = json!({"match": "none", "whole": {"failed": "!body.success", "retry": "body.code == 'busy'", "error": "body.code"}});
    assert_eq!(said(response.clone(), 1, 200, &json!({"success": true})).0, [Some(Succeeded)]);
    let error = whole(response.clone(), 1, 200, r#"{"success": false, "code": "bad"}"#);
    assert_eq!(
        (error.cause, error.retriable, error.message.as_str()),
        (Cause::Status(200), false, "the batch API answered 200: bad")
    );
    assert!(whole(response.clone(), 1, 200, r#"{"success": false, "code": "busy"}"#).retriable);
    let unclear = whole(response, 1, 200, "{}");
    assert_eq!(unclear.cause, Cause::BadAnswer, "what does not say so is not taken for a success");
}

#[test]
fn members_that_cannot_be_written_fail_and_the_others_are_read() {
    let api = batch_api(json!({
        "url": "https://example.com/", "request": {"body": {"${members}": "${content.name}"}},
        "response": {"items": "", "match": "index", "ok": "item"},
    }));
    let call = call(&[json!({"name": "a"}), json!({}), json!({"name": "c"})]);
    let request = Request::new(&api, &call).unwrap();
    assert_eq!(request.body, br#"["a","c"]"#);
    let readings = request.mapping.unwrap().read(&call, 200, "200", b"[true, false]").unwrap();
    let Answer::Members(members) = readings.into_answer(&call) else { panic!("it is clear") };
    assert_eq!(members.iter().map(|member| member.outcome).collect::<Vec<_>>(), [Succeeded, Failed, Failed]);
    let problem = "the request cannot be written for it: `content.name` finds no field `name`";
    assert_eq!(members[1].error.as_deref(), Some(problem));
}

/// Fanfold's own answers are about the members that a call has; those that were not sent are none of them.
#[test]
fn an_answer_of_any_batch_api_says_nothing_of_members_that_were_not_sent() {
    let api = batch_api(json!({"url": "https://example.com/", "request": {"body": {"${members}": "${content.name}"}}}));
    let call = call(&[json!({"name": "a"}), json!({})]);
    let mapping = Request::new(&api, &call).unwrap().mapping.unwrap();
    assert!(!mapping.reads());
    let [a, b] = [call.members[0].id.to_string(), call.members[1].id.to_string()];
    let all = json!({"members": [{"id": a, "outcome": "succeeded"}, {"id": b, "outcome": "succeeded"}]}).to_string();
    for body in ["", r#"{"batchItemFailures": []}"#, all.as_str()] {
        let answer = mapping.complete(Answer::read(body.as_bytes(), &call).unwrap(), &call);
        let Answer::Members(members) = answer else { panic!("it is clear") };
        let outcomes: Vec<_> = members.iter().map(|member| (member.id, member.outcome)).collect();
        assert_eq!(outcomes, [(call.members[0].id, Succeeded), (call.members[1].id, Failed)], "{body}");
    }
}

#[test]
fn a_request_that_is_too_large_counts_as_refused() {
    let api = batch_api(
        json!({"url": "https://example.com/", "request": {"max_bytes": 10, "body": {"${members}": "${content}"}}}),
    );
    assert_eq!(Request::new(&api, &call(&[json!("1234567")])).unwrap_err().cause, Cause::NotSent);
    let error = Request::new(&api, &call(&[json!("1"), json!("1234567")])).unwrap_err();
    assert_eq!(error.cause, Cause::NotSent);
    assert_eq!(error.message, "the request has more than 10 bytes, which `batch_api.request` allows; it was not sent");
}

#[test]
fn headers_and_query_are_written_with_secrets_and_the_key() {
    let api = batch_api(json!({
        "url": "https://example.com/x?a=b", "with": {"v": 2},
        "request": {
            "headers": {"Authorization": "Basic ${base64('me:' + secret.PASSWORD)}", "X-Id": "${idempotency_key}/${kind}"},
            "query": {"v": "${with.v}", "t s": "${target}&"},
        },
    }));
    let call = call(&[json!(1)]);
    let request = Request::new(&api, &call).unwrap();
    let mapping = request.mapping.unwrap();
    assert_eq!(
        request.body,
        serde_json::to_vec(&call).unwrap(),
        "without a template the body is that of any batch API"
    );
    assert_eq!((mapping.secrets(), mapping.reads()), (vec!["PASSWORD".to_owned()], false));
    let secrets = json!({"PASSWORD": "s3cret"}).as_object().unwrap().clone();
    let head = mapping.head("k1", secrets).unwrap();
    let expected = [("Authorization", "Basic bWU6czNjcmV0"), ("X-Id", "k1/row")];
    assert_eq!(head.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(head.url("https://example.com/x?a=b"), "https://example.com/x?a=b&t%20s=NY%26&v=2");
    assert_eq!(head.url("https://example.com/x"), "https://example.com/x?t%20s=NY%26&v=2");
}

proptest! {
    /// Whatever an answer is, each member has at most one outcome, and one that was not named has none but of a clear 2xx.
    #[test]
    fn any_answer_is_read_or_refused(
        matching in prop::sample::select(vec!["index", "exceptions", "id", "echo"]),
        items in prop::collection::vec(prop::sample::select(vec!["0", "1", "2", "7", "\"1\"", "null", "{}", "\"x\""]), 0..6),
        status in prop::sample::select(vec![200_u16, 207, 299, 400, 500]),
        members in 0_usize..4,
    ) {
        let mut response = json!({"items": "/i", "match": matching, "ok": "item == 0", "statuses": [400]});
        let field = match matching { "index" => None, "exceptions" => Some("index"), other => Some(other) };
        if let Some(field) = field {
            response[field] = json!("item");
        }
        if matching == "id" || matching == "echo" {
            response["member"] = json!("index");
        }
        let api = batch_api(json!({"url": "https://example.com/", "response": response}));
        let call = call(&vec![json!({}); members]);
        let body = format!("{{\"i\": [{}]}}", items.join(","));
        match read(&api, &call, status, body.as_bytes()) {
            Ok(readings) => {
                prop_assert!(status < 300 || status == 400);
                prop_assert_eq!(readings.members.len(), members);
                let silent = readings.members.iter().filter(|reading| reading.is_none()).count();
                let lists = matches!(matching, "exceptions" | "echo") && status < 300 && readings.problem.is_none();
                prop_assert!(!lists || silent == 0);
                prop_assert!(matching != "index" || items.len() == members);
            }
            Err(error) => prop_assert!(status == 500 || matching == "index", "{}", error),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..100)) {
        let api = batch_api(json!({"url": "https://example.com/", "response": by_index()}));
        let _ = read(&api, &call(&[json!(1)]), 200, &body);
    }
}
