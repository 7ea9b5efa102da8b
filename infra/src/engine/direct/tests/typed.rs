//! The same requests as the steps in this process make them, without the SDK.

use std::cell::Cell;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use dynoxide::types::{AttributeValue, Item};
use fanfold::aws::{Embedded, EmbeddedUpdate, Write};

use super::*;
use crate::engine::connector::Services;
use crate::engine::direct::value::{of_item, sdk_item, stored};
use crate::engine::sqs::Queues;
use crate::usage::Meter;

type SdkItem = HashMap<String, SdkValue>;

/// Tables that are asked so.
pub(super) struct Typed {
    pub(super) tables: Tables,
    services: Services,
    left: Cell<usize>,
}

fn item(json: &Value) -> SdkItem {
    let item: Option<Item> = serde_json::from_value(json.clone()).ok();
    sdk_item(item.unwrap_or_default())
}

fn json(item: &SdkItem) -> Value {
    serde_json::to_value(stored(of_item(item).unwrap()).unwrap()).unwrap()
}

fn key(body: &Value) -> Option<(&str, &str)> {
    let mut all = body.as_object()?.iter();
    let (one, None) = (all.next()?, all.next()) else { return None };
    Some((one.0, one.1["S"].as_str()?))
}

/// The answer to a write, as the engine gives it to one who does not ask for the new item.
fn answer(write: Write<Option<SdkItem>>) -> Result<Value, Value> {
    match write {
        Write::Done(None) => Ok(json!({})),
        Write::Done(Some(new)) => Ok(json!({ "Attributes": json(&new) })),
        Write::Refused(old) => {
            let old: Option<HashMap<String, AttributeValue>> = old.map(|old| stored(of_item(&old).unwrap()).unwrap());
            let error =
                DynoxideError::ConditionalCheckFailedException("The conditional request failed".to_owned(), old);
            Err(serde_json::from_str(&error.to_json()).unwrap())
        }
    }
}

impl Typed {
    pub(super) fn new(tables: Tables) -> Self {
        let services =
            Services { dynamodb: tables.clone(), sqs: Queues::new(), meter: Meter::default(), interceptor: None };
        Self { tables, services, left: Cell::new(0) }
    }

    /// How many writes were left to the engine.
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// What comes of a request, if the engine need not judge it.
    pub(super) fn asked(&self, operation: &str, body: &Value) -> Option<Came> {
        learn(self.tables.database(), operation, body.to_string().as_bytes());
        let before = self.services.meter.usage();
        let came = match operation {
            "UpdateItem" => self.update(body),
            "PutItem" => self.put(body),
            "GetItem" => self.get(body).map(Ok),
            _ => self.get_many(body).map(Ok),
        };
        let after = self.services.meter.usage();
        let units = Units { read: after.read_units - before.read_units, write: after.write_units - before.write_units };
        let requests = after.dynamodb_requests - before.dynamodb_requests;
        assert_eq!(requests, u64::from(came.is_some()), "what is left to the engine is not counted twice");
        // What is put by a step always has a condition.
        if came.is_none() && (operation != "PutItem" || !body["ConditionExpression"].is_null()) {
            self.left.set(self.left.get() + 1);
        }
        came.map(|came| (came, units))
    }

    fn update(&self, body: &Value) -> Option<Result<Value, Value>> {
        let names = body["ExpressionAttributeNames"].as_object().into_iter().flatten();
        let names = names.map(|(name, of)| (name.clone(), of.as_str().unwrap().to_owned())).collect();
        let update = EmbeddedUpdate {
            table: body["TableName"].as_str()?,
            key: key(&body["Key"])?,
            update: body["UpdateExpression"].as_str(),
            condition: body["ConditionExpression"].as_str(),
            names: &names,
            values: &item(&body["ExpressionAttributeValues"]),
            wants_new: body["ReturnValues"] == "ALL_NEW",
        };
        self.services.update(&update).map(answer)
    }

    fn put(&self, body: &Value) -> Option<Result<Value, Value>> {
        let condition = body["ConditionExpression"].as_str().unwrap_or_default();
        if condition.is_empty() {
            return None;
        }
        let written = self.services.put(body["TableName"].as_str()?, &item(&body["Item"]), condition);
        Some(answer(written?.map(|()| None)))
    }

    fn get(&self, body: &Value) -> Option<Value> {
        let consistent = body["ConsistentRead"].as_bool().unwrap_or_default();
        Some(match self.services.get(body["TableName"].as_str()?, key(&body["Key"])?, consistent)? {
            Some(found) => json!({ "Item": json(&found) }),
            None => json!({}),
        })
    }

    fn get_many(&self, body: &Value) -> Option<Value> {
        let asked = &body["RequestItems"]["locks"];
        let keys: Vec<String> = asked["Keys"].as_array()?.iter().map(|one| key(one).unwrap().1.to_owned()).collect();
        let names: Vec<&str> = asked["ExpressionAttributeNames"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, of)| of.as_str().unwrap())
            .collect();
        let consistent = asked["ConsistentRead"].as_bool().unwrap_or_default();
        let found = self.services.get_many("locks", "id", &keys.iter().collect::<Vec<_>>(), &names, consistent)?;
        let found: Vec<Value> = found.iter().map(json).collect();
        Some(json!({ "Responses": { "locks": found }, "UnprocessedKeys": {} }))
    }
}
