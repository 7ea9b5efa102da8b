//! Requests of every form that is answered without the engine.

use std::collections::HashMap;

use serde_json::{Value, json};

/// An update: its expression, condition, names without `#`, values without `:`.
pub(super) fn update(id: &str, update: &str, condition: &str, names: &[(&str, &str)], values: Value) -> Value {
    let mut body = json!({
        "TableName": "locks", "Key": { "id": { "S": id } }, "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    let mut some = |name: &str, value: Value, is_some: bool| {
        if is_some {
            body[name] = value;
        }
    };
    let named: HashMap<String, &str> = names.iter().map(|(name, of)| (format!("#{name}"), *of)).collect();
    let valued: HashMap<String, &Value> =
        values.as_object().unwrap().iter().map(|(name, value)| (format!(":{name}"), value)).collect();
    some("UpdateExpression", update.into(), !update.is_empty());
    some("ConditionExpression", condition.into(), !condition.is_empty());
    some("ExpressionAttributeNames", json!(named), !named.is_empty());
    some("ExpressionAttributeValues", json!(valued), !valued.is_empty());
    body
}

/// The same, of one who does not ask for the new item.
fn without_the_new(mut update: Value) -> Value {
    update["ReturnValues"] = "NONE".into();
    update
}

/// Updates of every form, of an item that may be in any state.
pub(super) fn updates(id: &str) -> Vec<Value> {
    [updates_of_values(id), updates_of_sets_and_counters(id), updates_of_maps_and_more(id)].concat()
}

fn s(text: &str) -> Value {
    json!({ "S": text })
}

pub(super) fn n(number: i64) -> Value {
    json!({ "N": number.to_string() })
}

fn updates_of_values(id: &str) -> Vec<Value> {
    let none = json!({});
    vec![
        update(id, "", "", &[], none.clone()),
        update(id, "", "attribute_exists(id)", &[], none.clone()),
        update(id, "SET #a = :a", "", &[("a", "holder")], json!({ "a": s("you") })),
        without_the_new(update(id, "SET #a = :a", "", &[("a", "holder")], json!({ "a": s("they") }))),
        update(id, "SET #a = :a", "", &[("a", "at")], json!({ "a": { "N": "1799999400123.0006" } })),
        update(id, "SET #a = :a", "", &[("a", "at")], json!({ "a": { "N": "1799999400123.000601" } })),
        update(id, "SET #a = :a", "#a = :b", &[("a", "holder")], json!({ "a": s("me"), "b": s("you") })),
        update(id, "SET #a = :a", "attribute_not_exists(#a)", &[("a", "holder")], json!({ "a": s("new") })),
        update(
            id,
            "REMOVE #a SET #b = :b",
            "(holder = :a OR epoch > :e)",
            &[("a", "holder"), ("b", "epoch")],
            json!({ "a": s("you"), "b": n(3), "e": n(2) }),
        ),
        update(
            id,
            "SET #a = if_not_exists(#a, :a), #b = :b",
            "",
            &[("a", "active"), ("b", "at")],
            json!({ "a": s("y"), "b": n(9) }),
        ),
        update(
            id,
            "SET #a = if_not_exists(#a, :a), #b = :b",
            "",
            &[("a", "active"), ("b", "at")],
            json!({ "a": s("z"), "b": n(-4) }),
        ),
        update(id, "REMOVE #a", "attribute_exists(#a)", &[("a", "active")], none),
        update(id, "SET #a = :a", "", &[("a", "size")], json!({ "a": n(5) })),
    ]
}

fn updates_of_sets_and_counters(id: &str) -> Vec<Value> {
    vec![
        update(id, "ADD #a :a", "", &[("a", "set")], json!({ "a": { "BS": ["AAM=", "AAA="] } })),
        update(id, "ADD #a :a", "size(#a) < :max", &[("a", "set")], json!({ "a": { "BS": ["AAI="] }, "max": n(3) })),
        update(
            id,
            "DELETE #a :a",
            "contains(#a, :b)",
            &[("a", "set")],
            json!({ "a": { "BS": ["AAE="] }, "b": { "B": "AAE=" } }),
        ),
        update(id, "DELETE #a :a", "", &[("a", "set")], json!({ "a": { "BS": ["AAE=", "AAI=", "AAM=", "AAA="] } })),
        update(id, "ADD #a :a", "", &[("a", "names")], json!({ "a": { "SS": ["z", "b", "ä"] } })),
        update(id, "DELETE #a :a", "contains(#a, :b)", &[("a", "names")], json!({ "a": { "SS": ["p"] }, "b": s("p") })),
        update(id, "ADD #a :a", "", &[("a", "tries")], json!({ "a": n(2) })),
        update(id, "ADD #a :a, #b :b", "", &[("a", "tries"), ("b", "epoch")], json!({ "a": n(-2), "b": n(1) })),
        update(id, "SET #a = #a - :a", "tries >= :a", &[("a", "tries")], json!({ "a": n(1) })),
        update(
            id,
            "SET #a = #b, #b = :b",
            "attribute_exists(#b)",
            &[("a", "before"), ("b", "epoch")],
            json!({ "b": n(8) }),
        ),
    ]
}

fn updates_of_maps_and_more(id: &str) -> Vec<Value> {
    vec![
        update(
            id,
            "SET #p.#me = :a",
            "size(#p) < :max OR attribute_exists(#p.#me)",
            &[("p", "places"), ("me", "w-1 ä")],
            json!({ "a": { "M": { "until": n(4) } }, "max": n(4) }),
        ),
        update(id, "REMOVE #p.#me, #p.two", "", &[("p", "places"), ("me", "w-1 ä")], json!({})),
        update(id, "SET #p = if_not_exists(#p, :a)", "", &[("p", "places")], json!({ "a": { "M": {} } })),
        update(
            id,
            "SET #a = :a REMOVE #b",
            "(attribute_not_exists(notice_due) OR notice_due <= :now) AND (attribute_not_exists(x) OR x < y)",
            &[("a", "notice_due"), ("b", "long")],
            json!({ "a": n(5), "now": n(4) }),
        ),
        update(
            id,
            "SET #a = :a",
            "bits = :b AND #a <= :c",
            &[("a", "at")],
            json!({ "a": n(10), "b": { "B": "/w==" }, "c": n(9) }),
        ),
        update(id, "SET #a = :a", "", &[("a", "long")], json!({ "a": s(&"y".repeat(2_100)) })),
        update(
            id,
            "SET #a = :a",
            "",
            &[("a", "list")],
            json!({ "a": { "L": [{ "M": { "n": { "NULL": true } } }, { "BOOL": false }] } }),
        ),
    ]
}

/// Other writes.
pub(super) fn puts(id: &str) -> Vec<Value> {
    let put = |item: Value, condition: Option<&str>| {
        let mut put = json!({ "TableName": "locks", "Item": item, "ReturnValuesOnConditionCheckFailure": "ALL_OLD" });
        if let Some(condition) = condition {
            put["ConditionExpression"] = condition.into();
        }
        put
    };
    vec![
        put(json!({ "id": { "S": id }, "active": { "S": "w" }, "at": { "N": "1" } }), Some("attribute_not_exists(id)")),
        put(json!({ "id": { "S": id }, "at": { "N": "1" } }), None),
        put(json!({ "id": { "S": id }, "active": { "S": "w" }, "set": { "BS": ["AAI=", "AAE="] } }), None),
    ]
}

/// Reads.
pub(super) fn reads() -> Vec<(&'static str, Value)> {
    let key = |id: &str| json!({ "id": { "S": id } });
    let many = |mut keys: Value| {
        keys["Keys"] = json!([key("a"), key("b"), key("none")]);
        json!({ "RequestItems": { "locks": keys } })
    };
    vec![
        ("GetItem", json!({ "TableName": "locks", "Key": key("a") })),
        ("GetItem", json!({ "TableName": "locks", "Key": key("b"), "ConsistentRead": true })),
        ("GetItem", json!({ "TableName": "locks", "Key": key("none"), "ConsistentRead": false })),
        ("BatchGetItem", many(json!({ "ConsistentRead": true }))),
        (
            "BatchGetItem",
            many(
                json!({ "ProjectionExpression": "#a0,#a1", "ExpressionAttributeNames": { "#a0": "id", "#a1": "set" } }),
            ),
        ),
    ]
}
