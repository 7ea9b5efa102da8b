//! How a batch API is read, and what is wrong with it.

use super::*;
use crate::json::shape;
use serde_json::{Value, json};

#[test]
fn each_way_is_written_as_it_is_read() {
    for (json, way) in [
        (json!({"url": "https://example.com/", "timeout": "20s"}), Way::Url("https://example.com/".to_owned())),
        (json!({"lambda": "book:live", "timeout": "20s"}), Way::Lambda("book:live".to_owned())),
        (json!({"sqs": "arn:aws:sqs:eu-west-1:123456789012:books", "timeout": "20s"}), {
            Way::Sqs("arn:aws:sqs:eu-west-1:123456789012:books".to_owned())
        }),
        (json!({"command": ["./book", "-v"], "timeout": "20s"}), {
            Way::Command(vec!["./book".to_owned(), "-v".to_owned()])
        }),
    ] {
        let read: BatchApi = shape(json.clone()).unwrap();
        assert_eq!(read, BatchApi::new(way, Span::from_secs(20)));
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
        assert!(json.get(read.way.field()).is_some() && Way::FIELDS.contains(read.way.field()));
    }
}

#[test]
fn a_function_has_a_name() {
    let faults = |batch_api: Value| {
        let policy = json!({"kind": "parcel", "target": "kind", "batch_api": batch_api});
        let checked = shape::<super::super::Policy>(policy).unwrap().check();
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    };
    for right in ["book", "book:live", "book:$LATEST", "arn:aws:lambda:eu-west-1:123456789012:function:book:7"] {
        assert_eq!(faults(json!({"lambda": right})), "", "{right}");
    }
    for wrong in ["", "a book", "arn:aws:sqs:eu-west-1:123456789012:book", "https://example.com/"] {
        let expected = format!("`batch_api.lambda`: is `{wrong}`, the name or ARN of a Lambda function");
        assert!(faults(json!({"lambda": wrong})).starts_with(&expected), "{wrong}");
    }
    let mapped = faults(json!({"lambda": "book", "response": {"match": "none"}, "answers_within": "1h"}));
    assert_eq!(mapped.matches("is about HTTP, and the batch API is a `lambda`; `url` is allowed").count(), 1);
    assert_eq!(mapped.matches("a `lambda` answers at once; `url` and `sqs` are allowed").count(), 1, "{mapped}");
}

#[test]
fn a_queue_has_a_name_and_answers_later() {
    let faults = |batch_api: Value, changes: Value| {
        let mut policy = json!({"kind": "parcel", "target": "kind", "batch_api": batch_api});
        policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let policy = shape::<super::super::Policy>(policy).unwrap();
        let faults = policy.check().map_or_else(|error| error.to_string(), |()| String::new());
        (faults, policy.max_batch_bytes)
    };
    let queue = |queue: &str| json!({"sqs": queue, "answers_within": "1h"});
    for right in [
        "https://sqs.eu-west-1.amazonaws.com/123456789012/books",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/books.fifo",
        "arn:aws:sqs:eu-west-1:123456789012:books.fifo",
        "http://localhost:4566/000000000000/books",
    ] {
        assert_eq!(faults(queue(right), json!({})), (String::new(), Some(900_000)), "{right}");
    }
    for wrong in [
        "",
        "books",
        "https://example.com/",
        "arn:aws:sqs:eu-west-1:123456789012:books.fi",
        "http://10.0.0.7/123456789012/x",
    ] {
        let expected = format!("`batch_api.sqs`: is `{wrong}`, the URL");
        assert!(faults(queue(wrong), json!({})).0.starts_with(&expected), "{wrong}");
    }
    let books = "arn:aws:sqs:eu-west-1:123456789012:books";
    assert!(
        faults(json!({"sqs": books}), json!({}))
            .0
            .starts_with("`batch_api.answers_within`: is missing: a message to a queue")
    );
    let strict = faults(json!({"sqs": books, "answers_within": "1h", "mode": "strict", "use": "sqs"}), json!({})).0;
    assert!(
        strict.contains("`batch_api.mode`: is `strict`") && strict.contains("the batch API is a `sqs`"),
        "{strict}"
    );
    let (large, _) = faults(queue(books), json!({"max_batch_bytes": 1_048_577}));
    assert!(large.starts_with("`max_batch_bytes`: is 1048577, a message has at most 1048576 bytes"), "{large}");
}

#[test]
fn an_answer_that_comes_later_has_its_time() {
    let faults = |batch_api: Value| {
        let policy = json!({"kind": "parcel", "target": "kind", "batch_api": batch_api});
        let checked = shape::<super::super::Policy>(policy).unwrap().check();
        checked.map_or_else(
            |error| error.0.into_iter().map(|fault| (fault.field, fault.problem)).collect(),
            |()| Vec::new(),
        )
    };
    let url = |within: Value| json!({"url": "https://example.com/", "answers_within": within});
    for right in [json!("1s"), json!("1day"), json!(3_600), json!(null)] {
        assert_eq!(faults(url(right.clone())), [], "{right}");
    }
    let field = "batch_api.answers_within".to_owned();
    for (wrong, problem) in [
        ("0s", "is 0s, at least 1s is needed"),
        ("25h", "is 1day 1h, at most 1day is allowed"),
        ("1500us 1s", "is 1s 1ms 500us, whole milliseconds are allowed"),
    ] {
        assert_eq!(faults(url(json!(wrong))), [(field.clone(), problem.to_owned())]);
    }
    let command = faults(json!({"command": ["x"], "answers_within": "1h"}));
    let at_once = "is about answers that come later, and a `command` answers at once; `url` and `sqs` are allowed";
    assert_eq!(command, [(field, at_once.to_owned())]);
    let strict = faults(json!({"url": "https://example.com/", "answers_within": "1h", "mode": "strict"}));
    assert!(strict.len() == 1 && strict[0].0 == "batch_api.mode" && strict[0].1.contains("`slots` is allowed"));
    let read: BatchApi = shape(url(json!("2h"))).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap()["answers_within"], "2h");
}

#[test]
fn what_says_no_way_or_several_names_the_field_and_what_is_allowed() {
    let error = |batch_api: Value| {
        let policy = json!({"kind": "parcel", "target": "kind", "batch_api": batch_api});
        shape::<super::super::Policy>(policy).unwrap_err().to_string()
    };
    assert_eq!(
        error(json!({"url": "https://example.com/", "command": ["x"]})),
        "`batch_api`: has both `url` and `command`, exactly one of `url`, `lambda`, `sqs`, `command` is allowed"
    );
    for none in [json!({}), json!({"timeout": "5s"}), json!({"url": null})] {
        let expected = "`batch_api`: does not say how it is called, one of `url`, `lambda`, `sqs`, `command` is needed";
        assert_eq!(error(none), expected);
    }
    let unknown = error(json!({"queue": "book"}));
    assert!(
        unknown.starts_with("`batch_api.queue`") && unknown.contains("`url`, `lambda`, `sqs`, `command`"),
        "{unknown}"
    );
    assert!(error(json!({"command": ["x", 5]})).starts_with("`batch_api.command[1]`"));
    assert!(error(json!({"url": 5})).starts_with("`batch_api.url`"));
}
