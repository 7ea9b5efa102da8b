use serde_json::{Value, json};

use super::*;
use crate::json::shape;

fn fields(source: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    shape::<Source>(source.clone()).unwrap().check("source", &mut errors);
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn only_sources_that_can_be_asked_are_accepted() {
    for right in [
        json!({"lambda": "rows"}),
        json!({"lambda": "rows:live"}),
        json!({"lambda": "rows:$LATEST"}),
        json!({"lambda": "arn:aws-cn:lambda:cn-north-1:123456789012:function:ro-ws_2:7"}),
        json!({"s3": {"bucket": "my.rows-1", "key": "a/b c.csv.gz", "kind": "mail"}}),
        json!({"s3": {"bucket": "rows", "key": "a.JSONL"}}),
        json!({"s3": {"bucket": "rows", "prefix": "2026/", "format": "ndjson"}}),
        json!({"s3": {"bucket": "rows", "keys": ["b.jsonl", "a.ndjson.gz"]}}),
        json!({"s3": {"bucket": "rows", "keys": ["b.csv", "a"], "format": "csv", "kind": "mail"}}),
        json!({"s3": {"bucket": "rows", "key": "export", "format": "csv", "kind": "mail"}}),
        json!({"file": {"path": "../rows.csv.gz", "kind": "mail"}}),
        json!({"command": ["./rows", "-v"]}),
    ] {
        assert_eq!(fields(&right), Vec::<String>::new(), "{right}");
    }
    for (wrong, field) in [
        (json!({"lambda": ""}), "source.lambda"),
        (json!({"lambda": "a/b"}), "source.lambda"),
        (json!({"lambda": "arn:aws:sqs:eu-west-1:123456789012:function:rows"}), "source.lambda"),
        (json!({"lambda": format!("rows:{}", "x".repeat(129))}), "source.lambda"),
        (json!({"s3": {"bucket": "Rows", "key": "a.ndjson"}}), "source.s3.bucket"),
        (json!({"s3": {"bucket": "rows", "key": ""}}), "source.s3.key"),
        (json!({"s3": {"bucket": "rows", "key": "a/../b.ndjson"}}), "source.s3.key"),
        (json!({"s3": {"bucket": "rows", "key": "a.txt"}}), "source.s3.format"),
        (json!({"s3": {"bucket": "rows", "prefix": "a/"}}), "source.s3.format"),
        (json!({"s3": {"bucket": "rows", "key": "a.csv"}}), "source.s3.kind"),
        (json!({"s3": {"bucket": "rows", "keys": []}}), "source.s3.keys"),
        (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", "a.ndjson"]}}), "source.s3.keys"),
        (json!({"s3": {"bucket": "rows", "keys": vec!["a.ndjson"; 101]}}), "source.s3.keys"),
        (json!({"s3": {"bucket": "rows", "keys": vec!["x".repeat(1_000); 9]}}), "source.s3.keys"),
        (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", ""]}}), "source.s3.keys[1]"),
        (json!({"s3": {"bucket": "rows", "keys": ["../a.ndjson"]}}), "source.s3.keys[0]"),
        (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson", "a.csv"], "kind": "mail"}}), "source.s3.format"),
        (json!({"s3": {"bucket": "rows", "keys": ["a.csv"]}}), "source.s3.kind"),
        (json!({"s3": {"bucket": "rows", "keys": ["a.ndjson"], "prefix": "a"}}), "source.s3"),
        (json!({"s3": {"bucket": "rows", "key": "a.ndjson", "kind": "no/kind"}}), "source.s3.kind"),
        (json!({"file": {"path": ""}}), "source.file.path"),
        (json!({"file": {"path": "rows"}}), "source.file.format"),
        (json!({"file": {"path": "rows.csv"}}), "source.file.kind"),
        (json!({"command": []}), "source.command"),
        (json!({"s3": {"bucket": "rows"}}), "source.s3"),
        (json!({"s3": {"bucket": "rows", "key": "a.ndjson", "prefix": "a"}}), "source.s3"),
    ] {
        let found = fields(&wrong);
        assert!(found.contains(&field.to_owned()), "{wrong}: {found:?}");
    }
}

#[test]
fn keys_without_objects_are_one_fault() {
    assert_eq!(fields(&json!({"s3": {"bucket": "rows", "keys": []}})), ["source.s3.keys"]);
}

#[test]
fn objects_are_the_same_in_whichever_order_their_keys_are_named() {
    let named = |keys: Value| shape::<Source>(json!({"s3": {"bucket": "rows", "keys": keys}})).unwrap();
    assert_eq!(named(json!(["b.ndjson", "a.ndjson"])), named(json!(["a.ndjson", "b.ndjson"])));
    assert_ne!(named(json!(["b.ndjson", "a.ndjson"])), named(json!(["a.ndjson"])));
    let other = shape::<Source>(json!({"s3": {"bucket": "others", "keys": ["a.ndjson"]}})).unwrap();
    assert_ne!(named(json!(["a.ndjson"])), other);
}

#[test]
fn a_source_is_written_as_it_is_read() {
    for source in [
        json!({"url": "https://example.com/"}),
        json!({"lambda": "rows"}),
        json!({"s3": {"bucket": "rows", "key": "a.csv", "kind": "mail"}}),
        json!({"s3": {"bucket": "rows", "keys": ["b.ndjson", "a.ndjson"]}}),
        json!({"file": {"path": "a.csv", "kind": "mail"}}),
        json!({"command": ["./rows"]}),
        json!({"rows": {"kind": "mail", "fingerprint": Uuid::nil(), "page_rows": 2, "page_bytes": 3}}),
        json!({"reissue": {"fanout": Uuid::nil()}}),
        json!({"reissue": {"fanout": Uuid::nil(), "missing": true, "max_batch": 1, "contents": Uuid::max()}}),
        json!({"reissue": {"fanout": Uuid::nil(), "taken_on": {"until": {"group": Uuid::nil(), "next": 7}, "items": 9}}}),
    ] {
        assert_eq!(serde_json::to_value(shape::<Source>(source.clone()).unwrap()).unwrap(), source);
    }
    for wrong in [json!({}), json!({"s3": "rows"}), json!({"lambda": "x", "url": "https://example.com/"})] {
        assert!(shape::<Source>(wrong.clone()).is_err(), "{wrong}");
    }
}
