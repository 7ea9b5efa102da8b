//! Presets on requests and answers as their documentation shows them (its addresses are in the presets' files).

use fanfold::mapping::{Preset, preset_names};

use super::*;

/// A preset's batch API, with these constants.
fn preset(name: &str, with: Value) -> BatchApi {
    batch_api(json!({"use": name, "url": "https://example.com/", "with": with}))
}

/// The request for these contents.
fn sent(api: &BatchApi, contents: &[Value]) -> (String, Vec<(String, String)>) {
    let call = call(contents);
    let request = Request::new(api, &call).unwrap();
    let mapping = request.mapping.unwrap();
    let secrets =
        mapping.secrets().into_iter().map(|name| (name.clone(), Value::String(format!("<{name}>")))).collect();
    (String::from_utf8(request.body).unwrap(), mapping.head("key", secrets).unwrap().headers)
}

fn json_sent(api: &BatchApi, contents: &[Value]) -> Value {
    serde_json::from_str(&sent(api, contents).0).unwrap()
}

/// Outcomes and errors that an answer gives so many members.
fn outcomes(api: &BatchApi, contents: &[Value], status: u16, body: &Value) -> Vec<(MemberOutcome, Option<String>)> {
    let readings = read(api, &call(contents), status, body.to_string().as_bytes()).unwrap();
    assert_eq!(readings.problem, None);
    readings
        .members
        .into_iter()
        .map(|reading| reading.map(|reading| (reading.outcome, reading.error)).unwrap())
        .collect()
}

fn error(api: &BatchApi, contents: &[Value], status: u16, body: &Value) -> (bool, String) {
    let error = read(api, &call(contents), status, body.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.cause, Cause::Status(status));
    (error.retriable, error.message)
}

fn why(outcome: MemberOutcome, error: &str) -> (MemberOutcome, Option<String>) {
    (outcome, Some(error.to_owned()))
}

const DONE: (MemberOutcome, Option<String>) = (Succeeded, None);

fn id(n: u128) -> String {
    Uuid::from_u128(n).to_string()
}

#[test]
fn every_preset_can_be_used_and_names_its_documentation() {
    for name in preset_names() {
        let preset = Preset::named(name).unwrap_or_else(|| panic!("{name}"));
        assert!(!preset.docs.is_empty() && preset.docs.iter().all(|docs| docs.starts_with("https://")), "{name}");
        assert!(preset.url.is_some() != preset.default_url.is_some(), "{name}");
        let with: Value =
            preset.with.keys().map(|name| (name.clone(), json!("x"))).collect::<Map<String, Value>>().into();
        batch_api(json!({"use": name, "url": "https://example.com/", "with": with}));
        for constant in
            preset.with.iter().filter(|(_, constant)| constant.default.is_none()).map(|(constant, _)| constant)
        {
            let mut fewer = with.clone();
            fewer.as_object_mut().unwrap().remove(constant);
            let policy = json!({"kind": "a", "target": "kind", "distinct": "kind",
                "batch_api": {"use": name, "url": "https://example.com/", "with": fewer}});
            let error = serde_json::from_value::<Policy>(policy).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`batch_api.with.{constant}`: is missing: `{name}` needs ")), "{error}");
        }
    }
}

/// The table in docs/batch-apis.md has a row for each, with its limit and its constants.
#[test]
fn the_documentation_lists_every_preset() {
    let document = include_str!("../../../../docs/batch-apis.md");
    for name in preset_names() {
        let preset = Preset::named(name).unwrap();
        let row = document
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | ")))
            .unwrap_or_else(|| panic!("{name}"));
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for constant in preset.with.keys() {
            assert!(columns[2].contains(&format!("`{constant}`")), "{name}: {constant}");
        }
        let most = preset.limits.max_batch.map_or_else(|| "none".to_owned(), |most| most.to_string());
        assert!(columns[4].replace(',', "").starts_with(&most), "{name}: {most}");
        let matching = serde_json::to_value(preset.response.matching.unwrap()).unwrap();
        assert_eq!(columns[6], matching, "{name}");
        for secret in [&preset.request.headers].into_iter().flat_map(|headers| headers.values()) {
            if let Some((_, rest)) = secret.split_once("secret.") {
                let name = rest.trim_end_matches('}');
                assert!(document.contains(&format!("`{name}`")), "{name}");
            }
        }
    }
}

