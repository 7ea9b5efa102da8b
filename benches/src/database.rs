//! The few requests of DynamoDB that the simpler algorithms make, each in the cheapest way there is.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementRequest, KeysAndAttributes, PutRequest, TransactWriteItem, Update, WriteRequest,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Outcome;

/// A record.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// Requests that one worker makes at once, as ours do.
pub(crate) const AT_ONCE: usize = 16;

/// Puts of one request, and statements of one, at most.
const WRITES: usize = 25;

/// Keys of one request at most.
const READS: usize = 100;

pub(crate) fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub(crate) fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A number of a record; zero if it is not there.
pub(crate) fn number_of(item: &Item, name: &str) -> u64 {
    item.get(name).and_then(|value| value.as_n().ok()).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// A text of a record; empty if it is not there.
pub(crate) fn text_of(item: &Item, name: &str) -> String {
    item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
}

pub(crate) fn record<const N: usize>(fields: [(&str, AttributeValue); N]) -> Item {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Stores records, whatever was there.
pub(crate) async fn put_all(client: &Client, table: &str, items: impl Iterator<Item = Item>) -> Outcome<()> {
    let items: Vec<Item> = items.collect();
    let calls = items.chunks(WRITES).map(|chunk| async move {
        let puts = chunk.iter().map(|item| {
            let put = PutRequest::builder().set_item(Some(item.clone())).build()?;
            Ok(WriteRequest::builder().put_request(put).build())
        });
        let puts = puts.collect::<Outcome<Vec<_>>>()?;
        client.batch_write_item().request_items(table, puts).send().await?;
        Ok(())
    });
    let calls: Vec<_> = calls.collect();
    stream::iter(calls).buffer_unordered(AT_ONCE).try_collect().await
}

/// Reads records consistently, by their `id`.
pub(crate) async fn get_all(client: &Client, table: &str, ids: &[String]) -> Outcome<BTreeMap<String, Item>> {
    let calls = ids.chunks(READS).map(|chunk| async move {
        let keys = chunk.iter().map(|id| record([("id", text(id))])).collect();
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build()?;
        let answer = client.batch_get_item().request_items(table, keys).send().await?;
        Outcome::Ok(answer.responses.unwrap_or_default().remove(table).unwrap_or_default())
    });
    let calls: Vec<_> = calls.collect();
    let items: Vec<Vec<Item>> = stream::iter(calls).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(items.into_iter().flatten().map(|item| (text_of(&item, "id"), item)).collect())
}

/// Runs a PartiQL statement once for each list of parameters, and returns for which the condition held.
pub(crate) async fn statements(
    client: &Client,
    statement: &str,
    parameters: Vec<Vec<AttributeValue>>,
) -> Outcome<Vec<bool>> {
    let calls = parameters.chunks(WRITES).map(|chunk| async move {
        let statements = chunk.iter().map(|parameters| {
            let request = BatchStatementRequest::builder().statement(statement);
            Ok(request.set_parameters(Some(parameters.clone())).build()?)
        });
        let statements = statements.collect::<Outcome<Vec<_>>>()?;
        let answer = client.batch_execute_statement().set_statements(Some(statements)).send().await?;
        Outcome::Ok(answer.responses.unwrap_or_default().iter().map(|response| response.error.is_none()).collect())
    });
    let calls: Vec<_> = calls.collect();
    let held: Vec<Vec<bool>> = stream::iter(calls).buffered(AT_ONCE).try_collect().await?;
    Ok(held.concat())
}

/// An update by expressions, as a part of a transaction.
pub(crate) fn update<const N: usize>(
    table: &str,
    id: &str,
    change: &str,
    condition: Option<&str>,
    values: [(&str, AttributeValue); N],
) -> Outcome<Update> {
    let update = Update::builder().table_name(table).key("id", text(id)).update_expression(change);
    Ok(update
        .set_condition_expression(condition.map(str::to_owned))
        .set_expression_attribute_values((N > 0).then(|| record(values)))
        .build()?)
}

/// Makes all of these updates or none. Returns the positions of those whose condition failed.
pub(crate) async fn transact(client: &Client, updates: Vec<Update>) -> Outcome<Vec<usize>> {
    let items = updates.into_iter().map(|update| TransactWriteItem::builder().update(update).build()).collect();
    match client.transact_write_items().set_transact_items(Some(items)).send().await {
        Ok(_) => Ok(Vec::new()),
        Err(error) => {
            let TransactWriteItemsError::TransactionCanceledException(cancelled) = error.into_service_error() else {
                return Err("a transaction could not be made".into());
            };
            let reasons = cancelled.cancellation_reasons().iter().enumerate();
            let refused = reasons.filter(|(_, reason)| reason.code() == Some("ConditionalCheckFailed"));
            Ok(refused.map(|(at, _)| at).collect())
        }
    }
}
