//! Lets expired items go, as DynamoDB does by itself within days.

use dynoxide::actions::{delete_item, scan};
use dynoxide::errors::DynoxideError;
use dynoxide::storage::TableMetadata;
use dynoxide::types::Item;
use fanfold::clock::World;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::database::{Database, DatabaseResult};

/// Items looked at in one go: other requests wait for it.
const PAGE: usize = 100;

/// Deletes items whose time to live has passed, and counts them. Other requests are let in between.
pub(super) fn expire(database: &Database) -> DatabaseResult<usize> {
    let tables = database.run(async |storage| storage.list_ttl_enabled_tables())?;
    let now = World::system().now().0 / 1_000;
    let mut expired = 0;
    for table in &tables {
        let mut expiry = Expiry::of(table, now)?;
        while let Some(items) = expiry.page(database)? {
            for item in &items {
                expired += usize::from(expiry.delete(database, item)?);
            }
        }
    }
    Ok(expired)
}

/// The expired items of a table.
struct Expiry {
    /// The condition that an item is expired, with the name of its table.
    expired: Value,
    /// Names of the attributes of the key.
    key: Vec<String>,
    /// Where the next page begins, unless there is none.
    next: Option<Value>,
}

impl Expiry {
    fn of(table: &TableMetadata, now: u64) -> DatabaseResult<Self> {
        let schema: Vec<Value> = serde_json::from_str(&table.key_schema).map_err(internal)?;
        let name = |element: &Value| element["AttributeName"].as_str().map(str::to_owned);
        let expired = json!({
            "TableName": table.table_name,
            "ExpressionAttributeNames": { "#ttl": table.ttl_attribute },
            "ExpressionAttributeValues": { ":now": { "N": now.to_string() } },
        });
        Ok(Self { expired, key: schema.iter().filter_map(name).collect(), next: Some(Value::Null) })
    }

    /// The expired items among the next ones; none once all were looked at.
    fn page(&mut self, database: &Database) -> DatabaseResult<Option<Vec<Item>>> {
        let Some(start) = self.next.take() else { return Ok(None) };
        let mut page = self.expired.clone();
        page["FilterExpression"] = "#ttl < :now".into();
        page["Limit"] = PAGE.into();
        if !start.is_null() {
            page["ExclusiveStartKey"] = start;
        }
        let request: scan::ScanRequest = request(page)?;
        let page = database.run(async |storage| scan::execute(storage, request).await)?;
        self.next = page.last_evaluated_key.map(serde_json::to_value).transpose().map_err(internal)?;
        Ok(page.items)
    }

    /// Deletes an item that is still expired.
    fn delete(&self, database: &Database, item: &Item) -> DatabaseResult<bool> {
        let key = item.iter().filter(|(name, _)| self.key.contains(name));
        let mut delete = self.expired.clone();
        delete["ConditionExpression"] = "#ttl < :now".into();
        delete["Key"] = serde_json::to_value(key.collect::<std::collections::HashMap<_, _>>()).map_err(internal)?;
        let request: delete_item::DeleteItemRequest = request(delete)?;
        match database.run(async |storage| delete_item::execute(storage, request).await) {
            Ok(_) => Ok(true),
            Err(DynoxideError::ConditionalCheckFailedException(..)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn request<T: DeserializeOwned>(json: Value) -> DatabaseResult<T> {
    serde_json::from_value(json).map_err(internal)
}

fn internal(error: serde_json::Error) -> DynoxideError {
    DynoxideError::InternalServerError(error.to_string())
}