/// Others ignored errors of items in an answer whose status is 200, or counted wrong after a partial retry.
#[test]
fn elasticsearch() {
    let api = preset("elasticsearch", json!({}));
    let contents = [json!({"a": 1}), json!({"a": "x"}), json!({"a": 3})];
    let (body, headers) = sent(&api, &contents);
    let lines: Vec<String> = contents
        .iter()
        .enumerate()
        .flat_map(|(n, content)| [json!({"index": {"_id": id(n as u128)}}).to_string(), content.to_string()])
        .collect();
    assert_eq!(body, lines.join("\n") + "\n");
    assert!(headers.is_empty());
    let answer = json!({"took": 486, "errors": true, "items": [
        {"index": {"_index": "i", "_id": id(0), "_version": 1, "result": "created", "_seq_no": 0, "_primary_term": 1, "status": 201}},
        {"index": {"_index": "i", "_id": id(1), "status": 400, "error": {"type": "document_parsing_exception",
            "reason": "[1:5] failed to parse field [a] of type [long]", "caused_by": {"type": "illegal_argument_exception"}}}},
        {"index": {"_index": "i", "_id": id(2), "status": 429, "error": {"type": "es_rejected_execution_exception",
            "reason": "rejected execution of coordinating operation"}}},
    ]});
    let expected = [
        DONE,
        why(Failed, "document_parsing_exception: [1:5] failed to parse field [a] of type [long]"),
        why(Retry, "es_rejected_execution_exception: rejected execution of coordinating operation"),
    ];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
    let rejected = json!({"error": {"root_cause": [], "type": "es_rejected_execution_exception"}, "status": 429});
    assert!(error(&api, &contents, 429, &rejected).0);
    let create = preset("elasticsearch", json!({"action": "create"}));
    let conflict = json!({"items": [{"create": {"_id": id(0), "status": 409, "error": {"type": "version_conflict_engine_exception",
        "reason": "document already exists"}}}]});
    // The document has the task's own id: it is from a call whose answer was lost.
    assert_eq!(outcomes(&create, &contents[..1], 200, &conflict), [(Succeeded, None)]);
}

#[test]
fn ses() {
    let api = preset("ses", json!({"from": "us@example.com", "template": "hello"}));
    let contents = [json!({"to": "a@example.com", "data": {"name": "A"}}), json!({"to": "b@example.com", "data": {}})];
    let expected = json!({
        "FromEmailAddress": "us@example.com",
        "DefaultContent": {"Template": {"TemplateName": "hello", "TemplateData": "{}"}},
        "BulkEmailEntries": [
            {"Destination": {"ToAddresses": ["a@example.com"]},
             "ReplacementEmailContent": {"ReplacementTemplate": {"ReplacementTemplateData": "{\"name\":\"A\"}"}}},
            {"Destination": {"ToAddresses": ["b@example.com"]},
             "ReplacementEmailContent": {"ReplacementTemplate": {"ReplacementTemplateData": "{}"}}},
        ]
    });
    assert_eq!(json_sent(&api, &contents), expected);
    let answer = json!({"BulkEmailEntryResults": [
        {"Status": "SUCCESS", "MessageId": "0100"},
        {"Status": "ACCOUNT_THROTTLED", "Error": "Maximum sending rate exceeded."},
    ]});
    assert_eq!(
        outcomes(&api, &contents, 200, &answer),
        [DONE, why(Retry, "ACCOUNT_THROTTLED: Maximum sending rate exceeded.")]
    );
    let rejected = json!({"BulkEmailEntryResults": [{"Status": "MESSAGE_REJECTED"}, {"Status": "SUCCESS"}]});
    assert_eq!(outcomes(&api, &contents, 200, &rejected), [why(Failed, "MESSAGE_REJECTED"), DONE]);
}

