//! Batches of statements, all in one transaction of the database: the engine would parse each, and begin and end a transaction
//! for each, which is half of the work of a run. What differs from the usual forms in any way is left to the engine.

mod plan;
mod request;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::HashSet;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use bytes::Bytes;
use dynoxide::actions::batch_execute_statement::{
    BatchExecuteStatementResponse, BatchStatementError, BatchStatementResponse,
};
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;
use dynoxide::types::{AttributeValue, Item, item_size, table_write_capacity_units};
use fanfold::aws::Write;

use self::plan::Plan;
use self::request::{Batch, Row};
use super::database::{Database, DatabaseResult};
use super::direct::Known;
use super::direct::rows::{item, transaction};
use super::direct::schema::Schema;
use super::direct::value::{Value, sdk_item};
use super::direct::writes::{insert, save};
use crate::usage::Units;

/// Answers a batch of statements; none if the engine has to.
pub(super) fn answer(database: &Database, body: &[u8]) -> Option<(Bytes, Units)> {
    let (batch, wants_old) = request::read(body)?;
    let (fates, units) = run(database, &batch.plan, batch.rows)?;
    let responses = fates.into_iter().zip(wants_old).map(|(fate, wants_old)| response(&batch.plan, fate, wants_old));
    let response = BatchExecuteStatementResponse { responses: responses.collect(), consumed_capacity: None };
    Some((Bytes::from(serde_json::to_vec(&response).ok()?), Units::write(units)))
}

/// Executes a statement for many rows of parameters; nothing if the engine has to. Returns what became of each, and the write units.
pub(super) fn execute(database: &Database, statement: &str, rows: &[&[SdkValue]]) -> Option<(Vec<Write>, f64)> {
    let rows = rows.iter().map(|row| row.iter().map(Value::of).collect()).collect::<Option<_>>()?;
    let batch = Batch::of(statement, rows)?;
    let (fates, units) = run(database, &batch.plan, batch.rows)?;
    let shown = |old: Option<Item>| old.filter(|_| matches!(batch.plan, Plan::Update { .. })).map(sdk_item);
    let fates = fates.into_iter().map(|fate| match fate {
        Fate::Written(_) => Write::Done(()),
        Fate::Refused(old, _) => Write::Refused(shown(old)),
    });
    Some((fates.collect(), units))
}

/// What a statement comes to.
enum Fate {
    /// The item is written, for so many units.
    Written(f64),
    /// Its condition failed on this item, if there is one, for so many units.
    Refused(Option<Item>, f64),
}

/// Runs a batch of statements, each on its own. Returns the write units, too.
fn run(database: &Database, plan: &Plan, rows: Vec<Row>) -> Option<(Vec<Fate>, f64)> {
    let fates = database.direct(|storage, known| apply(storage, known, plan, rows))?;
    let units = fates.iter().map(|(Fate::Written(units) | Fate::Refused(_, units))| units).sum();
    Some((fates, units))
}

fn apply(storage: &Storage, known: &mut Known, plan: &Plan, rows: Vec<Row>) -> DatabaseResult<Option<Vec<Fate>>> {
    let Some(schema) = known.schema(storage, plan.table())? else { return Ok(None) };
    let stored_key = |row: &Row| key(plan, &schema, row).and_then(|key| schema.stored_key(key));
    let Some(keys) = rows.iter().map(stored_key).collect::<Option<Vec<String>>>() else { return Ok(None) };
    if keys.iter().collect::<HashSet<_>>().len() < keys.len() {
        return Ok(None);
    }
    let fates = transaction(storage, || {
        let fates = keys.iter().zip(rows).map(|(key, row)| {
            let fate = run_one(storage, &schema, plan, key, row)?;
            // An error, for what is written already not to stay.
            fate.ok_or_else(|| {
                DynoxideError::InternalServerError("a statement that the engine has to judge".to_owned())
            })
        });
        fates.collect::<DatabaseResult<Vec<Fate>>>()
    })?;
    Ok(Some(fates))
}

/// The key of the item that a statement is about.
fn key<'a>(plan: &Plan, schema: &Schema, row: &'a Row) -> Option<&'a AttributeValue> {
    let (names, values) = match plan {
        Plan::Insert { attributes, .. } => (attributes, row.as_slice()),
        Plan::Update { set, remove, conditions, .. } => {
            if set.contains(&schema.key) || remove.contains(&schema.key) {
                return None;
            }
            (conditions, &row[set.len()..])
        }
    };
    values.get(names.iter().position(|name| *name == schema.key)?)
}

/// Runs one statement; none if the engine has to. One that fails costs what the item that is there, or the one it brought, takes
/// to write.
fn run_one(storage: &Storage, schema: &Schema, plan: &Plan, key: &str, row: Row) -> DatabaseResult<Option<Fate>> {
    match plan {
        Plan::Insert { attributes, .. } => {
            let new: Item = attributes.iter().cloned().zip(row).collect();
            let Some(inserted) = insert(storage, schema, key, &new)? else { return Ok(None) };
            if let Some((_, units)) = inserted {
                return Ok(Some(Fate::Written(units)));
            }
            let Some(old) = item(storage, schema, key)? else { return Ok(None) };
            let units = table_write_capacity_units(old.as_ref().map(item_size), Some(item_size(&new)));
            Ok(Some(Fate::Refused(old, units)))
        }
        Plan::Update { set, remove, conditions, .. } => {
            let Some(old) = item(storage, schema, key)? else { return Ok(None) };
            let mut values = row;
            let wanted = values.split_off(set.len());
            let conditions = conditions.iter().zip(&wanted).filter(|(name, _)| **name != schema.key);
            let comparable =
                |(_, value): (_, &AttributeValue)| matches!(value, AttributeValue::S(_) | AttributeValue::B(_));
            if !conditions.clone().all(comparable) {
                return Ok(None);
            }
            let holds = |item: &&Item| conditions.clone().all(|(name, value)| item.get(name) == Some(value));
            let Some(before) = old.as_ref().filter(holds) else {
                let units = table_write_capacity_units(old.as_ref().map(item_size), None);
                return Ok(Some(Fate::Refused(old, units)));
            };
            let mut new = before.clone();
            new.extend(set.iter().cloned().zip(values));
            new.retain(|name, _| !remove.contains(name));
            let saved = save(storage, schema, key, Some(before), &new)?;
            Ok(saved.map(|(_, units)| Fate::Written(units)))
        }
    }
}

fn response(plan: &Plan, fate: Fate, wants_old: bool) -> BatchStatementResponse {
    let mut response = BatchStatementResponse::default();
    response.table_name = Some(plan.table().to_owned());
    if let Fate::Refused(old, _) = fate {
        response.error = Some(match plan {
            Plan::Insert { .. } => BatchStatementError {
                code: "DuplicateItem".to_owned(),
                message: "Duplicate primary key exists in table".to_owned(),
                item: None,
            },
            Plan::Update { .. } => BatchStatementError {
                code: "ConditionalCheckFailed".to_owned(),
                message: "The conditional request failed".to_owned(),
                item: old.filter(|_| wants_old),
            },
        });
    }
    response
}
