//! Writes of one item.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;
use dynoxide::types::{Item, MAX_ITEM_SIZE, item_size, table_write_capacity_units};
use serde::Deserialize;

use super::condition::Subject;
use super::path::Names;
use super::plan::{Expressions, Plan};
use super::rows::{self, Row};
use super::schema::Schema;
use super::value::{self, Value};
use super::{Direct, update};
use crate::engine::database::{Database, DatabaseResult};
use crate::usage::Units;

/// The most bytes of a request that certainly asks for no larger item than there may be.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Update<'a> {
    #[serde(borrow)]
    table_name: Cow<'a, str>,
    key: HashMap<String, Value>,
    #[serde(borrow)]
    update_expression: Option<Cow<'a, str>>,
    #[serde(borrow)]
    condition_expression: Option<Cow<'a, str>>,
    expression_attribute_names: Option<Names>,
    expression_attribute_values: Option<HashMap<String, Value>>,
    return_values: Option<Return>,
    return_values_on_condition_check_failure: Option<Old>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Put<'a> {
    #[serde(borrow)]
    table_name: Cow<'a, str>,
    item: HashMap<String, Value>,
    #[serde(borrow)]
    condition_expression: Option<Cow<'a, str>>,
    return_values_on_condition_check_failure: Option<Old>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Return {
    None,
    AllNew,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(in crate::engine) enum Old {
    None,
    AllOld,
}

/// What a write comes to.
enum Fate {
    /// The item is written, as this JSON.
    Written(String),
    /// Its condition failed on this item, if there is one.
    Refused(Option<Item>),
}

/// A write of one item: put, update or delete.
struct Write<'a> {
    table: &'a str,
    expressions: Expressions<'a>,
    names: Names,
    values: HashMap<String, Value>,
}

/// Updates an item.
pub(super) fn update(database: &Database, body: &[u8]) -> Option<Direct> {
    if body.len() > REQUEST_BYTES_MAX {
        return None;
    }
    let request: Update<'_> = serde_json::from_slice(body).ok()?;
    let (names, values) = (&request.expression_attribute_names, &request.expression_attribute_values);
    let is_empty = names.as_ref().is_some_and(HashMap::is_empty) || values.as_ref().is_some_and(HashMap::is_empty);
    if is_empty || request.key.len() != 1 {
        return None;
    }
    let write = Write {
        table: &request.table_name,
        expressions: Expressions::new(request.update_expression, request.condition_expression),
        names: request.expression_attribute_names.unwrap_or_default(),
        values: request.expression_attribute_values.unwrap_or_default(),
    };
    let key = value::stored(request.key)?;
    let (fate, units) = write.run(database, key, |plan, old, subject, key, schema| {
        let mut created = None;
        let item = if old { subject.item } else { created.insert(key) };
        update::apply(&plan.update, &Subject { item, ..*subject }, &schema.key)
    })?;
    let wants_new = request.return_values == Some(Return::AllNew);
    let wants_old = request.return_values_on_condition_check_failure == Some(Old::AllOld);
    let answer = |json| if wants_new { format!("{{\"Attributes\":{json}}}") } else { "{}".to_owned() };
    Some(written("UpdateItem", fate, units, wants_old, answer))
}

/// Puts an item.
pub(super) fn put(database: &Database, body: &[u8]) -> Option<Direct> {
    if body.len() > REQUEST_BYTES_MAX {
        return None;
    }
    let request: Put<'_> = serde_json::from_slice(body).ok()?;
    let write = Write {
        table: &request.table_name,
        expressions: Expressions::new(None, request.condition_expression),
        names: Names::new(),
        values: HashMap::new(),
    };
    let item = value::stored(request.item)?;
    let (fate, units) = write.run(database, item, |_, _, _, item, _| Some(item))?;
    let wants_old = request.return_values_on_condition_check_failure == Some(Old::AllOld);
    Some(written("PutItem", fate, units, wants_old, |_| "{}".to_owned()))
}

