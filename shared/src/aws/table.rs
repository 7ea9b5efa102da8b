//! A table and the few ways Fanfold reads and writes it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};

use super::{Embedded, Item, StoreError, Write};
use crate::clock::{Timestamp, World};
use crate::limits::{KEYS_PER_READ_MAX, STORE_PAUSES, STORE_WAIT_MAX};
use crate::retention::Retention;
use futures::FutureExt;
use futures::future::BoxFuture;

/// A table by its name.
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) client: Client,
    pub(super) embedded: Option<Arc<dyn Embedded>>,
    pub(crate) name: String,
    pub(crate) world: World,
    pub(crate) retention: Retention,
}

impl Table {
    /// The table of that name, as a worker with this clock and randomness uses it.
    #[must_use]
    pub fn new(client: Client, name: impl Into<String>, world: World) -> Self {
        Self { client, embedded: None, name: name.into(), world, retention: Retention::default() }
    }

    /// The same table, whose records are kept for so long.
    #[must_use]
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// The same table, which an engine in this process has.
    #[must_use]
    pub(crate) fn served_by(self, embedded: Option<Arc<dyn Embedded>>) -> Self {
        Self { embedded, ..self }
    }

    /// When a record expires that is to be kept for `least` from now on, at least.
    pub(crate) fn expires(&self, least: Duration) -> Timestamp {
        self.retention.until(self.world.now(), least)
    }

    /// Reads one item.
    pub(crate) fn get(
        &self,
        key: &'static str,
        value: String,
        consistent: bool,
    ) -> BoxFuture<'_, Result<Option<Item>, StoreError>> {
        async move {
            let embedded = self.embedded().await;
            if let Some(found) = embedded.and_then(|engine| engine.get(&self.name, (key, &value), consistent)) {
                return Ok(found);
            }
            let request = self.client.get_item().table_name(&self.name).key(key, AttributeValue::S(value));
            let request = request.consistent_read(consistent);
            let answer = self.patiently(move || request.clone().send()).await;
            Ok(answer.map_err(|error| StoreError::service("GetItem", &self.name, error))?.item)
        }
        .boxed()
    }

    /// A request that the SDK refuses to build.
    pub(crate) fn unbuilt(&self, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Unbuilt { table: self.name.clone(), problem: error.to_string() }
    }

    /// Reads many items, in no order; absent ones are left out. `attributes`: only these.
    pub(crate) fn get_many<'a>(
        &'a self,
        key: &'static str,
        values: &'a [String],
        attributes: &'a [&'a str],
        consistent: bool,
    ) -> BoxFuture<'a, Result<Vec<Item>, StoreError>> {
        async move {
            let mut items = Vec::with_capacity(values.len());
            // DynamoDB refuses a call that asks for one item twice.
            let values: Vec<&String> = values.iter().collect::<BTreeSet<_>>().into_iter().collect();
            for chunk in values.chunks(KEYS_PER_READ_MAX) {
                let embedded = self.embedded().await;
                match embedded.and_then(|engine| engine.get_many(&self.name, key, chunk, attributes, consistent)) {
                    Some(found) => items.extend(found),
                    None => items.extend(self.get_chunk(key, chunk, attributes, consistent).await?),
                }
            }
            Ok(items)
        }
        .boxed()
    }

    /// As many items as one request can ask for.
    async fn get_chunk(
        &self,
        key: &'static str,
        chunk: &[&String],
        attributes: &[&str],
        consistent: bool,
    ) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::with_capacity(chunk.len());
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
        let mut pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
        while let Some(request) = rest.take().filter(|request| !request.is_empty()) {
            let read = self.client.batch_get_item().set_request_items(Some(request));
            let answer = self.patiently(move || read.clone().send()).await;
            let answer = answer.map_err(|error| StoreError::service("BatchGetItem", &self.name, error))?;
            let before = items.len();
            items.extend(answer.responses.unwrap_or_default().into_values().flatten());
            rest = answer.unprocessed_keys;
            if rest.as_ref().is_some_and(|rest| !rest.is_empty()) {
                // Throttled, or more than 16 MB: then the next call brings more.
                if items.len() > before {
                    pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
                }
                let Some(pause) = pauses.next(self.world.random.next()) else {
                    let what = format!("reading {} items of {}", chunk.len(), self.name);
                    return Err(StoreError::Contended { what });
                };
                tokio::time::sleep(pause).await;
            }
        }
        Ok(items)
    }

    /// Puts an item, unless there is one with its key.
    pub(crate) fn insert(&self, key: &'static str, item: Item) -> BoxFuture<'_, Result<Write, StoreError>> {
        async move {
            let condition = absent(key);
            if let Some(written) = self.embedded().await.and_then(|engine| engine.put(&self.name, &item, &condition)) {
                return Ok(written.counted());
            }
            let put = self.client.put_item().table_name(&self.name).set_item(Some(item));
            let put = put.condition_expression(condition);
            let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
            match self.patiently(move || put.clone().send()).await {
                Ok(_) => Ok(Write::Done(())),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                        Ok(Write::Refused(refused.item.clone()).counted())
                    }
                    _ => Err(StoreError::service("PutItem", &self.name, error)),
                },
            }
        }
        .boxed()
    }

    /// The same as an action of a transaction.
    pub(crate) fn insert_action(&self, key: &'static str, item: Item) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder().table_name(&self.name).set_item(Some(item)).condition_expression(absent(key));
        let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = put.build().map_err(|error| self.unbuilt(&error))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}

fn absent(key: &str) -> String {
    format!("attribute_not_exists({key})")
}
