//! Batches of statements, all in one transaction of the database: the engine would parse each, and begin and end a transaction
//! for each, which is half of the work of a run. What differs from the usual forms in any way is left to the engine.

mod plan;
mod request;
mod schema;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::HashSet;

use bytes::Bytes;
use dynoxide::ImportOptions;
use dynoxide::actions::batch_execute_statement::{
    BatchExecuteStatementResponse, BatchStatementError, BatchStatementResponse,
};
use dynoxide::actions::import_items;
use dynoxide::storage::Storage;
use dynoxide::types::{AttributeValue, Item, MAX_ITEM_SIZE, item_size, table_write_capacity_units};

use self::plan::Plan;
use self::request::{Batch, Run};
use self::schema::{Schema, stored_key};
use super::database::{Answer, Database};
use crate::usage::Units;

/// Answers a batch of statements; none if the engine has to.
pub(super) fn answer(database: &Database, body: &[u8]) -> Option<(Bytes, Units)> {
    let batch = Batch::read(body)?;
    // An error, whatever it is, left everything as it was: the engine finds it again and says what is wrong.
    let (responses, units) = database.run(async |storage| apply(storage, batch).await).ok()??;
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

async fn apply(storage: &Storage, batch: Batch) -> Answer<Option<(Vec<BatchStatementResponse>, f64)>> {
    let Batch { plan, runs } = batch;
    let Some(table) = storage.get_table_metadata(plan.table())? else { return Ok(None) };
    let Some(schema) = Schema::of(&table) else { return Ok(None) };
    let wants_old: Vec<bool> = runs.iter().map(|run| run.wants_old).collect();
    let mut fates = Vec::with_capacity(runs.len());
    let mut keys = HashSet::with_capacity(runs.len());
    let query = format!("SELECT item_json FROM \"{}\" WHERE pk = ?1 AND sk = ''", plan.table());
    let mut statement = storage.conn().prepare_cached(&query)?;
    for run in runs {
        let Some(key) = key(&plan, &schema, &run).and_then(stored_key) else { return Ok(None) };
        let mut rows = statement.query([&key])?;
        let old = match rows.next()? {
            Some(row) => match serde_json::from_str(&row.get::<_, String>(0)?) {
                Ok(item) => Some(item),
                Err(_) => return Ok(None),
            },
            None => None,
        };
        let Some(fate) = fate(&plan, &schema, run, old) else { return Ok(None) };
        if !keys.insert(key) {
            return Ok(None);
        }
        fates.push(fate);
    }
    drop(statement);
    let new = fates.iter().filter_map(|fate| match fate {
        Fate::Written { new, .. } => Some(new.clone()),
        Fate::Refused { .. } => None,
    });
    import_items::execute(storage, plan.table(), new.collect(), &ImportOptions::default()).await?;
    let units = units(&schema, &fates);
    let responses = fates.into_iter().zip(wants_old).map(|(fate, wants_old)| response(&plan, fate, wants_old));
    Ok(Some((responses.collect(), units)))
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

/// The write units of a batch. A statement that failed costs what the item that is there, or the one it brought, takes to write.
fn units(schema: &Schema, fates: &[Fate]) -> f64 {
    let units = |fate: &Fate| match fate {
        Fate::Written { old, new } => {
            let table = table_write_capacity_units(old.as_ref().map(item_size), Some(item_size(new)));
            table + schema.index_units(old.as_ref(), new)
        }
        Fate::Refused { old, brought } => table_write_capacity_units(old.as_ref().map(item_size), *brought),
    };
    fates.iter().map(units).sum()
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
