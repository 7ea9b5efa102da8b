//! Rows as the engine stores them, read and written by prepared SQL.

use dynoxide::errors::DynoxideError;
use dynoxide::storage::{Storage, compute_hash_prefix};
use dynoxide::storage_backend::BaseItemRow;
use dynoxide::types::{Item, item_size};

use super::schema::{Change, Schema};
use crate::engine::database::Answer;

/// What is stored under a key: the item as JSON, and its size.
pub(super) type Stored = (String, usize);

/// A row as it is to be: what it takes to write it.
pub(in crate::engine) struct Row<'a> {
    /// The key as the engine stores it.
    pub(in crate::engine) key: &'a str,
    pub(in crate::engine) item: &'a Item,
    pub(in crate::engine) json: &'a str,
    pub(in crate::engine) is_new: bool,
}

/// Reads what is stored under a key.
pub(super) fn stored(storage: &Storage, schema: &Schema, key: &str) -> Answer<Option<Stored>> {
    let mut statement = storage.conn().prepare_cached(&schema.select)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let size: i64 = row.get(1)?;
    Ok(Some((row.get(0)?, usize::try_from(size).unwrap_or_default())))
}

/// Reads an item; nothing at all if the engine has to.
pub(in crate::engine) fn item(storage: &Storage, schema: &Schema, key: &str) -> Answer<Option<Option<Item>>> {
    Ok(match stored(storage, schema, key)? {
        None => Some(None),
        Some((json, _)) => decode(&json).map(Some),
    })
}

/// An item that was stored; none if the engine has to read it.
pub(super) fn decode(json: &str) -> Option<Item> {
    if !as_stored(json) {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// Whether an item is answered as it is stored: sets of numbers are not.
pub(super) fn as_stored(json: &str) -> bool {
    !json.contains("\"NS\"")
}

pub(in crate::engine) fn encode(item: &Item) -> Answer<String> {
    serde_json::to_string(item).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Writes a row, with what changes in the indexes. Within a [`transaction`], if anything does.
pub(super) fn write(storage: &Storage, schema: &Schema, row: &Row<'_>, changes: &[Change<'_>]) -> Answer<()> {
    let table = schema.table.as_str();
    for change in changes {
        if change.removes {
            storage.delete_gsi_item(table, change.index, row.key, "")?;
        }
        if let Some(entry) = change.adds {
            let ([pk, sk], json) = (&entry.keys, encode(&entry.shown)?);
            storage.insert_gsi_item(table, change.index, pk, sk, row.key, "", &json)?;
        }
    }
    let size = item_size(row.item);
    if row.is_new {
        let hash_prefix = row.item.get(&schema.key).map(compute_hash_prefix).unwrap_or_default();
        let new = BaseItemRow {
            pk: row.key.to_owned(),
            sk: String::new(),
            item_json: row.json.to_owned(),
            item_size: size,
            cached_at: None,
            hash_prefix,
        };
        return storage.put_base_items(table, &[new]);
    }
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    storage.conn().prepare_cached(&schema.update)?.execute((row.key, row.json, size))?;
    Ok(())
}

/// Does all of it or nothing.
pub(in crate::engine) fn transaction<T>(storage: &Storage, work: impl FnOnce() -> Answer<T>) -> Answer<T> {
    let run = |sql| -> Answer<()> {
        storage.conn().prepare_cached(sql)?.execute(())?;
        Ok(())
    };
    run("BEGIN IMMEDIATE")?;
    let result = work().and_then(|done| run("COMMIT").map(|()| done));
    if result.is_err() && !storage.conn().is_autocommit() {
        run("ROLLBACK")?;
    }
    result
}
