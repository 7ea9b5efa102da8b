//! Sends a change, on its own or as an action of a transaction.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Change;
use crate::aws::{Item, StoreError, Write};

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

    fn call(self, wanted: ReturnValue) -> BoxFuture<'a, Result<Write<UpdateItemOutput>, StoreError>> {
        async move {
            let (update, condition) = self.expressions();
            let call = self.table.client.update_item().table_name(&self.table.name);
            let call = call.key(self.key.0, AttributeValue::S(self.key.1)).return_values(wanted);
            let call = call.set_update_expression(update).set_condition_expression(condition);
            let call = call.set_expression_attribute_names(some(self.names));
            let call = call.set_expression_attribute_values(some(self.values));
            match call
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .send()
                .await
            {
                Ok(answer) => Ok(Write::Done(answer)),
                Err(error) => match error.as_service_error() {
                    Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                        Ok(Write::Refused(refused.item.clone()))
                    }
                    _ => Err(StoreError::service("UpdateItem", &self.table.name, error)),
                },
            }
        }
        .boxed()
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

/// DynamoDB takes no empty map.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}
