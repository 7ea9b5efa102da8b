//! Mappings: the first line is a batch API with `request` and `response`, the second a list of contents, the third a status, the
//! rest an answer. What passes the check writes a request within its limits, and reads any answer.
#![no_main]

use fanfold::ids::TaskId;
use fanfold::limits::{ERROR_BYTES_MAX, REQUEST_BYTES_MAX};
use fanfold::policy::Policy;
use fanfold_batch_api::{Call, CallMember, Request};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let Ok(Value::Object(mut batch_api)) = serde_json::from_str(line()) else { return };
    let contents: Vec<Box<RawValue>> = serde_json::from_str(line()).unwrap_or_default();
    let status: u16 = line().parse().unwrap_or(200);
    let answer = line();
    batch_api.entry("url").or_insert_with(|| "https://example.com/".into());
    let policy = json!({"kind": "row", "target": "kind", "distinct": "kind", "batch_api": batch_api});
    let Ok(policy) = serde_json::from_value::<Policy>(policy) else { return };
    let stored = serde_json::to_value(&policy).expect("a policy can be written");
    assert_eq!(serde_json::from_value::<Policy>(stored).expect("and read again"), policy);
    if policy.check().is_err() {
        return;
    }
    let member =
        |(n, content): (usize, Box<RawValue>)| CallMember { id: TaskId::Single(Uuid::from_u128(n as u128)), content };
    let members = contents.into_iter().enumerate().map(member).collect();
    let call = Call { batch_id: Uuid::nil(), kind: "row".into(), attempt: 1, target: "row".into(), members };
    let request = match Request::new(&policy.batch_api, &call) {
        Ok(request) => request,
        Err(error) => return assert!((1..=ERROR_BYTES_MAX).contains(&error.message.len())),
    };
    assert!(request.body.len() <= REQUEST_BYTES_MAX as usize);
    let again = Request::new(&policy.batch_api, &call).expect("again");
    assert_eq!((&again.body, &again.key), (&request.body, &request.key), "the same call has the same bytes");
    let Some(mapping) = &request.mapping else { return };
    assert_eq!(mapping.sent.len() + mapping.unfit.len(), call.members.len());
    match mapping.read(&call, status, "status", answer.as_bytes()) {
        Ok(readings) => assert_eq!(readings.members.len(), call.members.len()),
        Err(error) => assert!((1..=ERROR_BYTES_MAX).contains(&error.message.len())),
    }
});
