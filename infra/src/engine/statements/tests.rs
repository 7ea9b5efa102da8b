//! The engine's own answers are the measure.

use std::collections::HashMap;

use dynoxide::actions::batch_execute_statement::{self, BatchExecuteStatementRequest};
use dynoxide::actions::{create_table, put_item, scan};
use dynoxide::types::MAX_ITEM_SIZE;
use serde_json::{Value, json};

use super::*;
use crate::engine::direct::value::{of_item, stored};
use crate::engine::metering;

const INSERT: &str = r#"INSERT INTO "tasks" VALUE {'id': ?, 'status': ?, 'at': ?, 'pending': ?}"#;
const KEY: &str = r#"INSERT INTO "tasks" VALUE {'id': ?, 'owner': ?}"#;
const CLAIM: &str =
    r#"UPDATE "tasks" SET "status" = ? SET "batch" = ? REMOVE "pending" WHERE "id" = ? AND "status" = ?"#;
const BEGIN: &str = r#"INSERT INTO "tasks" VALUE {'id': ?, 'free': ?, 'at': ?, 'pending': ?}"#;
const TAKE: &str = r#"UPDATE "tasks" SET "free" = ? SET "claims" = ? WHERE "id" = ? AND "status" = ? AND "free" = ?"#;
const TAKE_LAST: &str = r#"UPDATE "tasks" SET "free" = ? REMOVE "pending" WHERE "id" = ? AND "free" = ?"#;
const MOVE: &str = r#"UPDATE "tasks" SET "pending" = ? WHERE "id" = ?"#;

fn s(text: &str) -> Value {
    json!({ "S": text })
}

fn n(number: &str) -> Value {
    json!({ "N": number })
}

fn b(base64: &str) -> Value {
    json!({ "B": base64 })
}

fn new(id: &str) -> Vec<Value> {
    vec![s(id), s("created"), n("1700000000000"), s("lane")]
}

fn claim(id: &str, batch: &str) -> Vec<Value> {
    vec![s("batched"), s(batch), s(id), s("created")]
}

/// A request for statements that differ only in their parameters.
fn batch(statement: &str, all: Vec<Vec<Value>>) -> Value {
    let one = |parameters| {
        json!({
            "Statement": statement, "Parameters": parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    };
    json!({ "Statements": all.into_iter().map(one).collect::<Vec<_>>() })
}

fn request<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn database() -> Database {
    let database = Database::memory().unwrap();
    let table = json!({
        "TableName": "tasks",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "id", "AttributeType": "S" },
            { "AttributeName": "pending", "AttributeType": "S" },
            { "AttributeName": "at", "AttributeType": "N" },
        ],
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "pending",
            "KeySchema": [
                { "AttributeName": "pending", "KeyType": "HASH" }, { "AttributeName": "at", "KeyType": "RANGE" },
            ],
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        }],
    });
    database.run(async |storage| create_table::execute(storage, request(table)).await).unwrap();
    let rich = json!({
        "TableName": "tasks",
        "Item": {
            "id": s("rich"), "status": s("created"), "at": n("7"), "pending": s("lane"), "long": s(&"x".repeat(3_000)),
            "list": { "L": [{ "BOOL": true }, { "NULL": true }] }, "names": { "SS": ["a", "b"] }, "bits": { "B": "AAE=" },
        },
    });
    database.run(async |storage| put_item::execute(storage, request(rich)).await).unwrap();
    database
}

/// What the engine answers, and what it asks for it.
fn of_the_engine(database: &Database, body: &Value) -> (Value, f64) {
    let mut request: BatchExecuteStatementRequest = request(body.clone());
    let bill = metering::ask(&mut request);
    let execute = async |storage: &Storage| batch_execute_statement::execute(storage, request).await;
    let mut response = database.run(execute).unwrap();
    let units = bill.charge(&mut response);
    (serde_json::to_value(response).unwrap(), units.write)
}

/// Everything in the table and in its index.
fn content(database: &Database) -> Value {
    let scan = |mut scan: Value| {
        scan["TableName"] = "tasks".into();
        let page = database.run(async |storage| scan::execute(storage, request(scan)).await).unwrap();
        serde_json::to_value(page.items).unwrap()
    };
    json!([scan(json!({})), scan(json!({ "IndexName": "pending" }))])
}

/// What becomes of the same statements without the SDK, in the form of an answer.
fn executed(database: &Database, body: &Value) -> Option<(Value, f64)> {
    let statements = body["Statements"].as_array()?;
    let rows: Vec<Vec<SdkValue>> = statements.iter().map(|one| sdk_row(&one["Parameters"])).collect();
    let rows: Vec<&[SdkValue]> = rows.iter().map(Vec::as_slice).collect();
    let text = statements.first()?["Statement"].as_str()?;
    let (written, units) = execute(database, text, &rows)?;
    let refused = |item: Option<HashMap<String, SdkValue>>| {
        let (code, message) = match text.starts_with("INSERT") {
            true => ("DuplicateItem", "Duplicate primary key exists in table"),
            false => ("ConditionalCheckFailed", "The conditional request failed"),
        };
        let mut error = json!({ "Code": code, "Message": message });
        if let Some(item) = item {
            error["Item"] = serde_json::to_value(stored(of_item(&item).unwrap()).unwrap()).unwrap();
        }
        error
    };
    let responses = written.into_iter().map(|write| match write {
        Write::Done(()) => json!({ "TableName": "tasks" }),
        Write::Refused(item) => json!({ "Error": refused(item), "TableName": "tasks" }),
    });
    Some((json!({ "Responses": responses.collect::<Vec<_>>() }), units))
}