#[test]
fn openai_embeddings() {
    let api = batch_api(json!({"use": "openai-embeddings"}));
    assert_eq!(api.way, fanfold::policy::Way::Url("https://api.openai.com/v1/embeddings".to_owned()));
    let contents = [json!({"input": "a"}), json!({"input": "b"})];
    let (body, headers) = sent(&api, &contents);
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!({"model": "text-embedding-3-small", "input": ["a", "b"]})
    );
    assert_eq!(headers, [("Authorization".to_owned(), "Bearer <OPENAI_API_KEY>".to_owned())]);
    let answer = json!({"object": "list", "model": "text-embedding-3-small", "usage": {"prompt_tokens": 2, "total_tokens": 2}, "data": [
        {"object": "embedding", "index": 1, "embedding": [0.5]}, {"object": "embedding", "index": 0, "embedding": [0.25]},
    ]});
    let readings = read(&api, &call(&contents), 200, answer.to_string().as_bytes()).unwrap();
    let results: Vec<Option<Value>> = readings.members.into_iter().map(|reading| reading.unwrap().result).collect();
    assert_eq!(results, [Some(json!([0.25])), Some(json!([0.5]))], "by their index, and not by their order");
    let bad = json!({"error": {"message": "'$.input' is invalid.", "type": "invalid_request_error", "param": null, "code": null}});
    assert_eq!(
        error(&api, &contents, 400, &bad),
        (false, "the batch API answered 400: '$.input' is invalid.".to_owned())
    );
}

#[test]
fn kinesis() {
    let api = preset("kinesis", json!({"stream": "orders"}));
    let contents = [json!({"a": 1}), json!({"a": 2}), json!({"a": 3})];
    let (body, headers) = sent(&api, &contents[..1]);
    let expected = json!({"StreamName": "orders", "Records": [{"Data": "eyJhIjoxfQ==", "PartitionKey": id(0)}]});
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    assert!(headers.contains(&("X-Amz-Target".to_owned(), "Kinesis_20131202.PutRecords".to_owned())));
    let answer = json!({"FailedRecordCount": 2, "Records": [
        {"SequenceNumber": "49543463076548007577105092703039560359975228518395019266", "ShardId": "shardId-000000000000"},
        {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "Rate exceeded for shard shardId-000000000001"},
        {"ErrorCode": "InternalFailure", "ErrorMessage": "Internal service failure."},
    ]});
    let throttled = "ProvisionedThroughputExceededException: Rate exceeded for shard shardId-000000000001";
    let expected = [DONE, why(Retry, throttled), why(Retry, "InternalFailure: Internal service failure.")];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
    // AWS APIs say by a status 400 that a call is to be repeated.
    let throttled =
        json!({"__type": "com.amazonaws.kinesis#ProvisionedThroughputExceededException", "message": "Rate exceeded"});
    assert!(error(&api, &contents, 400, &throttled).0);
    assert!(!error(&api, &contents, 400, &json!({"__type": "ResourceNotFoundException", "message": "no stream"})).0);
}

