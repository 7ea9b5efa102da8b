//! The engine's own answers are the measure.

mod forms;
mod typed;

use forms::{n, puts, reads, update, updates};
use serde_json::{Value, json};

use super::*;
use crate::engine::dynamodb::Tables;

/// A table with an index of keys, and one that shows more; in it an item with a value of each type.
fn tables() -> Tables {
    let tables = Tables::memory().unwrap();
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "locks",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "id", "AttributeType": "S" },
            { "AttributeName": "active", "AttributeType": "S" },
            { "AttributeName": "at", "AttributeType": "N" },
        ],
        "KeySchema": [key("id", "HASH")],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "active",
                "KeySchema": [key("active", "HASH"), key("at", "RANGE")],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            },
            {
                "IndexName": "listed",
                "KeySchema": [key("active", "HASH"), key("id", "RANGE")],
                "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["size"] },
            },
        ],
    });
    of_the_engine(&tables, "CreateTable", &table).0.unwrap();
    let item = json!({
        "id": { "S": "a" }, "at": { "N": "7" }, "active": { "S": "x" }, "holder": { "S": "me" }, "size": { "N": "1" },
        "long": { "S": "x".repeat(3_000) }, "set": { "BS": ["AAE=", "AAI="] }, "names": { "SS": ["p", "q"] },
        "places": { "M": { "one": { "N": "1" }, "two": { "M": { "deep": { "BOOL": true } } } } },
        "list": { "L": [{ "NULL": true }, { "S": "" }] }, "bits": { "B": "/w==" }, "part": { "N": "1.5" },
    });
    of_the_engine(&tables, "PutItem", &json!({ "TableName": "locks", "Item": item })).0.unwrap();
    tables
}

/// An answer or an error, and what it cost.
type Came = (Result<Value, Value>, Units);

fn came(result: Result<Bytes, DynoxideError>, units: Units) -> Came {
    let result = result.map(|json| serde_json::from_slice(&json).unwrap());
    (result.map_err(|error| serde_json::from_str(&error.to_json()).unwrap()), units)
}

fn of_the_engine(tables: &Tables, operation: &str, body: &Value) -> Came {
    let (_, (result, units)) = tables.dispatch(operation, body.to_string().as_bytes()).unwrap();
    came(result, units)
}

/// What comes without the engine, which is taken to have seen the expressions before.
fn ours(tables: &Tables, operation: &str, body: &Value) -> Option<Came> {
    let body = body.to_string();
    learn(tables.database(), operation, body.as_bytes());
    answer(tables.database(), operation, body.as_bytes()).map(|direct| came(direct.result, direct.units))
}

/// Everything in the table and in its indexes.
fn content(tables: &Tables) -> Vec<Value> {
    let scan = |index: Option<&str>| {
        let mut scan = json!({ "TableName": "locks" });
        if let Some(index) = index {
            scan["IndexName"] = index.into();
        }
        of_the_engine(tables, "Scan", &scan).0.unwrap()
    };
    vec![scan(None), scan(Some("active")), scan(Some("listed"))]
}

/// The items of an answer in one order.
fn ordered(mut came: Came) -> Came {
    if let Ok(answer) = &mut came.0
        && let Some(items) = answer["Responses"]["locks"].as_array_mut()
    {
        items.sort_by_key(Value::to_string);
    }
    came
}

