//! Contents of tasks that were corrected for a reissue, compressed.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use super::page::{deflate, inflate};
use crate::aws::attributes::{Reader, binary, expiry, item, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::ids::{ItemId, derived};
use crate::limits::PAGE_BYTES_MAX;

/// The corrected contents of items of another fan-out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorrectedContents {
    /// The contents.
    pub contents: BTreeMap<ItemId, Value>,
}

/// The key of their record.
pub(super) fn key(fanout: Uuid) -> String {
    format!("{fanout}/corrected")
}

impl CorrectedContents {
    /// What identifies them.
    #[must_use]
    pub fn digest(&self) -> Uuid {
        let texts: Vec<(String, String)> =
            self.contents.iter().map(|(item, content)| (item.to_string(), content.to_string())).collect();
        derived::corrected_digest(texts.iter().map(|(item, content)| (item.clone(), content.as_str())))
    }

    fn compressed(&self) -> Vec<u8> {
        let rows: Vec<(&ItemId, &Value)> = self.contents.iter().collect();
        deflate(&serde_json::to_vec(&rows).unwrap_or_default())
    }

    /// Their bytes, if they are more than a record holds.
    #[must_use]
    pub fn too_large(&self) -> Option<usize> {
        Some(self.compressed().len()).filter(|bytes| *bytes > PAGE_BYTES_MAX)
    }

    pub(super) fn encode(&self, fanout: Uuid, expires: Timestamp) -> Item {
        item([
            ("id", Some(text(key(fanout)))),
            ("contents", Some(binary(&self.compressed()))),
            ("ttl", Some(expiry(expires))),
        ])
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("producers", "id", item);
        let rows = inflate(reader.bytes("contents")?)
            .and_then(|text| serde_json::from_slice::<Vec<(ItemId, Value)>>(&text).map_err(|error| error.to_string()));
        let rows = rows.map_err(|error| reader.corrupt("contents", error))?;
        Ok(Self { contents: rows.into_iter().collect() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(contents in prop::collection::btree_map(any::<(u128, u128)>(), ".{0,9}", 0..9)) {
            let item = |(fanout, group): (u128, u128)| ItemId {
                fanout: Uuid::from_u128(fanout), group: Uuid::from_u128(group), index: 7,
            };
            let contents = contents.into_iter().map(|(name, text)| (item(name), json!({"text": text}))).collect();
            let corrected = CorrectedContents { contents };
            let record = corrected.encode(Uuid::nil(), Timestamp(1));
            prop_assert_eq!(CorrectedContents::decode(&record).unwrap(), corrected);
        }
    }
}
