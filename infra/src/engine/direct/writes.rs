//! Writes of one item.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;
use dynoxide::types::{AttributeValue, Item, MAX_ITEM_SIZE, item_size, table_write_capacity_units};
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

/// The most bytes of what a write brings that certainly makes no larger item or request than there may be.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct UpdateRequest<'a> {
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
struct PutRequest<'a> {
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
pub(in crate::engine) enum Fate {
    /// The item is written, as this JSON.
    Written { item: Item, json: String },
    /// Its condition failed on this item, if there is one.
    Refused(Option<Item>),
}

/// An update of one item.
pub(in crate::engine) struct Update<'a> {
    pub(in crate::engine) table: &'a str,
    pub(in crate::engine) key: HashMap<String, Value>,
    pub(in crate::engine) update: Option<&'a str>,
    pub(in crate::engine) condition: Option<&'a str>,
    pub(in crate::engine) names: &'a Names,
    pub(in crate::engine) values: HashMap<String, Value>,
}

/// A write of one item.
struct Write<'a> {
    table: &'a str,
    expressions: Expressions<'a>,
    names: &'a Names,
    values: HashMap<String, AttributeValue>,
    /// The key, or the item with it.
    brought: Item,
}

/// Answers a request for an update.
pub(super) fn answer_update(database: &Database, body: &[u8]) -> Option<Direct> {
    let request: UpdateRequest<'_> = serde_json::from_slice(body).ok()?;
    let (names, values) = (&request.expression_attribute_names, &request.expression_attribute_values);
    let is_empty = names.as_ref().is_some_and(HashMap::is_empty) || values.as_ref().is_some_and(HashMap::is_empty);
    if is_empty {
        return None;
    }
    let asked = Update {
        table: &request.table_name,
        key: request.key,
        update: request.update_expression.as_deref(),
        condition: request.condition_expression.as_deref(),
        names: &request.expression_attribute_names.unwrap_or_default(),
        values: request.expression_attribute_values.unwrap_or_default(),
    };
    let wants_new = request.return_values == Some(Return::AllNew);
    let answer = |json| if wants_new { format!("{{\"Attributes\":{json}}}") } else { "{}".to_owned() };
    let written = update(database, asked)?;
    Some(direct("UpdateItem", written, request.return_values_on_condition_check_failure, answer))
}

/// Answers a request to put an item.
pub(super) fn answer_put(database: &Database, body: &[u8]) -> Option<Direct> {
    let request: PutRequest<'_> = serde_json::from_slice(body).ok()?;
    let written = put(database, &request.table_name, request.item, request.condition_expression.as_deref())?;
    Some(direct("PutItem", written, request.return_values_on_condition_check_failure, |_| "{}".to_owned()))
}

/// Updates an item. Returns what became of it, and its write units.
pub(in crate::engine) fn update(database: &Database, asked: Update<'_>) -> Option<(Fate, f64)> {
    if asked.key.len() != 1 {
        return None;
    }
    let write = Write {
        table: asked.table,
        expressions: Expressions::new(asked.update, asked.condition),
        names: asked.names,
        values: value::stored(asked.values)?,
        brought: value::stored(asked.key)?,
    };
    write.run(database, |plan, old, subject, key, schema| {
        let mut created = None;
        let item = if old { subject.item } else { created.insert(key) };
        update::apply(&plan.update, &Subject { item, ..*subject }, &schema.key)
    })
}

/// Puts an item. Returns what became of it, and its write units.
pub(in crate::engine) fn put(
    database: &Database,
    table: &str,
    item: HashMap<String, Value>,
    condition: Option<&str>,
) -> Option<(Fate, f64)> {
    let (expressions, names) = (Expressions::new(None, condition), &Names::new());
    let write = Write { table, expressions, names, values: HashMap::new(), brought: value::stored(item)? };
    write.run(database, |_, _, _, item, _| Some(item))
}

impl Write<'_> {
    /// Runs it. `change` returns what becomes of the item that is there, if there is one.
    fn run(
        self,
        database: &Database,
        change: impl FnOnce(&Plan, bool, &Subject<'_>, Item, &Schema) -> Option<Item>,
    ) -> Option<(Fate, f64)> {
        let Self { table, expressions, names, values, brought } = self;
        if item_size(&brought) + item_size(&values) > REQUEST_BYTES_MAX {
            return None;
        }
        database.direct(|storage, known| {
            let Some(plan) = known.plan(expressions).filter(|plan| plan.fits(names, &values)) else {
                return Ok(None);
            };
            let Some(schema) = known.schema(storage, table)? else { return Ok(None) };
            let Some(key) = brought.get(&schema.key).and_then(|key| schema.stored_key(key)) else { return Ok(None) };
            let Some(old) = rows::item(storage, &schema, &key)? else { return Ok(None) };
            let (is_new, old) = (old.is_none(), old.unwrap_or_default());
            let size = (!is_new).then(|| item_size(&old));
            let subject = Subject { item: &old, names, values: &values };
            match plan.condition.as_ref().map_or(Some(true), |condition| condition.holds(&subject)) {
                None => return Ok(None),
                Some(false) => {
                    let units = table_write_capacity_units(size, None);
                    return Ok(Some((Fate::Refused((!is_new).then_some(old)), units)));
                }
                Some(true) => {}
            }
            let Some(new) = change(&plan, !is_new, &subject, brought, &schema) else { return Ok(None) };
            let saved = save(storage, &schema, &key, (!is_new).then_some(&old), &new)?;
            Ok(saved.map(|(json, units)| (Fate::Written { item: new, json }, units)))
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

fn direct(
    operation: &'static str,
    (fate, units): (Fate, f64),
    old: Option<Old>,
    answer: impl FnOnce(String) -> String,
) -> Direct {
    let result = match fate {
        Fate::Written { json, .. } => Ok(Bytes::from(answer(json))),
        Fate::Refused(item) => Err(DynoxideError::ConditionalCheckFailedException(
            "The conditional request failed".to_owned(),
            item.filter(|_| old == Some(Old::AllOld)),
        )),
    };
    Direct { operation, result, units: Units::write(units) }
}