impl Write<'_> {
    /// Runs it. `brought`: the key, or the item with it. `change` returns what becomes of the item that is there, if there is one.
    fn run(
        self,
        database: &Database,
        brought: Item,
        change: impl FnOnce(&Plan, bool, &Subject<'_>, Item, &Schema) -> Option<Item>,
    ) -> Option<(Fate, f64)> {
        let values = value::stored(self.values)?;
        database.direct(|storage, known| {
            let Some(plan) = known.plan(self.expressions).filter(|plan| plan.fits(&self.names, &values)) else {
                return Ok(None);
            };
            let Some(schema) = known.schema(storage, self.table)? else { return Ok(None) };
            let Some(key) = brought.get(&schema.key).and_then(|key| schema.stored_key(key)) else { return Ok(None) };
            let Some(old) = rows::item(storage, &schema, &key)? else { return Ok(None) };
            let (is_new, old) = (old.is_none(), old.unwrap_or_default());
            let size = (!is_new).then(|| item_size(&old));
            let subject = Subject { item: &old, names: &self.names, values: &values };
            match plan.condition.as_ref().map_or(Some(true), |condition| condition.holds(&subject)) {
                None => return Ok(None),
                Some(false) => {
                    let units = table_write_capacity_units(size, None);
                    return Ok(Some((Fate::Refused((!is_new).then_some(old)), units)));
                }
                Some(true) => {}
            }
            let Some(new) = change(&plan, !is_new, &subject, brought, &schema) else { return Ok(None) };
            save(storage, &schema, &key, (!is_new).then_some(&old), &new)
                .map(|done| done.map(|(json, units)| (Fate::Written(json), units)))
        })
    }
}

/// An item was written: as this JSON, for so many write units.
pub(in crate::engine) type Saved = (String, f64);

/// Writes an item's new state; none if the engine has to.
pub(in crate::engine) fn save(
    storage: &Storage,
    schema: &Schema,
    key: &str,
    old: Option<&Item>,
    new: &Item,
) -> DatabaseResult<Option<Saved>> {
    let Some(old) = old else { return Ok(insert(storage, schema, key, new)?.flatten()) };
    let (size, json) = (item_size(new), rows::encode(new)?);
    let (Some(before), Some(after), true) = (schema.entries(old), schema.entries(new), size <= MAX_ITEM_SIZE) else {
        return Ok(None);
    };
    let (changes, index_units) = schema.changes(&before, &after);
    let row = Row { key, item: new, json: &json, size };
    at_once(storage, changes.is_empty(), || {
        rows::replace(storage, schema, &row)?;
        rows::change(storage, schema, key, &changes)
    })?;
    Ok(Some((json, table_write_capacity_units(Some(item_size(old)), Some(size)) + index_units)))
}

/// Writes a new item; nothing if there is one with its key; nothing at all if the engine has to.
pub(in crate::engine) fn insert(
    storage: &Storage,
    schema: &Schema,
    key: &str,
    new: &Item,
) -> DatabaseResult<Option<Option<Saved>>> {
    let (size, json) = (item_size(new), rows::encode(new)?);
    let (Some(before), Some(after), true) = (schema.entries(&Item::new()), schema.entries(new), size <= MAX_ITEM_SIZE)
    else {
        return Ok(None);
    };
    let (changes, index_units) = schema.changes(&before, &after);
    let row = Row { key, item: new, json: &json, size };
    let is_new = at_once(storage, changes.is_empty(), || {
        let is_new = rows::add(storage, schema, &row)?;
        if is_new {
            rows::change(storage, schema, key, &changes)?;
        }
        Ok(is_new)
    })?;
    Ok(Some(is_new.then_some((json, table_write_capacity_units(None, Some(size)) + index_units))))
}

/// Writes in a transaction, unless it is one row or there is a transaction already.
fn at_once<T>(storage: &Storage, is_one: bool, write: impl FnOnce() -> DatabaseResult<T>) -> DatabaseResult<T> {
    if is_one || !storage.conn().is_autocommit() { write() } else { rows::transaction(storage, write) }
}

fn written(
    operation: &'static str,
    fate: Fate,
    units: f64,
    wants_old: bool,
    answer: impl FnOnce(String) -> String,
) -> Direct {
    let result = match fate {
        Fate::Written(json) => Ok(Bytes::from(answer(json))),
        Fate::Refused(item) => Err(DynoxideError::ConditionalCheckFailedException(
            "The conditional request failed".to_owned(),
            item.filter(|_| wants_old),
        )),
    };
    Direct { operation, result, units: Units::write(units) }
}
