//! Batches of statements, all in one transaction of the database: the engine would parse each, and begin and end a transaction
//! for each, which is half of the work of a run. What differs from the usual forms in any way is left to the engine.

mod plan;
mod request;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::HashSet;

use bytes::Bytes;
use dynoxide::actions::batch_execute_statement::{
    BatchExecuteStatementResponse, BatchStatementError, BatchStatementResponse,
};
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;
use dynoxide::types::{AttributeValue, Item, MAX_ITEM_SIZE, item_size, table_write_capacity_units};

use self::plan::Plan;
use self::request::{Batch, Run};
use super::database::{Answer, Database};
use super::direct::Known;
use super::direct::rows::{item, transaction};
use super::direct::schema::Schema;
use super::direct::writes::save;
use crate::usage::Units;

/// Answers a batch of statements; none if the engine has to.
pub(super) fn answer(database: &Database, body: &[u8]) -> Option<(Bytes, Units)> {
    let batch = Batch::read(body)?;
    // An error, whatever it is, left everything as it was: the engine finds it again and says what is wrong.
    let (responses, units) = database.direct(|storage, known| apply(storage, known, batch))?;
    let response = BatchExecuteStatementResponse { responses, consumed_capacity: None };
    Some((Bytes::from(serde_json::to_vec(&response).ok()?), Units::write(units)))
}

/// What a statement comes to.
enum Fate {
    /// The item is written.
    Written { old: Option<Item>, new: Item },
    /// Its condition failed on this item, if there is one. The size is of the item it brought.
    Refused { old: Option<Item>, brought: Option<usize> },
}

fn apply(storage: &Storage, known: &mut Known, batch: Batch) -> Answer<Option<(Vec<BatchStatementResponse>, f64)>> {
    let Batch { plan, runs } = batch;
    let Some(schema) = known.schema(storage, plan.table())? else { return Ok(None) };
    let wants_old: Vec<bool> = runs.iter().map(|run| run.wants_old).collect();
    let mut fates = Vec::with_capacity(runs.len());
    let mut keys = HashSet::with_capacity(runs.len());
    for run in runs {
        let Some(key) = key(&plan, &schema, &run).and_then(|key| schema.stored_key(key)) else { return Ok(None) };
        let Some(old) = item(storage, &schema, &key)? else { return Ok(None) };
        let Some(fate) = fate(&plan, &schema, run, old) else { return Ok(None) };
        if !keys.insert(key.clone()) {
            return Ok(None);
        }
        fates.push((key, fate));
    }
    let units = transaction(storage, || {
        let units = fates.iter().map(|(key, fate)| write(storage, &schema, key, fate));
        units.sum::<Answer<f64>>()
    })?;
    let responses = fates.into_iter().zip(wants_old).map(|((_, fate), wants_old)| response(&plan, fate, wants_old));
    Ok(Some((responses.collect(), units)))
}

/// Writes what a statement comes to. Returns the write units: one that failed costs what the item that is there, or the one it
/// brought, takes to write.
fn write(storage: &Storage, schema: &Schema, key: &str, fate: &Fate) -> Answer<f64> {
    match fate {
        Fate::Written { old, new } => {
            let saved = save(storage, schema, key, old.as_ref(), new)?;
            let (_, units) = saved.ok_or_else(|| DynoxideError::InternalServerError("an unusual item".to_owned()))?;
            Ok(units)
        }
        Fate::Refused { old, brought } => Ok(table_write_capacity_units(old.as_ref().map(item_size), *brought)),
    }
}

/// The key of the item that a statement is about.
fn key<'a>(plan: &Plan, schema: &Schema, run: &'a Run) -> Option<&'a AttributeValue> {
    let (names, values) = match plan {
        Plan::Insert { attributes, .. } => (attributes, run.values.as_slice()),
        Plan::Update { set, remove, conditions, .. } => {
            if set.contains(&schema.key) || remove.contains(&schema.key) {
                return None;
            }
            (conditions, &run.values[set.len()..])
        }
    };
    values.get(names.iter().position(|name| *name == schema.key)?)
}

/// What a statement comes to; none if the engine has to tell.
fn fate(plan: &Plan, schema: &Schema, run: Run, old: Option<Item>) -> Option<Fate> {
    let new = match plan {
        Plan::Insert { attributes, .. } => {
            let new: Item = attributes.iter().cloned().zip(run.values).collect();
            if old.is_some() {
                return Some(Fate::Refused { old, brought: Some(item_size(&new)) });
            }
            new
        }
        Plan::Update { set, remove, conditions, .. } => {
            let mut values = run.values;
            let wanted = values.split_off(set.len());
            let mut conditions = conditions.iter().zip(&wanted).filter(|(name, _)| **name != schema.key);
            let comparable =
                |(_, value): (_, &AttributeValue)| matches!(value, AttributeValue::S(_) | AttributeValue::B(_));
            if !conditions.clone().all(comparable) {
                return None;
            }
            let holds = |item: &Item| conditions.all(|(name, value)| item.get(name) == Some(value));
            if !old.as_ref().is_some_and(holds) {
                return Some(Fate::Refused { old, brought: None });
            }
            let mut new = old.clone().unwrap_or_default();
            new.extend(set.iter().cloned().zip(values));
            new.retain(|name, _| !remove.contains(name));
            new
        }
    };
    (item_size(&new) <= MAX_ITEM_SIZE).then_some(Fate::Written { old, new })
}

fn response(plan: &Plan, fate: Fate, wants_old: bool) -> BatchStatementResponse {
    let mut response = BatchStatementResponse::default();
    response.table_name = Some(plan.table().to_owned());
    if let Fate::Refused { old, .. } = fate {
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