#[test]
fn eventbridge() {
    let api = preset("eventbridge", json!({"source": "shop", "detail_type": "order"}));
    let contents = [json!({"a": 1}), json!({"a": 2})];
    let entry =
        |detail: &str| json!({"Source": "shop", "DetailType": "order", "EventBusName": "default", "Detail": detail});
    assert_eq!(json_sent(&api, &contents), json!({"Entries": [entry("{\"a\":1}"), entry("{\"a\":2}")]}));
    let answer = json!({"FailedEntryCount": 1, "Entries": [
        {"EventId": "11710aed-b79e-4468-a20b-bb3c0c3b4860"},
        {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."},
    ]});
    assert_eq!(outcomes(&api, &contents, 200, &answer), [DONE, why(Failed, "MalformedDetail: Detail is malformed.")]);
}

#[test]
fn sqs() {
    let api = preset("sqs", json!({"queue_url": "https://sqs.us-east-1.amazonaws.com/177715257436/MyQueue/"}));
    let contents = [json!({"a": 1}), json!("x"), json!(3)];
    let expected = json!({"QueueUrl": "https://sqs.us-east-1.amazonaws.com/177715257436/MyQueue/", "Entries": [
        {"Id": "0", "MessageBody": "{\"a\":1}"}, {"Id": "1", "MessageBody": "\"x\""}, {"Id": "2", "MessageBody": "3"},
    ]});
    assert_eq!(json_sent(&api, &contents), expected);
    let answer = json!({
        "Successful": [{"Id": "1", "MessageId": "6e2d0b3d", "MD5OfMessageBody": "0e024d"}],
        "Failed": [
            {"Id": "0", "SenderFault": true, "Code": "InvalidMessageContents", "Message": "bad character"},
            {"Id": "2", "SenderFault": false, "Code": "InternalError"},
        ]
    });
    let expected = [why(Failed, "InvalidMessageContents: bad character"), DONE, why(Retry, "InternalError")];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
    let all = json!({"Successful": [{"Id": "0"}, {"Id": "2"}, {"Id": "1"}]});
    assert_eq!(outcomes(&api, &contents, 200, &all), [DONE, DONE, DONE]);
}

#[test]
fn dynamodb() {
    let api = preset("dynamodb", json!({"table": "Forum"}));
    let item = |name: &str| json!({"k": {"S": name}, "Category": {"S": "Amazon Web Services"}});
    let contents = [item("DynamoDB"), item("RDS"), item("Redshift")];
    let put = |name: &str| json!({"PutRequest": {"Item": item(name)}});
    assert_eq!(
        json_sent(&api, &contents),
        json!({"RequestItems": {"Forum": [put("DynamoDB"), put("RDS"), put("Redshift")]}})
    );
    let answer = json!({"UnprocessedItems": {"Forum": [put("RDS")]}});
    let expected = [DONE, why(Retry, "DynamoDB did not process it"), DONE];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
    assert_eq!(outcomes(&api, &contents, 200, &json!({"UnprocessedItems": {}})), [DONE, DONE, DONE]);
    let invalid = json!({"__type": "com.amazon.coral.validate#ValidationException", "message": "Provided list of item keys contains duplicates"});
    assert!(!error(&api, &contents, 400, &invalid).0);
}

#[test]
fn bigquery() {
    let api = preset("bigquery", json!({}));
    let contents = [json!({"a": 1}), json!({"a": "x"}), json!({"a": 3})];
    let row = |n: usize| json!({"insertId": id(n as u128), "json": contents[n]});
    assert_eq!(json_sent(&api, &contents), json!({"skipInvalidRows": true, "rows": [row(0), row(1), row(2)]}));
    let answer = json!({"kind": "bigquery#tableDataInsertAllResponse", "insertErrors": [
        {"index": 1, "errors": [{"reason": "invalid", "location": "a", "debugInfo": "", "message": "Cannot convert value to integer: x"}]},
        {"index": 2, "errors": [{"reason": "stopped", "location": "", "debugInfo": "", "message": ""}]},
    ]});
    let expected = [DONE, why(Failed, "invalid: Cannot convert value to integer: x"), why(Retry, "stopped:")];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
    assert_eq!(
        outcomes(&api, &contents, 200, &json!({"kind": "bigquery#tableDataInsertAllResponse"})),
        [DONE, DONE, DONE]
    );
    let missing = json!({"error": {"code": 404, "message": "Not found: Table p:d.t", "status": "NOT_FOUND"}});
    assert_eq!(error(&api, &contents, 404, &missing).1, "the batch API answered 404: Not found: Table p:d.t");
}

#[test]
fn salesforce() {
    let api = preset("salesforce", json!({}));
    let contents = [
        json!({"attributes": {"type": "Account"}, "Name": "a"}),
        json!({"attributes": {"type": "Account"}}),
        json!({"attributes": {"type": "Account"}, "Name": "c"}),
    ];
    assert_eq!(json_sent(&api, &contents), json!({"allOrNone": false, "records": contents}));
    let answer = json!([
        {"id": "001RM000003oLnnYAE", "success": true, "errors": []},
        {"success": false, "errors": [{"statusCode": "REQUIRED_FIELD_MISSING", "message": "Required fields are missing: [Name]", "fields": ["Name"]}]},
        {"success": false, "errors": [{"statusCode": "UNABLE_TO_LOCK_ROW", "message": "unable to obtain exclusive access to this record", "fields": []}]},
    ]);
    let expected = [
        DONE,
        why(Failed, "REQUIRED_FIELD_MISSING: Required fields are missing: [Name]"),
        why(Retry, "UNABLE_TO_LOCK_ROW: unable to obtain exclusive access to this record"),
    ];
    assert_eq!(outcomes(&api, &contents, 200, &answer), expected);
}

#[test]
fn resend() {
    let api = batch_api(json!({"use": "resend"}));
    let contents = [json!({"from": "a@example.com", "to": ["b@example.com"]}), json!({"from": "a@example.com"})];
    let (body, headers) = sent(&api, &contents);
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!(contents));
    assert!(headers.contains(&("x-batch-validation".to_owned(), "permissive".to_owned())));
    let answer = json!({"data": [{"id": "ae2014de-c168-4c61-8267-70d2662a1ce1"}],
        "errors": [{"index": 1, "message": "The `to` field is missing."}]});
    assert_eq!(outcomes(&api, &contents, 200, &answer), [DONE, why(Failed, "The `to` field is missing.")]);
    assert_eq!(outcomes(&api, &contents, 200, &json!({"data": [{"id": "a"}, {"id": "b"}]})), [DONE, DONE]);
}

