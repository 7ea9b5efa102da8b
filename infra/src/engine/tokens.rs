//! Transactions by their tokens: one that is repeated is not applied again.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use dynoxide::actions::transact_write_items::{
    TransactWriteItem, TransactWriteItemsRequest, TransactWriteItemsResponse,
};
use dynoxide::errors::DynoxideError;
use dynoxide::types::{ConsumedCapacity, TRANSACTIONAL_CAPACITY_FACTOR};
use serde_json::Value;
use tokio::time::Instant;

/// How long a transaction is known by its token, as DynamoDB documents.
const WINDOW: Duration = Duration::from_secs(600);

/// The most bytes of a token, as DynamoDB documents.
const TOKEN_BYTES_MAX: usize = 36;

/// The transactions of the last ten minutes.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    actions: HashMap<String, Value>,
    /// When each was applied, in that order.
    applied: VecDeque<(Instant, String)>,
}

impl Tokens {
    /// The answer to a transaction that was applied, when it is repeated; an error if its token was used for another one, or
    /// cannot be one.
    pub(super) fn answer(
        &mut self,
        token: &str,
        request: &TransactWriteItemsRequest,
    ) -> Result<Option<TransactWriteItemsResponse>, DynoxideError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(DynoxideError::ValidationException(format!(
                "Value '{token}' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or \
                 equal to {TOKEN_BYTES_MAX}"
            )));
        }
        while let Some((_, token)) = self.applied.pop_front_if(|(applied, _)| applied.elapsed() >= WINDOW) {
            self.actions.remove(&token);
        }
        match self.actions.get(token) {
            None => Ok(None),
            Some(actions) if *actions == comparable(request)? => Ok(Some(repeated(request))),
            Some(_) => Err(DynoxideError::IdempotentParameterMismatchException(
                "the token was used for another transaction".to_owned(),
            )),
        }
    }

    /// Notes that a transaction was applied.
    pub(super) fn remember(&mut self, token: String, request: &TransactWriteItemsRequest) -> Result<(), DynoxideError> {
        self.actions.insert(token.clone(), comparable(request)?);
        self.applied.push_back((Instant::now(), token));
        Ok(())
    }
}

/// The actions of a transaction, to be compared whatever the order of their attributes.
fn comparable(request: &TransactWriteItemsRequest) -> Result<Value, DynoxideError> {
    serde_json::to_value(&request.transact_items).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// A repeated transaction is charged as a read of its items: here for items of one unit, which is 4 KB.
fn repeated(request: &TransactWriteItemsRequest) -> TransactWriteItemsResponse {
    let mut counts: HashMap<&str, f64> = HashMap::new();
    for table in request.transact_items.iter().filter_map(table) {
        *counts.entry(table).or_default() += TRANSACTIONAL_CAPACITY_FACTOR;
    }
    let consumed = counts.into_iter().map(|(table, units)| ConsumedCapacity {
        table_name: table.to_owned(),
        capacity_units: units,
        read_capacity_units: Some(units),
        ..ConsumedCapacity::default()
    });
    TransactWriteItemsResponse {
        consumed_capacity: request.return_consumed_capacity.is_some().then(|| consumed.collect()),
        ..TransactWriteItemsResponse::default()
    }
}

fn table(item: &TransactWriteItem) -> Option<&str> {
    let put = item.put.as_ref().map(|put| &put.table_name);
    let update = || item.update.as_ref().map(|update| &update.table_name);
    let delete = || item.delete.as_ref().map(|delete| &delete.table_name);
    let check = || item.condition_check.as_ref().map(|check| &check.table_name);
    put.or_else(update).or_else(delete).or_else(check).map(String::as_str)
}