fn sdk_row(parameters: &Value) -> Vec<SdkValue> {
    let row: Vec<AttributeValue> = request(parameters.clone());
    row.into_iter().map(|value| sdk_item(Item::from([(String::new(), value)])).into_values().next().unwrap()).collect()
}

#[test]
fn batches_come_to_what_the_engine_makes_of_them() {
    let (ours, typed, engine) = (database(), database(), database());
    for body in [
        batch(INSERT, vec![new("a"), new("b"), new("c")]),
        batch(INSERT, vec![new("c"), new("d"), new("e")]),
        batch(INSERT, vec![new("a"), new("b")]),
        batch(INSERT, vec![vec![s("long"), s(&"y".repeat(2_500)), n("-12"), s("lane")]]),
        batch(KEY, vec![vec![s("key:1"), s("a")], vec![s("key:2"), s("")]]),
        batch(CLAIM, vec![claim("a", "first"), claim("rich", "first"), claim("never", "first")]),
        batch(CLAIM, vec![claim("a", "second"), claim("b", "second"), claim("key:1", "second")]),
        batch(CLAIM, vec![claim("a", "third"), claim("b", "third")]),
        batch(MOVE, vec![vec![s("other"), s("c")], vec![s("lane"), s("d")], vec![s("lane"), s("key:2")]]),
        batch(MOVE, vec![vec![s("again"), s("a")]]),
        batch(BEGIN, vec![vec![s("x"), b("/w=="), n("3"), s("lane")], vec![s("y"), b(""), n("4"), s("lane")]]),
        batch(TAKE, vec![vec![b("AAE="), b(""), s("rich"), s("batched"), b("AAE=")]]),
        batch(TAKE_LAST, vec![vec![b("AA=="), s("x"), b("/w==")], vec![b("AA=="), s("y"), b("AA==")]]),
        batch(TAKE_LAST, vec![vec![b("AQ=="), s("x"), b("/w==")], vec![b("AQ=="), s("a"), b("AA==")]]),
    ] {
        let (json, units) = answer(&ours, body.to_string().as_bytes()).unwrap();
        let answered: Value = serde_json::from_slice(&json).unwrap();
        let expected = of_the_engine(&engine, &body);
        assert_eq!((answered, units.write), expected, "{body}");
        assert_eq!(content(&ours), content(&engine), "{body}");
        assert_eq!(executed(&typed, &body), Some(expected), "{body}");
        assert_eq!(content(&typed), content(&engine), "{body}");
    }
}

#[test]
fn what_is_unusual_is_left_to_the_engine_and_changes_nothing() {
    let database = database();
    let before = content(&database);
    let mut capacity = batch(INSERT, vec![new("a")]);
    capacity["ReturnConsumedCapacity"] = "TOTAL".into();
    let mut mixed = batch(INSERT, vec![new("a"), new("b")]);
    mixed["Statements"][1] = batch(KEY, vec![vec![s("key:1"), s("a")]])["Statements"][0].take();
    for body in [
        json!({ "Statements": [] }),
        capacity,
        mixed,
        batch(INSERT, vec![new("a"), new("a")]),
        batch(INSERT, (0..26).map(|at| new(&at.to_string())).collect()),
        batch(INSERT, vec![new("a"), vec![s("b")]]),
        batch(INSERT, vec![new("a"), new("")]),
        batch(INSERT, vec![new("a"), vec![s("b"), s("created"), s("no number"), s("lane")]]),
        batch(INSERT, vec![new("a"), vec![s("b"), s("created"), n("1.50"), s("lane")]]),
        batch(INSERT, vec![new("a"), vec![s("b"), s("created"), n("007"), s("lane")]]),
        batch(INSERT, vec![new("a"), vec![s("b"), s(&"z".repeat(MAX_ITEM_SIZE)), n("1"), s("lane")]]),
        batch(INSERT, vec![new("a"), new(&"k".repeat(2_049))]),
        batch(INSERT, vec![new("a"), vec![s("b"), s("created"), n("1"), s("")]]),
        batch(BEGIN, vec![vec![s("x"), b("not base64"), n("3"), s("lane")]]),
        batch(r#"INSERT INTO "nothing" VALUE {'id': ?}"#, vec![vec![s("a")]]),
        batch(r#"INSERT INTO "tasks" VALUE {'id': ?, 'id': ?}"#, vec![vec![s("a"), s("b")]]),
        batch(r#"UPDATE "tasks" SET "id" = ? WHERE "id" = ?"#, vec![vec![s("b"), s("rich")]]),
        batch(r#"UPDATE "tasks" SET "status" = ? WHERE "status" = ?"#, vec![vec![s("b"), s("created")]]),
        batch(r#"UPDATE "tasks" SET "at" = ? WHERE "id" = ?"#, vec![vec![s("no number"), s("rich")]]),
        batch(r#"UPDATE "tasks" SET "status" = ? WHERE "id" = ? AND "at" = ?"#, vec![vec![s("b"), s("rich"), n("7")]]),
    ] {
        assert!(answer(&database, body.to_string().as_bytes()).is_none(), "{body}");
        assert_eq!(content(&database), before, "{body}");
        // A capacity and base64 cannot be asked of the tables themselves.
        if body["ReturnConsumedCapacity"].is_null() && !body.to_string().contains("not base64") {
            assert_eq!(executed(&database, &body), None, "{body}");
            assert_eq!(content(&database), before, "{body}");
        }
    }
}