#[test]
fn hubspot() {
    let api = preset("hubspot", json!({}));
    let contents =
        [json!({"properties": {"subject": "a"}}), json!({"properties": {"missing": "b"}, "associations": []})];
    let expected = json!({"inputs": [
        {"properties": {"subject": "a"}, "objectWriteTraceId": "0"},
        {"properties": {"missing": "b"}, "associations": [], "objectWriteTraceId": "1"},
    ]});
    assert_eq!(json_sent(&api, &contents), expected);
    let answer = json!({
        "status": "COMPLETE", "numErrors": 1,
        "results": [{"id": "1145814089", "properties": {"subject": "a"}, "archived": false}],
        "errors": [{"status": "error", "category": "VALIDATION_ERROR", "message": "Property values were not valid",
            "context": {"objectWriteTraceId": ["1"]}}],
    });
    assert_eq!(
        outcomes(&api, &contents, 207, &answer),
        [DONE, why(Failed, "VALIDATION_ERROR: Property values were not valid")]
    );
    // An error that names no input may be about any of them.
    let unnamed =
        json!({"errors": [{"status": "error", "category": "VALIDATION_ERROR", "message": "no", "context": {}}]});
    let readings = read(&api, &call(&contents), 207, unnamed.to_string().as_bytes()).unwrap();
    assert!(readings.members.iter().all(Option::is_none) && readings.problem.is_some());
}

#[test]
fn algolia() {
    let api = preset("algolia", json!({"application": "APP"}));
    let contents = [json!({"objectID": "a"}), json!({"objectID": "b"})];
    let (body, headers) = sent(&api, &contents);
    let request = |n: usize| json!({"action": "addObject", "body": contents[n]});
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), json!({"requests": [request(0), request(1)]}));
    let expected = [("x-algolia-api-key", "<ALGOLIA_API_KEY>"), ("x-algolia-application-id", "APP")];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(
        outcomes(&api, &contents, 200, &json!({"taskID": 1514562690001_u64, "objectIDs": ["a", "b"]})),
        [DONE, DONE]
    );
    let bad = json!({"message": "Record at the position 1 is too big", "status": 400});
    assert_eq!(
        error(&api, &contents, 400, &bad),
        (false, "the batch API answered 400: Record at the position 1 is too big".to_owned())
    );
}
