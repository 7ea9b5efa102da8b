//! Names, codes, delays and statuses that answers give.

use super::*;

#[test]
fn a_number_is_the_same_however_it_is_written() {
    let response = json!({"items": "/left", "match": "echo", "echo": "item", "member": "content.k"});
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    let contents = ["1", "2.0", "3e2", "0.5", "-0.0", "{\"a\":[1.0]}", "9007199254740993", "\"4.0\""];
    let contents: Vec<Value> =
        contents.iter().map(|json| json!({"k": serde_json::from_str::<Value>(json).unwrap()})).collect();
    let left = r#"{"left": [1.0, 2, 300, 0.5, 0, {"a": [1]}, 9007199254740993, 4]}"#;
    let readings = read(&api, &call(&contents), 200, left.as_bytes()).unwrap();
    let named: Vec<bool> = readings.members.iter().map(Option::is_some).collect();
    assert_eq!(named, [true, true, true, true, true, true, true, false], "the text 4.0 is no number");
}

#[test]
fn a_member_that_the_answer_could_not_name_is_not_sent() {
    let response = json!({"items": "/i", "match": "id", "id": "item.n", "member": "content.n", "ok": "true"});
    let request = json!({"body": {"${members}": {"v": "${content.v}", "at": "${index}"}}});
    let api = batch_api(json!({"url": "https://example.com/", "request": request, "response": response.clone()}));
    let members = call(&[json!({"v": 1}), json!({"v": 2, "n": "b"}), json!({"n": "c"}), json!({"v": 4, "n": "d"})]);
    let request = Request::new(&api, &members).unwrap();
    assert_eq!(request.body, br#"[{"at":0,"v":2},{"at":1,"v":4}]"#);
    let readings = request.mapping.unwrap().read(&members, 200, "200", br#"{"i": [{"n": "d"}, {"n": "b"}]}"#).unwrap();
    let outcomes: Vec<_> = readings.members.iter().map(|reading| reading.as_ref().unwrap().outcome).collect();
    assert_eq!(outcomes, [Failed, Succeeded, Failed, Succeeded]);
    let why = readings.members[0].as_ref().unwrap().error.clone().unwrap();
    assert!(why.contains("`batch_api.response.member`: `content.n` finds no field `n`"), "{why}");
    // Without a template the request has all members: it is split until the nameless one stands alone.
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    let error = Request::new(&api, &members).unwrap_err();
    assert!(error.cause.may_be_one_member() && !error.cause.is_of_a_call(), "{error}");
    assert!(error.message.starts_with("the call was not sent, as its answer could not name the task"), "{error}");
}

#[test]
fn an_item_may_have_a_code_and_ask_for_a_delay() {
    let response = json!({
        "items": "/i", "match": "index", "ok": "item.ok", "retry": "item.?again.orValue(false)", "error": "item.why",
        "code": "item.code", "retry_after": "item.wait",
    });
    let api = batch_api(json!({"url": "https://example.com/", "response": response}));
    let body = json!({"i": [
        {"ok": true, "code": "fine"}, {"ok": false, "code": "E7", "wait": 9}, {"ok": false, "again": true, "code": 429, "wait": 1.5},
        {"ok": false, "again": true, "wait": "30"}, {"ok": false, "again": true, "wait": "soon", "code": null},
    ]});
    let readings = read(&api, &call(&vec![json!({}); 5]), 200, body.to_string().as_bytes()).unwrap();
    let said: Vec<_> =
        readings.members.iter().flatten().map(|reading| (reading.code.as_deref(), reading.retry_after)).collect();
    let seconds = |seconds| Some(std::time::Duration::from_secs_f64(seconds));
    assert_eq!(
        said,
        [(None, None), (Some("E7"), None), (Some("429"), seconds(1.5)), (None, seconds(30.0)), (None, None)]
    );
    let Answer::Members(members) = readings.into_answer(&call(&vec![json!({}); 5])) else { panic!("it is clear") };
    assert_eq!((members[2].code.as_deref(), members[2].retry_after), (Some("429"), seconds(1.5)));
}

#[test]
fn a_failed_call_counts_as_the_status_that_the_mapping_says() {
    let status = "body.error == 'quota' ? 429 : body.error == 'key' ? 403 : body.error == 'odd' ? 200 : null";
    let response = json!({"match": "none", "whole": {"status": status, "failed": "has(body.error)"}});
    for (answered, body, cause) in [
        (400, r#"{"error": "quota"}"#, Cause::Status(429)),
        (400, r#"{"error": "key"}"#, Cause::Status(403)),
        (200, r#"{"error": "quota"}"#, Cause::Status(429)),
        (400, r#"{"error": "other"}"#, Cause::Status(400)),
        (400, r#"{"error": "odd"}"#, Cause::Status(400)),
        (400, "<html>", Cause::Status(400)),
    ] {
        let error = whole(response.clone(), 2, answered, body);
        assert_eq!((error.cause, error.retriable), (cause, cause == Cause::Status(429)), "{body}");
    }
}

#[test]
fn of_many_items_that_name_no_member_the_first_is_shown() {
    let response = json!({"items": "/i", "match": "exceptions", "index": "item"});
    let body = json!({"i": (0..100_000).map(|n| n + 7).collect::<Vec<_>>()});
    let (outcomes, _, problem) = said(response, 1, 200, &body);
    let expected =
        "an item of it names the position 7, and there are 1 members, from 0 on, and 99999 others name none either";
    assert_eq!((outcomes, problem.as_deref()), (vec![None], Some(expected)));
}
