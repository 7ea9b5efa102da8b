//! Transactions, with the result of each action.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::TransactWriteItem;

use super::statements::RefusedWrite;
use super::{StoreError, Table, Write};
use crate::limits::{STORE_PAUSES, STORE_WAIT_MAX};
use crate::metrics::CONFLICTS;
use futures::FutureExt;
use futures::future::BoxFuture;

impl Table {
    /// Writes all or nothing, in this table or several. Conflicts with other writers and throttling are tried again. A failed
    /// condition is not: the actions whose conditions failed are returned as refused. The SDK sends one token with all its own
    /// retries, so a transaction whose answer is lost is not applied twice.
    pub(crate) fn transact<'a>(
        &'a self,
        actions: &'a [TransactWriteItem],
    ) -> BoxFuture<'a, Result<Write<(), Vec<RefusedWrite>>, StoreError>> {
        async move {
            let mut pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
            loop {
                let call = || self.client.transact_write_items().set_transact_items(Some(actions.to_vec())).send();
                let error = match self.patiently(call).await {
                    Ok(_) => return Ok(Write::Done(())),
                    Err(error) => error,
                };
                let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) = error.as_service_error()
                else {
                    return Err(StoreError::service("TransactWriteItems", &self.name, error));
                };
                let reasons = canceled.cancellation_reasons();
                let refused: Vec<RefusedWrite> = reasons
                    .iter()
                    .enumerate()
                    .filter(|(_, reason)| reason.code() == Some("ConditionalCheckFailed"))
                    .map(|(at, reason)| (at, reason.item.clone()))
                    .collect();
                if !refused.is_empty() {
                    metrics::counter!(CONFLICTS).increment(refused.len() as u64);
                    return Ok(Write::Refused(refused));
                }
                let passing = |code: Option<&str>| {
                    matches!(
                        code,
                        None | Some(
                            "None" | "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded"
                        )
                    )
                };
                if !reasons.iter().all(|reason| passing(reason.code())) {
                    return Err(StoreError::service("TransactWriteItems", &self.name, error));
                }
                let Some(pause) = pauses.next(self.world.random.next()) else {
                    let what = format!("a transaction of {} actions on {}", actions.len(), self.name);
                    return Err(StoreError::Contended { what });
                };
                tokio::time::sleep(pause).await;
            }
        }
        .boxed()
    }
}
