//! Presets of other services.

use super::*;

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
    // Too many calls, and no missing permission.
    let busy =
        json!({"error": {"code": 403, "message": "Exceeded rate limits", "errors": [{"reason": "rateLimitExceeded"}]}});
    let busy = read(&api, &call(&contents), 403, busy.to_string().as_bytes()).unwrap_err();
    assert_eq!((busy.cause, busy.retriable), (Cause::Status(429), true));
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
    for (code, cause) in [("REQUEST_LIMIT_EXCEEDED", 429), ("API_DISABLED_FOR_ORG", 403)] {
        let refused = json!([{"message": "no", "errorCode": code}]);
        let error = read(&api, &call(&contents), 403, refused.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            (error.cause, error.message),
            (Cause::Status(cause), format!("the batch API answered 403: {code}: no"))
        );
    }
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
    // An error that names no input may be about any of them. If nothing was created, it is about the call, which is split.
    let unnamed =
        json!({"errors": [{"status": "error", "category": "VALIDATION_ERROR", "message": "no", "context": {}}]});
    assert_eq!(
        read(&api, &call(&contents), 207, unnamed.to_string().as_bytes()).unwrap_err(),
        CallError::new(Cause::Status(400), "the batch API answered 207: VALIDATION_ERROR: no")
    );
    let mut partly = unnamed;
    partly["results"] = json!([{"id": "1"}]);
    let readings = read(&api, &call(&contents), 207, partly.to_string().as_bytes()).unwrap();
    assert!(readings.members.iter().all(Option::is_none) && readings.problem.is_some());
    let named = json!({"results": [], "errors": answer["errors"]});
    let readings =
        read(&api, &call(&contents[..1]), 207, named.to_string().replace("\"1\"", "\"0\"").as_bytes()).unwrap();
    assert_eq!(readings.members[0].as_ref().unwrap().outcome, Failed);
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
