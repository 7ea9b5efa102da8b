//! Reads of items by their keys.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::Bytes;
use dynoxide::storage::Storage;
use dynoxide::types::{Item, read_capacity_units_with_consistency as units};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::rows::{self, as_stored, encode, stored};
use super::schema::Schema;
use super::value::Value;
use super::{Direct, Known};
use crate::engine::database::{Database, DatabaseResult};
use crate::usage::Units;

/// The most keys of a read.
const KEYS_MAX: usize = 100;
/// The most bytes of a read that is certainly answered whole.
const READ_BYTES_MAX: usize = 8 * 1024 * 1024;

type Key = HashMap<String, Value>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Get<'a> {
    #[serde(borrow)]
    table_name: Cow<'a, str>,
    key: Key,
    consistent_read: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetMany {
    request_items: HashMap<String, Keys>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Keys {
    keys: Vec<Key>,
    consistent_read: Option<bool>,
    projection_expression: Option<String>,
    expression_attribute_names: Option<HashMap<String, String>>,
}

/// Reads one item.
pub(super) fn get(database: &Database, body: &[u8]) -> Option<Direct> {
    let Get { table_name, key, consistent_read } = serde_json::from_slice(body).ok()?;
    let found = database.direct(|storage, known| {
        let Some(schema) = known.schema(storage, &table_name)? else { return Ok(None) };
        let Some(key) = stored_key(&schema, key) else { return Ok(None) };
        stored(storage, &schema, &key).map(Some)
    })?;
    let (json, size) = match found {
        None => ("{}".to_owned(), 0),
        Some((item, size)) if as_stored(&item) => (format!("{{\"Item\":{item}}}"), size),
        Some(_) => return None,
    };
    Some(read("GetItem", json, units(size, consistent_read.unwrap_or_default())))
}

/// Reads many items of one table.
pub(super) fn get_many(database: &Database, body: &[u8]) -> Option<Direct> {
    let GetMany { request_items } = serde_json::from_slice(body).ok()?;
    let mut tables = request_items.into_iter();
    let (Some((table, keys)), None) = (tables.next(), tables.next()) else { return None };
    let (items, read_units) = database.direct(|storage, known| all(storage, known, &table, keys))?;
    let table = serde_json::to_string(&table).ok()?;
    let json = format!("{{\"Responses\":{{{table}:[{items}]}},\"UnprocessedKeys\":{{}}}}");
    Some(read("BatchGetItem", json, read_units))
}

fn all(storage: &Storage, known: &mut Known, table: &str, keys: Keys) -> DatabaseResult<Option<(String, f64)>> {
    let Some(schema) = known.schema(storage, table)? else { return Ok(None) };
    let attributes = match attributes(keys.projection_expression, keys.expression_attribute_names) {
        Ok(attributes) => attributes,
        Err(Unusual) => return Ok(None),
    };
    let count = keys.keys.len();
    let wanted: Option<HashSet<String>> = keys.keys.into_iter().map(|key| stored_key(&schema, key)).collect();
    let Some(wanted) = wanted.filter(|wanted| wanted.len() == count && (1..=KEYS_MAX).contains(&count)) else {
        return Ok(None);
    };
    let consistent = keys.consistent_read.unwrap_or_default();
    let (mut items, mut read_units, mut bytes) = (String::new(), 0.0, 0);
    for key in wanted {
        let found = rows::stored(storage, &schema, &key)?;
        let size = found.as_ref().map_or(0, |(_, size)| *size);
        read_units += units(size, consistent);
        bytes += size;
        let Some((mut item, _)) = found else { continue };
        if let Some(names) = &attributes {
            let Some(shown) = Shown(names).of(&item) else { return Ok(None) };
            item = encode(&shown)?;
        }
        if !as_stored(&item) || bytes > READ_BYTES_MAX {
            return Ok(None);
        }
        if !items.is_empty() {
            items.push(',');
        }
        items.push_str(&item);
    }
    Ok(Some((items, read_units)))
}

/// A request that the engine has to judge.
struct Unusual;

/// The attributes that are asked for, if not all are: each by a name that stands for it.
fn attributes(
    projection: Option<String>,
    names: Option<HashMap<String, String>>,
) -> Result<Option<HashSet<String>>, Unusual> {
    let (projection, mut names) = match (projection, names) {
        (None, None) => return Ok(None),
        (Some(projection), Some(names)) => (projection, names),
        _ => return Err(Unusual),
    };
    let count = names.len();
    let named: Option<HashSet<String>> = projection.split(',').map(|part| names.remove(part)).collect();
    let fits = |named: &HashSet<String>| names.is_empty() && named.len() == count && !named.contains("");
    named.filter(fits).map(Some).ok_or(Unusual)
}

/// Reads these attributes of a stored item, and passes over the others.
struct Shown<'a>(&'a HashSet<String>);

impl Shown<'_> {
    fn of(self, json: &str) -> Option<Item> {
        serde_json::Deserializer::from_str(json).deserialize_map(self).ok()
    }
}

impl<'de> Visitor<'de> for Shown<'_> {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Item, A::Error> {
        let mut item = Item::new();
        while let Some(name) = all.next_key::<String>()? {
            if self.0.contains(&name) {
                item.insert(name, all.next_value()?);
            } else {
                all.next_value::<IgnoredAny>()?;
            }
        }
        Ok(item)
    }
}

/// The key as the engine stores it; none if the engine has to judge it.
pub(super) fn stored_key(schema: &Schema, key: Key) -> Option<String> {
    let mut key = key.into_iter();
    let ((name, value), None) = (key.next()?, key.next()) else { return None };
    if name != schema.key {
        return None;
    }
    schema.stored_key(&value.stored()?)
}

fn read(operation: &'static str, json: String, read_units: f64) -> Direct {
    Direct { operation, result: Ok(Bytes::from(json)), units: Units::read(read_units) }
}
