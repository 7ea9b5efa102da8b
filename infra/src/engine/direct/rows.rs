//! Rows as the engine stores them, read and written by prepared SQL.

use dynoxide::errors::DynoxideError;
use dynoxide::storage::{Storage, compute_hash_prefix};
use dynoxide::types::Item;

use super::schema::{Change, Schema};
use super::value;
use crate::engine::database::DatabaseResult;

/// What is stored under a key: the item as JSON, and its size.
pub(super) type Stored = (String, usize);

/// A row as it is to be.
pub(super) struct Row<'a> {
    /// The key as the engine stores it.
    pub(super) key: &'a str,
    pub(super) item: &'a Item,
    pub(super) json: &'a str,
    pub(super) size: usize,
}

/// Reads what is stored under a key.
pub(super) fn stored(storage: &Storage, schema: &Schema, key: &str) -> DatabaseResult<Option<Stored>> {
    let mut statement = storage.conn().prepare_cached(&schema.select)?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let size: i64 = row.get(1)?;
    Ok(Some((row.get(0)?, usize::try_from(size).unwrap_or_default())))
}

/// Reads an item; nothing at all if the engine has to.
pub(in crate::engine) fn item(storage: &Storage, schema: &Schema, key: &str) -> DatabaseResult<Option<Option<Item>>> {
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
    serde_json::from_str(json).ok().map(value::read)
}

/// Whether an item is answered as it is stored: sets of numbers are not.
pub(super) fn as_stored(json: &str) -> bool {
    !json.contains("\"NS\"")
}

pub(in crate::engine) fn encode(item: &Item) -> DatabaseResult<String> {
    serde_json::to_string(item).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

/// Puts a row in the place of the one that is there.
pub(super) fn replace(storage: &Storage, schema: &Schema, row: &Row<'_>) -> DatabaseResult<()> {
    storage.conn().prepare_cached(&schema.update)?.execute((row.key, row.json, size(row)))?;
    Ok(())
}

/// Adds a row, unless there is one with its key. Returns whether there was none.
pub(super) fn add(storage: &Storage, schema: &Schema, row: &Row<'_>) -> DatabaseResult<bool> {
    let hash_prefix = row.item.get(&schema.key).map(compute_hash_prefix).unwrap_or_default();
    let mut insert = storage.conn().prepare_cached(&schema.insert)?;
    Ok(insert.execute((row.key, row.json, size(row), hash_prefix))? > 0)
}

fn size(row: &Row<'_>) -> i64 {
    i64::try_from(row.size).unwrap_or(i64::MAX)
}

/// Writes what changes in the indexes for the item of a key.
pub(super) fn change(storage: &Storage, schema: &Schema, key: &str, changes: &[Change<'_>]) -> DatabaseResult<()> {
    for change in changes {
        if change.removes {
            storage.delete_gsi_item(&schema.table, change.index, key, "")?;
        }
        if let Some(entry) = change.adds {
            let ([pk, sk], json) = (&entry.keys, encode(&entry.shown)?);
            storage.insert_gsi_item(&schema.table, change.index, pk, sk, key, "", &json)?;
        }
    }
    Ok(())
}

/// Does all of it or nothing.
pub(in crate::engine) fn transaction<T>(
    storage: &Storage,
    work: impl FnOnce() -> DatabaseResult<T>,
) -> DatabaseResult<T> {
    let run = |sql| -> DatabaseResult<()> {
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
