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
use crate::aws::{Item, StoreError, Table, Write};
use crate::metrics::CONFLICTS;

impl<'a> Change<'a> {
    /// Sends it.
    pub(crate) async fn send(self) -> Result<Write, StoreError> {
        Ok(match self.call(ReturnValue::None).await? {
            Write::Done(_) => Write::Done(()),
            Write::Refused(item) => Write::Refused(item),
        })
    }

    /// Sends it. Returns the item as it is then.
    pub(crate) async fn send_for_new(self) -> Result<Write<Item>, StoreError> {
        Ok(match self.call(ReturnValue::AllNew).await? {
            Write::Done(answer) => Write::Done(answer.attributes.unwrap_or_default()),
            Write::Refused(item) => Write::Refused(item),
        })
    }

    /// The same, for what counts again if it is applied again: sent once more only if nothing came of it. After any other
    /// failure it may have been applied.
    pub(crate) fn send_once_for_new(self) -> BoxFuture<'a, Result<Write<Item>, StoreError>> {
        async move {
            let (table, call) = self.request(ReturnValue::AllNew);
            let send = move || {
                let once = Config::builder().retry_config(RetryConfig::disabled());
                call.clone().customize().config_override(once).send()
            };
            let answer = table.patiently(send).await;
            Ok(read(table, answer)?.map(|answer| answer.attributes.unwrap_or_default()))
        }
        .boxed()
    }

    /// Sends it. The SDK repeats it after other failures that may pass.
    fn call(self, wanted: ReturnValue) -> BoxFuture<'a, Result<Write<UpdateItemOutput>, StoreError>> {
        async move {
            let (table, call) = self.request(wanted);
            let answer = table.patiently(move || call.clone().send()).await;
            read(table, answer)
        }
        .boxed()
    }

    fn request(self, wanted: ReturnValue) -> (&'a Table, UpdateItemFluentBuilder) {
        let (update, condition) = self.expressions();
        let call = self.table.client.update_item().table_name(&self.table.name);
        let call = call.key(self.key.0, AttributeValue::S(self.key.1)).return_values(wanted);
        let call = call.set_update_expression(update).set_condition_expression(condition);
        let call = call.set_expression_attribute_names(some(self.names));
        let call = call.set_expression_attribute_values(some(self.values));
        (self.table, call.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld))
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

/// What became of a change, as its answer says.
fn read<R>(
    table: &Table,
    answer: Result<UpdateItemOutput, SdkError<UpdateItemError, R>>,
) -> Result<Write<UpdateItemOutput>, StoreError>
where
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match answer {
        Ok(answer) => Ok(Write::Done(answer)),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                metrics::counter!(CONFLICTS).increment(1);
                Ok(Write::Refused(refused.item.clone()))
            }
            _ => Err(StoreError::service("UpdateItem", &table.name, error)),
        },
    }
}

/// DynamoDB takes no empty map.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}
