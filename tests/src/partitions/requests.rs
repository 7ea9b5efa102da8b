//! What requests to DynamoDB write and read, and how it refuses them.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_types::base64;
use fanfold_local::ServiceAnswer;
use serde_json::{Value, json};

/// A record's table and key.
pub(super) type Record = (String, String);

/// What a request writes: the record, and the new item's attributes that are texts or binary (in base64), if it is new.
pub(super) struct Written {
    pub(super) record: Record,
    pub(super) texts: HashMap<String, String>,
}

/// The sparse indexes of a table, which have the names of what items in them have, and their partition keys.
pub(super) fn indexes(table: &str) -> &'static [(&'static str, &'static str)] {
    match table {
        "TasksTable" => &[("pending", "pending")],
        "LocksTable" => &[("active", "active")],
        "FanoutsTable" => &[("ending", "ending"), ("idle", "idle"), ("named", "names"), ("opened", "stands")],
        "GroupsTable" => &[("open", "fanout"), ("listed", "fanout")],
        _ => &[],
    }
}

/// The partition of an index in which an item is.
pub(super) fn entry(item: &HashMap<String, AttributeValue>, index: &str, key: &str) -> Option<String> {
    item.get(index)?;
    match item.get(key)? {
        AttributeValue::S(text) => Some(text.clone()),
        AttributeValue::B(bytes) => Some(base64::encode(bytes)),
        _ => None,
    }
}

pub(super) fn key_name(table: &str) -> &'static str {
    match table {
        "LocksTable" => "lane",
        "PoliciesTable" => "kind",
        _ => "id",
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

/// An attribute that is a text or binary.
fn either(value: &Value) -> String {
    value["S"].as_str().or(value["B"].as_str()).unwrap_or("").to_owned()
}

fn texts(item: &Value) -> HashMap<String, String> {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| (name.clone(), either(value))).filter(|(_, text)| !text.is_empty()).collect()
}

pub(super) fn written(operation: &str, body: &Value) -> Vec<Written> {
    let one = |action: &Value| {
        let table = text(&action["TableName"]);
        let item = if action["Item"].is_null() { &action["Key"] } else { &action["Item"] };
        let key = text(&item[key_name(&table)]["S"]);
        Written { record: (table, key), texts: texts(item) }
    };
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    match operation {
        "PutItem" | "UpdateItem" => vec![one(body)],
        "TransactWriteItems" => {
            list("TransactItems").iter().flat_map(|item| item.as_object().unwrap().values()).map(one).collect()
        }
        "BatchExecuteStatement" => list("Statements").iter().map(statement).collect(),
        _ => Vec::new(),
    }
}

/// `INSERT INTO "T" VALUE {'a': ?, …}`, or `UPDATE "T" SET … WHERE "key" = ? …`.
fn statement(statement: &Value) -> Written {
    let (sql, values) = (text(&statement["Statement"]), &statement["Parameters"]);
    let table = sql.split('"').nth(1).unwrap().to_owned();
    let names = sql.split('\'').skip(1).step_by(2).enumerate();
    let texts: HashMap<String, String> = names.map(|(at, name)| (name.to_owned(), either(&values[at]))).collect();
    let key = match sql.split_once(" WHERE ") {
        Some((set, _)) => text(&values[set.matches('?').count()]["S"]),
        None => texts[key_name(&table)].clone(),
    };
    Written { record: (table, key), texts: texts.into_iter().filter(|(_, text)| !text.is_empty()).collect() }
}

/// The partitions that a request reads.
pub(super) fn read(operation: &str, body: &Value) -> Vec<String> {
    let of = |table: &str, key: &Value| format!("{table} {}", text(&key[key_name(table)]["S"]));
    match operation {
        "GetItem" => vec![of(&text(&body["TableName"]), &body["Key"])],
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let keys = tables.flat_map(|(table, asked)| {
                asked["Keys"].as_array().into_iter().flatten().map(move |key| of(table, key))
            });
            keys.collect()
        }
        "Query" => {
            let (table, index) = (text(&body["TableName"]), text(&body["IndexName"]));
            vec![format!("{table}/{index} {}", either(&body["ExpressionAttributeValues"][":key"]))]
        }
        _ => Vec::new(),
    }
}

/// How DynamoDB refuses what it throttles.
pub(super) fn refusal(operation: &str, body: &Value, writes: usize) -> ServiceAnswer {
    let answer = |status, body: Value| ServiceAnswer { status, body: body.to_string().into() };
    match operation {
        "BatchGetItem" => answer(200, json!({"Responses": {}, "UnprocessedKeys": body["RequestItems"]})),
        "BatchExecuteStatement" => {
            let refused = json!({"Error": {"Code": "ThrottlingError", "Message": "throttled"}});
            answer(200, json!({ "Responses": vec![refused; writes] }))
        }
        "TransactWriteItems" => {
            let reasons = vec![json!({"Code": "ThrottlingError", "Message": "throttled"}); writes];
            let name = "TransactionCanceledException";
            answer(400, json!({"__type": name, "Message": "throttled", "CancellationReasons": reasons}))
        }
        _ => ServiceAnswer::error(400, "ThrottlingException", "throttled"),
    }
}

pub(super) fn size(item: &HashMap<String, AttributeValue>) -> usize {
    fn bytes(value: &AttributeValue) -> usize {
        match value {
            AttributeValue::S(text) => text.len(),
            AttributeValue::B(blob) => blob.as_ref().len(),
            AttributeValue::Bs(set) => set.iter().map(|element| element.as_ref().len()).sum(),
            AttributeValue::M(map) => 3 + map.iter().map(|(name, of)| name.len() + bytes(of) + 1).sum::<usize>(),
            _ => 8,
        }
    }
    item.iter().map(|(name, of)| name.len() + bytes(of)).sum()
}