#[test]
fn every_form_comes_to_what_the_engine_makes_of_it() {
    let (own, typed, engine) = (tables(), typed::Typed::new(tables()), tables());
    let mut writes = Vec::new();
    for id in ["a", "b"] {
        writes.extend(updates(id).into_iter().map(|body| ("UpdateItem", body)));
        writes.extend(puts(id).into_iter().map(|body| ("PutItem", body)));
    }
    // In an order without an order, so that each meets items in many states.
    let (mut at, mut left_to_the_engine) = (1_usize, 0);
    let steps = 1_500;
    for _ in 0..steps {
        at = (at * 1_103_515_245 + 12_345) % (1 << 31);
        let (operation, body) = &writes[(at >> 8) % writes.len()];
        let expected = of_the_engine(&engine, operation, body);
        let came = ours(&own, operation, body).unwrap_or_else(|| {
            left_to_the_engine += 1;
            of_the_engine(&own, operation, body)
        });
        assert_eq!(came, expected, "{body}");
        assert_eq!(content(&own), content(&engine), "{body}");
        let came = typed.asked(operation, body).unwrap_or_else(|| of_the_engine(&typed.tables, operation, body));
        assert_eq!(came, expected, "{body}");
        assert_eq!(content(&typed.tables), content(&engine), "{body}");
        for (operation, body) in reads() {
            let expected = ordered(of_the_engine(&engine, operation, &body));
            assert_eq!(ours(&own, operation, &body).map(ordered).as_ref(), Some(&expected), "{body}");
            assert_eq!(typed.asked(operation, &body).map(ordered), Some(expected), "{body}");
        }
    }
    // A map or a set that is not there is for the engine to judge.
    assert!(left_to_the_engine < steps / 4, "{left_to_the_engine} of {steps}");
    assert_eq!(typed.left(), left_to_the_engine);
}

#[test]
fn unusual_updates_are_left_to_the_engine_and_change_nothing() {
    let (tables, typed) = (tables(), typed::Typed::new(tables()));
    let before = content(&tables);
    let none = json!({});
    let n = n(1);
    let mut capacity = update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": n }));
    capacity["ReturnConsumedCapacity"] = "TOTAL".into();
    let mut two = update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": n }));
    two["Key"]["at"] = n.clone();
    for body in [
        capacity,
        two,
        update("", "SET #a = :a", "", &[("a", "b")], json!({ "a": n })),
        update("a", "SET #a = :a", "", &[("a", "id")], json!({ "a": { "S": "b" } })),
        update("a", "SET #a = :a", "", &[("a", "b"), ("c", "d")], json!({ "a": n })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": n, "b": n })),
        update("a", "SET #a = :a", "", &[("a", "b")], none.clone()),
        update("a", "SET #a = :a", "", &[("a", "active")], json!({ "a": { "S": "" } })),
        update("a", "SET #a = :a", "", &[("a", "at")], json!({ "a": { "S": "no number" } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "N": "1.50" } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "NS": ["1"] } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "SS": [] } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "SS": ["a", "a"] } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "B": "no base64" } })),
        update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "S": "z".repeat(400 * 1024) } })),
        update("a", "SET #a = :a REMOVE #b", "", &[("a", "c"), ("b", "c")], json!({ "a": n })),
        update("a", "SET #a.#b = :a", "", &[("a", "none"), ("b", "c")], json!({ "a": n })),
        update("a", "SET #a = :a REMOVE #a.#b", "", &[("a", "places"), ("b", "c")], json!({ "a": n })),
        update("a", "SET #a = #b", "", &[("a", "c"), ("b", "none")], none),
        update("a", "SET #a = #a - :a", "", &[("a", "part")], json!({ "a": n })),
        update("a", "ADD #a :a", "", &[("a", "holder")], json!({ "a": n })),
        update("a", "ADD #a :a", "", &[("a", "c")], json!({ "a": { "S": "x" } })),
        update("a", "SET #a[0] = :a", "", &[("a", "list")], json!({ "a": n })),
        update("a", "SET #a = :a", "part < :a", &[("a", "b")], json!({ "a": n })),
        update("a", "SET #a = :a", "holder < :a", &[("a", "b")], json!({ "a": n })),
        update("a", "SET #a = :a", "size(holder) = :a", &[("a", "b")], json!({ "a": n })),
        update("a", "SET #a = :a", "NOT holder = :a", &[("a", "b")], json!({ "a": n })),
        update("a", "set #a = :a", "", &[("a", "b")], json!({ "a": n })),
        update("a", "SET  #a = :a", "", &[("a", "b")], json!({ "a": n })),
    ] {
        assert_eq!(ours(&tables, "UpdateItem", &body), None, "{body}");
        assert_eq!(content(&tables), before, "{body}");
        // A capacity and base64 cannot be asked of the tables themselves.
        if body["ReturnConsumedCapacity"].is_null() && body["ExpressionAttributeValues"][":a"]["B"].is_null() {
            assert_eq!(typed.asked("UpdateItem", &body), None, "{body}");
            assert_eq!(content(&typed.tables), before, "{body}");
        }
    }
}

