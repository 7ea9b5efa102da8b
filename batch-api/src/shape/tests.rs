//! Requests as presets write them are read, and answers as they are given are read by the preset.

use fanfold::ids::TaskId;
use fanfold::mapping::preset_names;
use fanfold::policy::BatchApi;
use proptest::prelude::*;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::*;
use crate::MemberOutcome::{Failed, Retry, Succeeded};
use crate::{Call, CallError, CallMember, Mapping, Request};

/// The batch API of a preset, and contents that it takes.
fn example(name: &str) -> (BatchApi, fn(usize) -> Value) {
    let (with, content): (Value, fn(usize) -> Value) = match name {
        "algolia" => (json!({"application": "A"}), |n| json!({"objectID": format!("o{n}")})),
        "dynamodb" => (json!({"table": "T"}), |n| json!({"id": {"S": n.to_string()}})),
        "eventbridge" => (json!({"source": "s", "detail_type": "t"}), |n| json!({ "n": n })),
        "hubspot" => (json!({}), |n| json!({"properties": {"n": n}})),
        "kinesis" => (json!({"stream": "s"}), |n| json!([n, "ü"])),
        "openai-embeddings" => (json!({}), |n| json!({"input": format!("text {n}")})),
        "ses" => {
            (json!({"from": "a@example.com", "template": "t"}), |n| json!({"to": "b@example.com", "data": {"n": n}}))
        }
        "sqs" => (json!({"queue_url": "q"}), |n| json!(n)),
        "elasticsearch" => (json!({"action": "create"}), |n| json!({ "n": n })),
        _ => (json!({}), |n| json!({ "n": n })),
    };
    let api = json!({"use": name, "url": "https://example.com/", "with": with});
    (serde_json::from_value(api).unwrap(), content)
}

fn call(contents: &[Value]) -> Call {
    let member = |(n, content): (usize, &Value)| CallMember {
        id: TaskId::Single(Uuid::from_u128(n as u128)),
        content: RawValue::from_string(content.to_string()).unwrap(),
    };
    let members = contents.iter().enumerate().map(member).collect();
    Call { batch_id: Uuid::from_u128(7), kind: "row".to_owned(), attempt: 1, target: "NY".to_owned(), members }
}

fn read(mapping: &Mapping, call: &Call, reply: &Reply) -> Result<Vec<Option<MemberOutcome>>, CallError> {
    let mut mapping = mapping.clone();
    let error_type = reply.headers.iter().find(|(name, _)| name == "x-amzn-errortype");
    mapping.error_type = error_type.map(|(_, value)| value.clone());
    let body = reply.body.to_string();
    let readings = mapping.read(call, reply.status, &reply.status.to_string(), body.as_bytes())?;
    assert_eq!(readings.problem, None, "{body}");
    Ok(readings.members.into_iter().map(|reading| reading.map(|reading| reading.outcome)).collect())
}

/// All the ways in which three members can end, as far as the API can say them.
#[test]
fn what_is_answered_for_each_member_is_what_its_preset_reads() {
    for name in preset_names() {
        let (api, content) = example(name);
        let shape = Shape::of_preset(name).unwrap_or_else(|| panic!("{name}"));
        let contents: Vec<Value> = (0..3).map(content).collect();
        let call = call(&contents);
        let request = Request::new(&api, &call).unwrap();
        let sent = shape.read(&request.body).unwrap();
        assert_eq!(sent.members.iter().map(|member| member.content.clone()).collect::<Vec<_>>(), contents, "{name}");
        for (sent, member) in sent.members.iter().zip(&call.members) {
            assert!(sent.id.as_ref().is_none_or(|id| *id == member.id.to_string()), "{name}");
        }
        let mapping = request.mapping.unwrap();
        for n in 0..27 {
            let outcomes = [n / 9, n / 3 % 3, n % 3].map(|n| [Succeeded, Failed, Retry][n]);
            if outcomes.iter().all(|outcome| shape.says(*outcome)) {
                let reply = shape.done(&sent, &outcomes.map(|outcome| (outcome, "because")), 5);
                let found = read(&mapping, &call, &reply).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(found, outcomes.map(Some), "{name}: {}", reply.body);
            }
        }
    }
}

