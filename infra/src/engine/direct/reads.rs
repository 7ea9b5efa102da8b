//! Reads of items by their keys.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use bytes::Bytes;
use dynoxide::types::read_capacity_units_with_consistency as units;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Direct;
use super::rows::{as_stored, encode, stored};
use super::schema::Schema;
use super::value::{self, Value};
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

/// An item that was found.
pub(in crate::engine) enum Found {
    /// All of it, as it is stored.
    Whole(String),
    /// The attributes that were asked for.
    Shown(HashMap<String, Value>),
}

impl Found {
    fn json(self) -> Option<String> {
        match self {
            Self::Whole(json) => Some(json),
            Self::Shown(item) => encode(&value::read(item)).ok(),
        }
    }

    /// The item as the SDK has it.
    pub(in crate::engine) fn item(self) -> Option<HashMap<String, SdkValue>> {
        let item = match self {
            Self::Whole(json) => serde_json::from_str(&json).ok()?,
            Self::Shown(item) => item,
        };
        Some(value::read_for_sdk(item))
    }
}

/// Answers a request for one item.
pub(super) fn answer_get(database: &Database, body: &[u8]) -> Option<Direct> {
    let Get { table_name, key, consistent_read } = serde_json::from_slice(body).ok()?;
    let (found, units) = get(database, &table_name, key, consistent_read.unwrap_or_default())?;
    let json = match found {
        None => "{}".to_owned(),
        Some(found) => format!("{{\"Item\":{}}}", found.json()?),
    };
    Some(read("GetItem", json, units))
}

/// Answers a request for many items.
pub(super) fn answer_get_many(database: &Database, body: &[u8]) -> Option<Direct> {
    let GetMany { request_items } = serde_json::from_slice(body).ok()?;
    let mut tables = request_items.into_iter();
    let (Some((table, keys)), None) = (tables.next(), tables.next()) else { return None };
    let names = attributes(keys.projection_expression, keys.expression_attribute_names).ok()?;
    let (found, units) = get_many(database, &table, keys.keys, names, keys.consistent_read.unwrap_or_default())?;
    let items = found.into_iter().map(Found::json).collect::<Option<Vec<String>>>()?.join(",");
    let table = serde_json::to_string(&table).ok()?;
    let json = format!("{{\"Responses\":{{{table}:[{items}]}},\"UnprocessedKeys\":{{}}}}");
    Some(read("BatchGetItem", json, units))
}

/// Reads one item. Returns its read units, too.
pub(in crate::engine) fn get(
    database: &Database,
    table: &str,
    key: Key,
    consistent: bool,
) -> Option<(Option<Found>, f64)> {
    let found = database.direct(|storage, known| {
        let Some(schema) = known.schema(storage, table)? else { return Ok(None) };
        let Some(key) = stored_key(&schema, key) else { return Ok(None) };
        stored(storage, &schema, &key).map(Some)
    })?;
    match found {
        None => Some((None, units(0, consistent))),
        Some((item, size)) if as_stored(&item) => Some((Some(Found::Whole(item)), units(size, consistent))),
        Some(_) => None,
    }
}

/// Reads many items of one table. Returns their read units, too. `names`: only these attributes.
pub(in crate::engine) fn get_many(
    database: &Database,
    table: &str,
    keys: Vec<Key>,
    names: Option<HashSet<String>>,
    consistent: bool,
) -> Option<(Vec<Found>, f64)> {
    let count = keys.len();
    let found = database.direct(|storage, known| {
        let Some(schema) = known.schema(storage, table)? else { return Ok(None) };
        let wanted: Option<HashSet<String>> = keys.into_iter().map(|key| stored_key(&schema, key)).collect();
        let Some(wanted) = wanted.filter(|wanted| wanted.len() == count && (1..=KEYS_MAX).contains(&count)) else {
            return Ok(None);
        };
        let all = wanted.iter().map(|key| stored(storage, &schema, key));
        all.collect::<DatabaseResult<Vec<_>>>().map(Some)
    })?;
    let sizes = found.iter().map(|found| found.as_ref().map_or(0, |(_, size)| *size));
    let read_units = sizes.clone().map(|size| units(size, consistent)).sum();
    if sizes.sum::<usize>() > READ_BYTES_MAX {
        return None;
    }
    let found = found.into_iter().flatten().map(|(item, _)| match &names {
        _ if !as_stored(&item) => None,
        None => Some(Found::Whole(item)),
        Some(names) => Shown(names).of(&item).map(Found::Shown),
    });
    Some((found.collect::<Option<_>>()?, read_units))
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
    fn of(self, json: &str) -> Option<HashMap<String, Value>> {
        serde_json::Deserializer::from_str(json).deserialize_map(self).ok()
    }
}

impl<'de> Visitor<'de> for Shown<'_> {
    type Value = HashMap<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut item = HashMap::new();
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