#[test]
fn unusual_reads_and_puts_are_left_to_the_engine_and_change_nothing() {
    let (tables, typed) = (tables(), typed::Typed::new(tables()));
    let before = content(&tables);
    let n = n(1);
    let large = json!({ "id": { "S": "a" }, "long": { "S": "x".repeat(401 * 1_024) } });
    let large = json!({ "TableName": "locks", "Item": large, "ConditionExpression": "attribute_not_exists(id)" });
    for (operation, body) in [
        ("PutItem", large),
        ("PutItem", json!({ "TableName": "none", "Item": { "id": { "S": "a" } } })),
        ("PutItem", json!({ "TableName": "locks", "Item": { "at": n } })),
        ("PutItem", json!({ "TableName": "locks", "Item": { "id": { "S": "x".repeat(2_049) } } })),
        ("PutItem", json!({ "TableName": "locks", "Item": { "id": { "S": "a" } }, "ReturnValues": "ALL_OLD" })),
        ("GetItem", json!({ "TableName": "locks", "Key": { "id": n } })),
        ("GetItem", json!({ "TableName": "locks", "Key": { "id": { "S": "a" } }, "ProjectionExpression": "id" })),
        ("BatchGetItem", json!({ "RequestItems": { "locks": { "Keys": [] } } })),
        ("BatchGetItem", json!({ "RequestItems": { "locks": { "Keys": vec![json!({ "id": { "S": "a" } }); 2] } } })),
        ("Query", json!({ "TableName": "locks" })),
    ] {
        assert_eq!(ours(&tables, operation, &body), None, "{body}");
        assert_eq!(content(&tables), before, "{body}");
        // The others cannot be asked of the tables themselves.
        if operation == "PutItem" && !body["ConditionExpression"].is_null() {
            assert_eq!(typed.asked(operation, &body), None, "{body}");
            assert_eq!(content(&typed.tables), before, "{body}");
        }
    }
}

#[test]
fn an_item_with_a_set_of_numbers_is_read_by_the_engine() {
    let tables = tables();
    let item = json!({ "id": { "S": "c" }, "numbers": { "NS": ["10", "9"] } });
    of_the_engine(&tables, "PutItem", &json!({ "TableName": "locks", "Item": item })).0.unwrap();
    let key = json!({ "id": { "S": "c" } });
    assert_eq!(ours(&tables, "GetItem", &json!({ "TableName": "locks", "Key": key })), None);
    assert_eq!(ours(&tables, "BatchGetItem", &json!({ "RequestItems": { "locks": { "Keys": [key] } } })), None);
    assert_eq!(
        ours(&tables, "UpdateItem", &update("c", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "N": "1" } }))),
        None
    );
}

#[test]
fn expressions_are_taken_once_the_engine_took_them() {
    let tables = tables();
    let meter = crate::usage::Meter::default();
    let send = |body: &Value| tables.answer("UpdateItem", body.to_string().as_bytes(), &meter).reply.status;
    let direct = |body: &Value| answer(tables.database(), "UpdateItem", body.to_string().as_bytes()).is_some();
    let good = update("a", "SET #a = :a", "", &[("a", "b")], json!({ "a": { "N": "1" } }));
    assert!(!direct(&good));
    assert_eq!(send(&good), 200);
    assert!(direct(&good));
    // A word that is reserved.
    let bad = update("a", "SET #a = :a", "attribute_exists(size)", &[("a", "b")], json!({ "a": { "N": "1" } }));
    assert_eq!(send(&bad), 400);
    assert!(!direct(&bad));
}
