//! Transactions, with what became of each action.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};

use super::{Item, StoreError, Table};
use crate::limits::{CONTENTION_TRIES, STORE_PAUSES};

/// An action that asks for the old item if its condition fails.
pub(crate) fn put(mut put: Put) -> TransactWriteItem {
    put.return_values_on_condition_check_failure = Some(ReturnValuesOnConditionCheckFailure::AllOld);
    TransactWriteItem::builder().put(put).build()
}

/// An action that asks for the old item if its condition fails.
pub(crate) fn update(mut update: Update) -> TransactWriteItem {
    update.return_values_on_condition_check_failure = Some(ReturnValuesOnConditionCheckFailure::AllOld);
    TransactWriteItem::builder().update(update).build()
}

/// What became of a transaction.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All of it was applied.
    Done,
    /// None of it was: the actions, by position, whose conditions failed, each with the item as it stands.
    Refused(Vec<(usize, Option<Item>)>),
}

/// Writes all or nothing, in one table or several; `table` names them in errors. Conflicts with other writers, and throttling, are tried again; a failed condition is not. The
/// SDK sends one token for all its own retries, so an answer that is lost does not apply the transaction twice.
pub(crate) async fn write(table: &Table, actions: &[TransactWriteItem]) -> Result<Outcome, StoreError> {
    for tries in 1..=CONTENTION_TRIES {
        let call = table.client.transact_write_items().set_transact_items(Some(actions.to_vec()));
        let error = match call.send().await {
            Ok(_) => return Ok(Outcome::Done),
            Err(error) => error,
        };
        let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) = error.as_service_error() else {
            return Err(StoreError::service("TransactWriteItems", &table.name, error));
        };
        let reasons = canceled.cancellation_reasons();
        let refused: Vec<_> = reasons
            .iter()
            .enumerate()
            .filter(|(_, reason)| reason.code() == Some("ConditionalCheckFailed"))
            .map(|(at, reason)| (at, reason.item.clone()))
            .collect();
        if !refused.is_empty() {
            return Ok(Outcome::Refused(refused));
        }
        let passing = |code: Option<&str>| {
            matches!(
                code,
                None | Some("None" | "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded")
            )
        };
        if !reasons.iter().all(|reason| passing(reason.code())) {
            return Err(StoreError::service("TransactWriteItems", &table.name, error));
        }
        tokio::time::sleep(STORE_PAUSES.after(tries, table.world.random.next())).await;
    }
    Err(StoreError::Contended { what: format!("a transaction of {} actions on {}", actions.len(), table.name) })
}
