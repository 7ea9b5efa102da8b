//! The tables whose statements are run many at a time.

use dynoxide::storage::TableMetadata;
use dynoxide::types::{AttributeValue, Item, item_size, write_capacity_units};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Element {
    attribute_name: String,
    key_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Index {
    key_schema: Vec<Element>,
    projection: Projection,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: String,
}

/// The keys of a table.
pub(super) struct Schema {
    /// Its key, which is a string.
    pub(super) key: String,
    /// The keys of each index, with the table's own.
    indexes: Vec<Vec<String>>,
}

impl Schema {
    /// The schema of a table; none if it has more than a partition key, or anything else than indexes of keys.
    pub(super) fn of(table: &TableMetadata) -> Option<Self> {
        let plain =
            !table.stream_enabled && is_empty(&table.lsi_definitions) && is_empty(&table.vector_index_definitions);
        let keys: Vec<Element> = serde_json::from_str(&table.key_schema).ok()?;
        let [key] = keys.as_slice() else { return None };
        if !plain || key.key_type != "HASH" {
            return None;
        }
        let indexes: Vec<Index> = match &table.gsi_definitions {
            Some(indexes) => serde_json::from_str(indexes).ok()?,
            None => Vec::new(),
        };
        if indexes.iter().any(|index| index.projection.projection_type != "KEYS_ONLY") {
            return None;
        }
        let names = |index: Index| {
            let names = index.key_schema.into_iter().map(|element| element.attribute_name);
            names.chain([key.attribute_name.clone()]).collect()
        };
        Some(Self { indexes: indexes.into_iter().map(names).collect(), key: key.attribute_name.clone() })
    }

    /// The write units of what an item's new state changes in the indexes. Replacing an entry is a deletion and an insertion.
    pub(super) fn index_units(&self, old: Option<&Item>, new: &Item) -> f64 {
        let units = |index: &Vec<String>| {
            let (old, new) = (old.and_then(|old| entry(index, old)), entry(index, new));
            if old == new { 0.0 } else { old.as_ref().map_or(0.0, size) + new.as_ref().map_or(0.0, size) }
        };
        self.indexes.iter().map(units).sum()
    }
}

/// An item's entry in an index, if it has all of the index's keys.
fn entry(names: &[String], item: &Item) -> Option<Item> {
    names.iter().map(|name| Some((name.clone(), item.get(name)?.clone()))).collect::<Option<Item>>()
}

fn size(entry: &Item) -> f64 {
    write_capacity_units(item_size(entry))
}

fn is_empty(definitions: &Option<String>) -> bool {
    definitions.as_deref().is_none_or(|definitions| definitions == "[]")
}

/// A key as the engine stores it; none if it is no string.
pub(super) fn stored_key(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) if !text.is_empty() => Some(format!("S:{text}")),
        _ => None,
    }
}
