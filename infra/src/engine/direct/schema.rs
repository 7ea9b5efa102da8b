//! The tables that are read and written without the engine's way around.

use dynoxide::storage::TableMetadata;
use dynoxide::types::{AttributeValue, Item, item_size, write_capacity_units};
use serde::Deserialize;

/// The most bytes of a partition key, and of a sort key.
const KEY_BYTES_MAX: [usize; 2] = [2_048, 1_024];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Element {
    attribute_name: String,
    key_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Definition {
    attribute_name: String,
    attribute_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct IndexDefinition {
    index_name: String,
    key_schema: Vec<Element>,
    projection: Projection,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    projection_type: String,
    non_key_attributes: Option<Vec<String>>,
}

/// An index: its keys with their types, and what else it shows.
struct Index {
    name: String,
    keys: Vec<(String, String)>,
    shown: Vec<String>,
}

/// An item as an index shows it.
pub(super) struct Entry {
    /// Its keys as the engine stores them.
    pub(super) keys: [String; 2],
    pub(super) shown: Item,
}

/// What a write changes in an index.
pub(super) struct Change<'a> {
    pub(super) index: &'a str,
    pub(super) removes: bool,
    pub(super) adds: Option<&'a Entry>,
}

/// A table.
pub(in crate::engine) struct Schema {
    pub(super) table: String,
    /// Its key, which is a string.
    pub(in crate::engine) key: String,
    indexes: Vec<Index>,
    /// Reads what is stored under a key, and its size.
    pub(super) select: String,
    /// Replaces what is stored under a key.
    pub(super) update: String,
    /// Stores under a key, unless there is something.
    pub(super) insert: String,
}

impl Schema {
    /// The schema of a table; none if it has more than a partition key, or anything else than global indexes.
    pub(super) fn of(table: &TableMetadata) -> Option<Self> {
        let plain =
            !table.stream_enabled && is_empty(&table.lsi_definitions) && is_empty(&table.vector_index_definitions);
        let keys: Vec<Element> = serde_json::from_str(&table.key_schema).ok()?;
        let [key] = keys.as_slice() else { return None };
        if !plain || key.key_type != "HASH" || table.table_name.contains('"') {
            return None;
        }
        let key = key.attribute_name.clone();
        let types: Vec<Definition> = serde_json::from_str(&table.attribute_definitions).ok()?;
        let definitions: Vec<IndexDefinition> = match &table.gsi_definitions {
            Some(indexes) => serde_json::from_str(indexes).ok()?,
            None => Vec::new(),
        };
        let indexes = definitions.into_iter().map(|index| Index::of(index, &types, &key)).collect::<Option<_>>()?;
        let name = &table.table_name;
        Some(Self {
            select: format!("SELECT item_json, item_size FROM \"{name}\" WHERE pk = ?1 AND sk = ''"),
            update: format!("UPDATE \"{name}\" SET item_json = ?2, item_size = ?3 WHERE pk = ?1 AND sk = ''"),
            insert: format!(
                "INSERT OR IGNORE INTO \"{name}\" (pk, sk, item_json, item_size, hash_prefix) VALUES (?1, '', ?2, ?3, ?4)"
            ),
            table: name.clone(),
            key,
            indexes,
        })
    }

    /// A key as the engine stores it; none if the engine has to judge it.
    pub(in crate::engine) fn stored_key(&self, key: &AttributeValue) -> Option<String> {
        let fits = matches!(key, AttributeValue::S(text) if (1..=KEY_BYTES_MAX[0]).contains(&text.len()));
        fits.then(|| key.to_key_string()).flatten()
    }

    /// An item's entries, index by index; none if the engine has to judge a key.
    pub(super) fn entries(&self, item: &Item) -> Option<Vec<Option<Entry>>> {
        self.indexes.iter().map(|index| index.entry(item)).collect()
    }

    /// What changes in the indexes from these entries to those, and its write units. One that moves is deleted and inserted.
    pub(super) fn changes<'a>(&'a self, old: &[Option<Entry>], new: &'a [Option<Entry>]) -> (Vec<Change<'a>>, f64) {
        let (mut changes, mut units) = (Vec::new(), 0.0);
        for ((index, old), new) in self.indexes.iter().zip(old).zip(new) {
            units += match (old, new) {
                (None, None) => continue,
                (Some(old), Some(new)) if old.keys == new.keys && old.shown == new.shown => continue,
                (Some(old), Some(new)) if old.keys == new.keys => old.units().max(new.units()),
                (old, new) => [old, new].into_iter().flatten().map(Entry::units).sum(),
            };
            changes.push(Change { index: &index.name, removes: old.is_some(), adds: new.as_ref() });
        }
        (changes, units)
    }
}

impl Index {
    fn of(index: IndexDefinition, types: &[Definition], table_key: &str) -> Option<Self> {
        let kind =
            |name: &str| types.iter().find(|one| one.attribute_name == name).map(|one| one.attribute_type.clone());
        let keys: Vec<(String, String)> = index
            .key_schema
            .into_iter()
            .map(|element| Some((kind(&element.attribute_name)?, element.attribute_name)))
            .map(|pair| pair.map(|(kind, name)| (name, kind)))
            .collect::<Option<_>>()?;
        let projects = ["KEYS_ONLY", "INCLUDE"].contains(&index.projection.projection_type.as_str());
        if !projects || !(1..=2).contains(&keys.len()) {
            return None;
        }
        let mut shown: Vec<String> = keys.iter().map(|(name, _)| name.clone()).collect();
        shown.push(table_key.to_owned());
        shown.extend(index.projection.non_key_attributes.unwrap_or_default());
        Some(Self { name: index.index_name, keys, shown })
    }

    /// An item's entry, if it has all of the index's keys; nothing at all if the engine has to judge one.
    fn entry(&self, item: &Item) -> Option<Option<Entry>> {
        let mut stored = [const { String::new() }; 2];
        let mut is_there = true;
        for (((name, kind), max), stored) in self.keys.iter().zip(KEY_BYTES_MAX).zip(&mut stored) {
            let Some(value) = item.get(name) else {
                is_there = false;
                continue;
            };
            let fits = match value {
                AttributeValue::S(text) => kind == "S" && (1..=max).contains(&text.len()),
                AttributeValue::B(bytes) => kind == "B" && (1..=max).contains(&bytes.len()),
                AttributeValue::N(_) => kind == "N",
                _ => false,
            };
            *stored = value.to_key_string().filter(|_| fits)?;
        }
        let shown = |name: &String| Some((name.clone(), item.get(name)?.clone()));
        Some(is_there.then(|| Entry { keys: stored, shown: self.shown.iter().filter_map(shown).collect() }))
    }
}

impl Entry {
    fn units(&self) -> f64 {
        write_capacity_units(item_size(&self.shown))
    }
}

fn is_empty(definitions: &Option<String>) -> bool {
    definitions.as_deref().is_none_or(|definitions| definitions == "[]")
}
