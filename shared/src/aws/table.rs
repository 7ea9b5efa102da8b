//! A table and the few ways Fanfold reads and writes it.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnValuesOnConditionCheckFailure};

use super::{Item, StoreError};
use crate::clock::World;
use crate::limits::{CONTENTION_TRIES, KEYS_PER_READ, STORE_PAUSES};

/// What became of a conditional write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write<T = ()> {
    /// It was applied.
    Done(T),
    /// Its condition failed; the item as it stands, if there is one.
    Refused(Option<Item>),
}

/// A table by its name.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) world: World,
}

impl Table {
    /// The table of that name, as a worker with this clock and randomness uses it.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, world: World) -> Self {
        Self { client, name: name.into(), world }
    }

    /// Reads one item.
    pub(crate) async fn get(
        &self,
        key: &'static str,
        value: String,
        consistent: bool,
    ) -> Result<Option<Item>, StoreError> {
        let request = self.client.get_item().table_name(&self.name).key(key, AttributeValue::S(value));
        let answer = request.consistent_read(consistent).send().await;
        Ok(answer.map_err(|error| StoreError::service("GetItem", &self.name, error))?.item)
    }

    /// A request that the SDK refuses to build.
    pub(crate) fn unbuilt(&self, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Unbuilt { table: self.name.clone(), problem: error.to_string() }
    }

    /// Reads many items, in no order; absent ones are left out. `attributes`: only these.
    pub(crate) async fn get_many(
        &self,
        key: &'static str,
        values: &[String],
        attributes: &[&str],
        consistent: bool,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::with_capacity(values.len());
        // DynamoDB refuses a call that asks for one item twice.
        let values: Vec<&String> = values.iter().collect::<BTreeSet<_>>().into_iter().collect();
        for chunk in values.chunks(KEYS_PER_READ) {
            let mut keys = KeysAndAttributes::builder().consistent_read(consistent);
            for value in chunk {
                keys = keys.keys(HashMap::from([(key.to_owned(), AttributeValue::S((*value).clone()))]));
            }
            for (n, attribute) in attributes.iter().enumerate() {
                keys = keys.expression_attribute_names(format!("#a{n}"), *attribute);
            }
            if !attributes.is_empty() {
                let names: Vec<String> = (0..attributes.len()).map(|n| format!("#a{n}")).collect();
                keys = keys.projection_expression(names.join(","));
            }
            let keys = keys.build().map_err(|error| self.unbuilt(&error))?;
            let mut rest = Some(HashMap::from([(self.name.clone(), keys)]));
            let mut tries = 0;
            while let Some(request) = rest.take().filter(|request| !request.is_empty()) {
                tries += 1;
                if tries > CONTENTION_TRIES {
                    return Err(StoreError::Contended {
                        what: format!("reading {} items of {}", chunk.len(), self.name),
                    });
                }
                let answer = self.client.batch_get_item().set_request_items(Some(request)).send().await;
                let answer = answer.map_err(|error| StoreError::service("BatchGetItem", &self.name, error))?;
                items.extend(answer.responses.unwrap_or_default().into_values().flatten());
                rest = answer.unprocessed_keys;
                if rest.as_ref().is_some_and(|rest| !rest.is_empty()) {
                    // Throttled, or more than 16 MB.
                    tokio::time::sleep(STORE_PAUSES.after(tries, self.world.random.next())).await;
                }
            }
        }
        Ok(items)
    }

    /// Begins an update of one item.
    pub(crate) fn update(&self, key: &'static str, value: String) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.name)
            .key(key, AttributeValue::S(value))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Sends an update; returns what `ReturnValues` asked for.
    pub(crate) async fn send_update(&self, update: UpdateItemFluentBuilder) -> Result<Write<Option<Item>>, StoreError> {
        match update.send().await {
            Ok(answer) => Ok(Write::Done(answer.attributes)),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Write::Refused(refused.item.clone()))
                }
                _ => Err(StoreError::service("UpdateItem", &self.name, error)),
            },
        }
    }

    /// Begins a put of an item whose key must not exist yet.
    pub(crate) fn put_new(&self, key: &'static str, item: Item) -> PutItemFluentBuilder {
        self.client
            .put_item()
            .table_name(&self.name)
            .set_item(Some(item))
            .condition_expression(format!("attribute_not_exists({key})"))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Sends a put.
    pub(crate) async fn send_put(&self, put: PutItemFluentBuilder) -> Result<Write, StoreError> {
        match put.send().await {
            Ok(_) => Ok(Write::Done(())),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Write::Refused(refused.item.clone()))
                }
                _ => Err(StoreError::service("PutItem", &self.name, error)),
            },
        }
    }

    /// Pages through a query of a sparse index by its partition key, keys only, ascending; at most `limit` items.
    pub(crate) async fn query_index(
        &self,
        index: &'static str,
        partition: &str,
        limit: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut start = None;
        while items.len() < limit {
            let page = i32::try_from((limit - items.len()).min(1_000)).unwrap_or(1_000);
            let answer = self
                .client
                .query()
                .table_name(&self.name)
                .index_name(index)
                .key_condition_expression("#key = :key")
                .expression_attribute_names("#key", index)
                .expression_attribute_values(":key", AttributeValue::S(partition.to_owned()))
                .limit(page)
                .set_exclusive_start_key(start)
                .send()
                .await;
            let answer = answer.map_err(|error| StoreError::service("Query", &self.name, error))?;
            items.extend(answer.items.unwrap_or_default());
            start = answer.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(items)
    }
}
