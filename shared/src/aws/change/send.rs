//! Sends a change, on its own or as an action of a transaction.

use std::collections::HashMap;

use aws_sdk_dynamodb::config::{Config, retry::RetryConfig};
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Change;
use crate::aws::{EmbeddedUpdate, Item, StoreError, Table, Write};

impl<'a> Change<'a> {
    /// Sends it.
    pub(crate) async fn send(self) -> Result<Write, StoreError> {
        Ok(self.call(ReturnValue::None).await?.map(drop))
    }

    /// Sends it. Returns the item as it is then.
    pub(crate) async fn send_for_new(self) -> Result<Write<Item>, StoreError> {
        Ok(self.call(ReturnValue::AllNew).await?.map(Option::unwrap_or_default))
    }

    /// The same, for what counts again if it is applied again: sent once more only if nothing came of it. After any other
    /// failure it may have been applied.
    pub(crate) fn send_once_for_new(self) -> BoxFuture<'a, Result<Write<Item>, StoreError>> {
        let once = |call: UpdateItemFluentBuilder| {
            call.customize().config_override(Config::builder().retry_config(RetryConfig::disabled())).send()
        };
        async move { Ok(Request::of(self, ReturnValue::AllNew).send(once).await?.map(Option::unwrap_or_default)) }
            .boxed()
    }

    /// Sends it. The SDK repeats it after other failures that may pass.
    fn call(self, wanted: ReturnValue) -> BoxFuture<'a, Result<Write<Option<Item>>, StoreError>> {
        async move { Request::of(self, wanted).send(UpdateItemFluentBuilder::send).await }.boxed()
    }

    /// The change as an action of a transaction.
    pub(crate) fn action(self) -> Result<TransactWriteItem, StoreError> {
        let (update, condition) = self.expressions();
        let action = Update::builder()
            .table_name(&self.table.name)
            .key(self.key.0, AttributeValue::S(self.key.1))
            .set_update_expression(update)
            .set_condition_expression(condition)
            .set_expression_attribute_names(some(self.names))
            .set_expression_attribute_values(some(self.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let action = action.build().map_err(|error| self.table.unbuilt(&error))?;
        Ok(TransactWriteItem::builder().update(action).build())
    }
}

/// A change with its expressions.
struct Request<'a> {
    change: Change<'a>,
    update: Option<String>,
    condition: Option<String>,
    wanted: ReturnValue,
}

impl<'a> Request<'a> {
    fn of(change: Change<'a>, wanted: ReturnValue) -> Self {
        let (update, condition) = change.expressions();
        Self { change, update, condition, wanted }
    }

    /// What becomes of it: by the engine in this process, or else by `send`.
    async fn send<F>(self, send: impl Fn(UpdateItemFluentBuilder) -> F) -> Result<Write<Option<Item>>, StoreError>
    where
        F: Future<Output = Result<UpdateItemOutput, SdkError<UpdateItemError>>>,
    {
        let written = match self.embedded().await {
            Some(written) => written,
            None => {
                let (table, call) = self.call();
                read(table, table.patiently(move || send(call.clone())).await)?
            }
        };
        Ok(written.counted())
    }

    /// What the engine in this process makes of it, if there is one and it need not be sent.
    async fn embedded(&self) -> Option<Write<Option<Item>>> {
        let Change { table, key: (name, value), names, values, .. } = &self.change;
        let (update, condition) = (self.update.as_deref(), self.condition.as_deref());
        let wants_new = self.wanted == ReturnValue::AllNew;
        let engine = table.embedded().await?;
        engine.update(&EmbeddedUpdate {
            table: &table.name,
            key: (name, value),
            update,
            condition,
            names,
            values,
            wants_new,
        })
    }

    fn call(self) -> (&'a Table, UpdateItemFluentBuilder) {
        let Change { table, key: (name, value), names, values, .. } = self.change;
        let call = table.client.update_item().table_name(&table.name);
        let call = call.key(name, AttributeValue::S(value)).return_values(self.wanted);
        let call = call.set_update_expression(self.update).set_condition_expression(self.condition);
        let call = call.set_expression_attribute_names(some(names)).set_expression_attribute_values(some(values));
        (table, call.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld))
    }
}

/// What became of a change, as its answer says.
fn read(
    table: &Table,
    answer: Result<UpdateItemOutput, SdkError<UpdateItemError>>,
) -> Result<Write<Option<Item>>, StoreError> {
    match answer {
        Ok(answer) => Ok(Write::Done(answer.attributes)),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(refused)) => Ok(Write::Refused(refused.item.clone())),
            _ => Err(StoreError::service("UpdateItem", &table.name, error)),
        },
    }
}

/// DynamoDB takes no empty map.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}
