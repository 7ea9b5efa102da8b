//! The keys by which the rows of a fan-out were first shared out among its partitions, kind by kind.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Producers;
use crate::aws::attributes::{Reader, expiry, item, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES_MAX, PARTITION_RETENTION};

/// What identifies the key of each kind's policy.
pub type KeysOfKinds = BTreeMap<String, Uuid>;

const KEYS: &str = "keys";

/// The key of their record.
fn key(fanout: Uuid) -> String {
    format!("{fanout}/keys")
}

fn written(keys: &KeysOfKinds) -> String {
    serde_json::json!(keys).to_string()
}

fn encode(fanout: Uuid, keys: &KeysOfKinds, expires: Timestamp) -> Item {
    item([("id", Some(text(key(fanout)))), (KEYS, Some(text(written(keys)))), ("ttl", Some(expiry(expires)))])
}

fn decode(item: &Item) -> Result<KeysOfKinds, StoreError> {
    let reader = Reader::new("producers", "id", item);
    serde_json::from_str(reader.text(KEYS)?).map_err(|error| reader.corrupt(KEYS, error))
}

impl Producers {
    /// Notes the keys by which rows of these kinds are shared out among the partitions of a fan-out, where none is noted yet. Of all
    /// partitions the first counts. Returns a kind whose rows were shared out by another key before.
    ///
    /// # Errors
    /// The table cannot be read or written, or the record is corrupt.
    pub async fn share_by(&self, fanout: Uuid, keys: &KeysOfKinds) -> Result<Option<String>, StoreError> {
        for _ in 0..CONTENTION_TRIES_MAX {
            let stands = self.table.get("id", key(fanout), true).await?.as_ref().map(decode).transpose()?;
            let first = stands.clone().unwrap_or_default();
            let other = |(kind, key): &(&String, &Uuid)| first.get(*kind).is_some_and(|first| first != *key);
            if let Some((kind, _)) = keys.iter().find(other) {
                return Ok(Some(kind.clone()));
            }
            if keys.keys().all(|kind| first.contains_key(kind)) {
                return Ok(None);
            }
            let all: KeysOfKinds = first.iter().chain(keys).map(|(kind, key)| (kind.clone(), *key)).collect();
            let noted = match stands {
                None => {
                    let item = encode(fanout, &all, self.table.expires(PARTITION_RETENTION));
                    self.table.insert("id", item).await?.is_done()
                }
                Some(_) => {
                    let change = self.table.change("id", key(fanout)).set(KEYS, text(written(&all)));
                    change.when_is(KEYS, text(written(&first))).send().await?.is_done()
                }
            };
            if noted {
                return Ok(None);
            }
        }
        Err(StoreError::Contended { what: format!("noting the keys of fan-out {fanout}") })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(keys in prop::collection::btree_map("[a-z]{1,9}", any::<u128>(), 0..9)) {
            let keys: KeysOfKinds = keys.into_iter().map(|(kind, key)| (kind, Uuid::from_u128(key))).collect();
            prop_assert_eq!(decode(&encode(Uuid::nil(), &keys, Timestamp(1))).unwrap(), keys);
        }
    }
}