#[test]
fn what_is_answered_for_the_call_is_what_its_preset_reads() {
    for name in preset_names() {
        let (api, content) = example(name);
        let shape = Shape::of_preset(name).unwrap();
        let call = call(&[content(0), content(1)]);
        let mapping = Request::new(&api, &call).unwrap().mapping.unwrap();
        let of = |reply: Reply| read(&mapping, &call, &reply).unwrap_err();
        let refused = of(shape.refused("no good"));
        assert!(refused.cause.may_be_one_member() && !refused.retriable, "{name}: {refused:?}");
        assert!(refused.message.contains("no good"), "{name}: {refused}");
        let busy = of(shape.busy("too many"));
        assert!(busy.cause.concerns_every_batch() && busy.retriable, "{name}: {busy:?}");
        let broken = of(shape.broken("broken"));
        assert!(broken.retriable && !broken.cause.concerns_every_batch(), "{name}: {broken:?}");
    }
}

#[test]
fn what_exceeds_the_limits_of_the_api_is_refused() {
    for name in preset_names() {
        let (api, content) = example(name);
        let shape = Shape::of_preset(name).unwrap();
        let Some(most) = Preset::named(name).unwrap().limits.max_batch else { continue };
        let body = |members: u32| {
            let contents: Vec<Value> = (0..members as usize).map(content).collect();
            Request::new(&api, &call(&contents)).unwrap().body
        };
        assert_eq!(shape.read(&body(most)).unwrap().members.len(), most as usize, "{name}");
        let problem = shape.read(&body(most + 1)).unwrap_err();
        assert_eq!(problem, format!("the request has {} members, at most {most} are allowed", most + 1));
    }
    let (api, _) = example("sqs");
    let large = Request::new(&api, &call(&[json!("x".repeat(1_048_577))])).unwrap().body;
    let problem = Shape::of_preset("sqs").unwrap().read(&large).unwrap_err();
    assert_eq!(problem, "the members of the request have 1048579 bytes, at most 1048576 are allowed");
}

#[test]
fn what_the_api_does_not_take_is_refused_by_name() {
    for (name, body, expected) in [
        ("ses", "{}", "the request has no `/BulkEmailEntries`"),
        ("ses", "{", "the request is not JSON: EOF"),
        ("salesforce", r#"{"allOrNone": true, "records": [1]}"#, "`/allOrNone` is true, and false is expected"),
        (
            "salesforce",
            r#"{"allOrNone": false, "records": []}"#,
            "`/records` is [], and a list with 1 values per member",
        ),
        ("elasticsearch", "{\"index\": {\"_id\": \"a\"}}\n", "a list with 2 values per member is expected"),
        (
            "sqs",
            r#"{"QueueUrl": "q", "Entries": [{"Id": "0", "MessageBody": "{"}]}"#,
            "`/Entries/0/MessageBody` is \"{\"",
        ),
        ("resend", "{\"a\": 1}", "`/` is {\"a\":1}, and a list"),
    ] {
        let problem = Shape::of_preset(name).unwrap().read(body.as_bytes()).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
    assert!(Shape::of_preset("sap").is_none());
}

#[test]
fn fanfolds_own_json_is_taken_and_answered() {
    let shape = Shape::own().unwrap();
    let call = call(&[json!({"a": 1}), json!(2), json!(null)]);
    let sent = shape.read(&serde_json::to_vec(&call).unwrap()).unwrap();
    assert_eq!(sent.members[0].name(), call.members[0].id.to_string());
    assert_eq!(sent.members[0].content, json!({"a": 1}));
    let outcomes = [(Succeeded, ""), (Failed, "no"), (Retry, "later")];
    let reply = shape.done(&sent, &outcomes, 1);
    let answer = crate::Answer::read_success(reply.status, reply.body.to_string().as_bytes(), &call).unwrap();
    let crate::Answer::Members(members) = answer else { panic!("{answer:?}") };
    let found: Vec<_> = members.iter().map(|member| (member.outcome, member.error.as_deref())).collect();
    assert_eq!(found, [(Succeeded, None), (Failed, Some("no")), (Retry, Some("later"))]);
    assert!(shape.keeps_keys() && Shape::of_preset("resend").unwrap().keeps_keys());
    assert!(!Shape::of_preset("ses").unwrap().keeps_keys());
}

proptest! {
    /// Whatever comes is read or refused, and what is read can be answered.
    #[test]
    fn any_request_is_read_or_refused(
        name in prop::sample::select(preset_names()),
        parts in prop::collection::vec(
            prop::sample::select(vec!["{", "}", "[", "]", ":", ",", "\"Entries\"", "\"records\"", "\"x\"", "1", "null", "\n", "{}"]),
            0..12,
        ),
    ) {
        let shape = Shape::of_preset(name).unwrap();
        if let Ok(sent) = shape.read(parts.concat().as_bytes()) {
            let outcomes = vec![(Succeeded, ""); sent.members.len()];
            prop_assert!(shape.done(&sent, &outcomes, 1).status < 300);
        }
    }
}
