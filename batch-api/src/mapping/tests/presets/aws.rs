//! Presets of AWS services.

use super::*;

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
    assert_eq!(cause(&api, &contents, &throttled), (Cause::Status(429), true));
    let missing = json!({"__type": "ResourceNotFoundException", "message": "no stream"});
    assert_eq!(cause(&api, &contents, &missing), (Cause::Status(404), false));
}

/// The cause of an error 400, and whether the call is repeated.
fn cause(api: &BatchApi, contents: &[Value], body: &Value) -> (Cause, bool) {
    let error = read(api, &call(contents), 400, body.to_string().as_bytes()).unwrap_err();
    (error.cause, error.retriable)
}

/// AWS answers 400 to what concerns every call: nothing is wrong with the members, which are not split.
#[test]
fn errors_of_every_call_are_no_members_fault() {
    for (name, with) in [
        ("kinesis", json!({"stream": "s"})),
        ("eventbridge", json!({"source": "s", "detail_type": "t"})),
        ("sqs", json!({"queue_url": "q"})),
        ("dynamodb", json!({"table": "t"})),
        ("ses", json!({"from": "a@example.com", "template": "t"})),
    ] {
        let api = preset(name, with);
        let contents = [json!({"k": 1}), json!({"k": 2})];
        for code in
            ["ThrottlingException", "AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException"]
        {
            let (of, _) =
                cause(&api, &contents, &json!({"__type": format!("com.amazon.coral.service#{code}"), "message": "no"}));
            assert!(of.concerns_every_batch() && !of.may_be_one_member(), "{name}: {code}: {of:?}");
        }
        let own = json!({"__type": "com.amazon.coral.validate#ValidationException", "message": "bad record"});
        assert_eq!(cause(&api, &contents, &own), (Cause::Status(400), false), "{name}");
        let members = call(&contents);
        let mut mapping = Request::new(&api, &members).unwrap().mapping.unwrap();
        mapping.error_type = Some("SendingPausedException:http://internal.amazon.com/x".to_owned());
        let error = mapping.read(&members, 400, "400", b"{\"message\": \"no\"}").unwrap_err();
        assert_eq!(error.cause, Cause::Status(403), "{name}: the header names the error, too");
    }
    let unsigned = batch_api(json!({"url": "https://example.com/", "response": {"match": "none"}}));
    let denied = json!({"__type": "AccessDeniedException"});
    assert_eq!(cause(&unsigned, &[json!(1)], &denied), (Cause::Status(400), false), "it is no API of AWS");
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
