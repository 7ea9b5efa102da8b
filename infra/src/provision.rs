//! Makes the tables and queues of a template in an engine.

use std::collections::HashMap;

use dynoxide::actions::{create_table, update_time_to_live};
use dynoxide::errors::DynoxideError;
use rustack_sqs_model::input::CreateQueueInput;
use serde_json::{Value, json};

use crate::engine::{Engine, EngineError, place};
use crate::template::{Key, Projection, QueueResource, TableResource, Template};

/// What makes two definitions of a table the same table.
const DEFINITION: [&str; 3] = ["AttributeDefinitions", "GlobalSecondaryIndexes", "KeySchema"];

impl Engine {
    /// Makes the tables and queues a template defines. A table that is already there is left as it is, and is an error if
    /// it has other keys, attributes or indexes.
    pub async fn provision(&self, template: &Template) -> Result<(), EngineError> {
        self.provision_tables(template)?;
        for queue in template.queues() {
            self.queues()
                .create(queue_input(queue))
                .await
                .map_err(|error| EngineError::Queue { queue: queue.name.clone(), problem: error.message })?;
        }
        Ok(())
    }

    /// Makes only the tables, for who has other queues: all of them or, if this fails or its process dies, none.
    ///
    /// # Errors
    /// A table cannot be made, or is another one.
    pub fn provision_tables(&self, template: &Template) -> Result<(), EngineError> {
        let database = self.tables().database();
        let all = || {
            template.tables().try_for_each(|table| {
                let problem = |problem| EngineError::Table { table: table.name.clone(), problem };
                self.provision_table(table).map_err(problem)
            })
        };
        database.all_or_nothing(all)
    }

    fn provision_table(&self, table: &TableResource) -> Result<(), String> {
        let database = self.tables().database();
        let wanted = definition(table);
        match database.describe_table(request(json!({ "TableName": table.name }))?) {
            Ok(found) => compare(&wanted, serde_json::to_value(found.table).map_err(text)?)?,
            Err(DynoxideError::ResourceNotFoundException(_)) => {
                let mut create = wanted;
                create["TableName"] = table.name.clone().into();
                create["BillingMode"] = "PAY_PER_REQUEST".into();
                let request = request(create)?;
                database.run(async |storage| create_table::execute(storage, request).await).map_err(text)?;
            }
            Err(error) => return Err(error.to_string()),
        }
        if let Some(attribute) = &table.ttl {
            let ttl = json!({
                "TableName": table.name,
                "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": true },
            });
            let request = request(ttl)?;
            database.run(async |storage| update_time_to_live::execute(storage, request).await).map_err(text)?;
        }
        Ok(())
    }
}

fn compare(wanted: &Value, mut found: Value) -> Result<(), String> {
    for name in DEFINITION {
        let found = normal(name, found[name].take());
        if found != wanted[name] {
            return Err(format!("it is there with another {name}: {found}, the template says {}", wanted[name]));
        }
    }
    Ok(())
}

/// A part of a table description as [`definition`] writes it: in order of names, without what only describes.
fn normal(part: &str, value: Value) -> Value {
    let Value::Array(mut list) = value else {
        return value;
    };
    match part {
        "AttributeDefinitions" => list.sort_by_key(|attribute| attribute["AttributeName"].to_string()),
        "GlobalSecondaryIndexes" => {
            for index in &mut list {
                if let Some(names) = index["Projection"].get_mut("NonKeyAttributes").and_then(Value::as_array_mut) {
                    names.sort_by_key(Value::to_string);
                }
                *index = json!({
                    "IndexName": index["IndexName"], "KeySchema": index["KeySchema"], "Projection": index["Projection"],
                });
            }
            list.sort_by_key(|index| index["IndexName"].to_string());
        }
        _ => {}
    }
    Value::Array(list)
}

fn definition(table: &TableResource) -> Value {
    let attribute = |(name, kind): &(String, String)| json!({ "AttributeName": name, "AttributeType": kind });
    let mut definition = json!({
        "KeySchema": key_schema(&table.key),
        "AttributeDefinitions": table.attributes.iter().map(attribute).collect::<Vec<_>>(),
    });
    if !table.indexes.is_empty() {
        let indexes = table.indexes.iter().map(|index| {
            json!({
                "IndexName": index.name, "KeySchema": key_schema(&index.key), "Projection": projection(&index.projection),
            })
        });
        definition["GlobalSecondaryIndexes"] = indexes.collect();
    }
    definition
}

fn key_schema(key: &Key) -> Value {
    let element = |name: &String, kind| json!({ "AttributeName": name, "KeyType": kind });
    let range = key.range.iter().map(|name| element(name, "RANGE"));
    std::iter::once(element(&key.hash, "HASH")).chain(range).collect()
}

fn projection(projection: &Projection) -> Value {
    match projection {
        Projection::All => json!({ "ProjectionType": "ALL" }),
        Projection::KeysOnly => json!({ "ProjectionType": "KEYS_ONLY" }),
        Projection::Include(names) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": names }),
    }
}

fn queue_input(queue: &QueueResource) -> CreateQueueInput {
    let mut attributes = HashMap::from([
        ("VisibilityTimeout".to_owned(), queue.visibility_timeout.to_string()),
        ("DelaySeconds".to_owned(), queue.delay.to_string()),
    ]);
    if let Some(redrive) = &queue.redrive {
        let policy = json!({
            "deadLetterTargetArn": place::queue_arn(&redrive.queue), "maxReceiveCount": redrive.max_receive_count,
        });
        attributes.insert("RedrivePolicy".to_owned(), policy.to_string());
    }
    CreateQueueInput { queue_name: queue.name.clone(), attributes, ..CreateQueueInput::default() }
}

/// Builds a request of the embedded database from its JSON.
fn request<T: serde::de::DeserializeOwned>(json: Value) -> Result<T, String> {
    serde_json::from_value(json).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
