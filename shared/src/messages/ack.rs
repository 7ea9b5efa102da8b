//! Items that are done, named one by one, by ranges, or by a bitfield of their group.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::LaneBatch;
use crate::bits::Bits;
use crate::ids::{GroupId, ItemId, ItemRange};
use crate::limits::{GROUP_ITEMS_MAX, MASK_BYTES_MAX};
use crate::text::start;

/// Items that are done: the body of `POST /acks`, and of messages to the queue `ack`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AckRequest {
    /// Items that succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<AckEntry>,
    /// Items that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<AckEntry>,
    /// Items that are duplicates: another task does the same. If one request names an item here and in `failed`, it has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duplicates: Vec<AckEntry>,
    /// A batch whose record says what is done. Only Fanfold's own steps send this.
    #[cfg_attr(feature = "openapi", schemars(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<LaneBatch>,
    /// How often these acks were gathered from other messages and sent on. Only the step `ack` sends this.
    #[cfg_attr(feature = "openapi", schemars(skip))]
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub gathered: u32,
}

impl AckRequest {
    /// Every entry with the field that has it and its position there.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, usize, &AckEntry)> {
        let fields = [("items", &self.items), ("failed", &self.failed), ("duplicates", &self.duplicates)];
        fields.into_iter().flat_map(|(field, items)| items.iter().enumerate().map(move |(at, item)| (field, at, item)))
    }
}

/// What one entry of an ack names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AckEntry {
    /// One item.
    Item(ItemId),
    /// Items that follow each other.
    Range(ItemRange),
    /// Items of a group by a bitfield.
    Mask(GroupMask),
}

/// Items of a group, by a bitfield.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GroupMask {
    /// The group: `<fanout>:<group>`.
    pub group: GroupId,
    /// A bitfield in base64: item `i` is bit `i % 8` of byte `i / 8`, the least significant bit first. Bytes missing at the end are zero.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::mask"))]
    #[serde(with = "mask")]
    pub mask: Bits,
}

impl AckEntry {
    /// The group that its items are in.
    #[must_use]
    pub fn group(&self) -> GroupId {
        match self {
            Self::Item(ItemId { fanout, group, .. })
            | Self::Range(ItemRange { first: ItemId { fanout, group, .. }, .. }) => {
                GroupId { fanout: *fanout, group: *group }
            }
            Self::Mask(mask) => mask.group,
        }
    }

    /// Adds its items to a set of indices of that group.
    pub fn add_to(&self, items: &mut Bits) {
        match self {
            Self::Item(item) => items.set(usize::from(item.index)),
            Self::Range(range) => items.set_all(usize::from(range.first.index), usize::from(range.last)),
            Self::Mask(mask) => items.merge(&mask.mask),
        }
    }

    /// Whether it names one of these items of its group.
    #[must_use]
    pub fn names_any(&self, items: &Bits) -> bool {
        match self {
            Self::Item(item) => items.get(usize::from(item.index)),
            Self::Range(range) => (range.first.index..=range.last).any(|index| items.get(usize::from(index))),
            Self::Mask(mask) => !mask.mask.and(items).is_zero(),
        }
    }
}

impl From<ItemId> for AckEntry {
    fn from(item: ItemId) -> Self {
        Self::Item(item)
    }
}

impl Serialize for AckEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Item(item) => serializer.collect_str(item),
            Self::Range(range) => serializer.collect_str(range),
            Self::Mask(mask) => mask.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AckEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Entry)
    }
}

struct Entry;

impl<'de> Visitor<'de> for Entry {
    type Value = AckEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item id, a range of items, or an object with `group` and `mask`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<AckEntry, E> {
        // The hyphens of two UUIDs stand before the second colon.
        let range = text.rsplit_once(':').is_some_and(|(names, items)| names.contains(':') && items.contains('-'));
        if range {
            return text.parse().map(AckEntry::Range).map_err(E::custom);
        }
        text.parse().map(AckEntry::Item).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<AckEntry, A::Error> {
        GroupMask::deserialize(MapAccessDeserializer::new(object)).map(AckEntry::Mask)
    }
}

/// A bitfield as JSON has it: base64, standard letters, padded.
pub mod mask {
    use super::{
        Bits, Deserialize, Deserializer, Engine, Error, GROUP_ITEMS_MAX, MASK_BYTES_MAX, STANDARD, Serializer, start,
    };

    /// Writes it.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(mask: &Bits, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(mask.as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bits, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(&text).map_err(|error| {
            let shown = start(&text);
            D::Error::custom(format!("`{shown}` is not base64 (standard letters, padded): {error}"))
        })?;
        if bytes.len() > MASK_BYTES_MAX {
            return Err(D::Error::custom(format!(
                "has {} bytes, at most {MASK_BYTES_MAX} are allowed (a group has at most {GROUP_ITEMS_MAX} items)",
                bytes.len()
            )));
        }
        Ok(Bits::from_bytes(bytes))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::json::read;

    const ID: &str = "01890000-0000-7000-8000-000000000001";

    fn problem(entry: &serde_json::Value) -> String {
        read::<AckRequest>(json!({"items": [format!("{ID}:{ID}:0"), entry]}).to_string().as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let group = format!("{ID}:{ID}");
        for (entry, named) in [
            (json!("x"), "`items[1]`: `x` is not an item id"),
            (json!(format!("{group}:01")), ":01` is not an item id"),
            (json!(format!("{group}:7168")), ":7168` is not an item id"),
            (json!(format!("{group}:9-5")), ":9-5` is not a range of items"),
            (json!(format!("{group}:0-7168")), "two numbers below 7168"),
            (json!(group), "is not an item id"),
            (
                json!(5),
                "`items[1]`: invalid type: integer `5`, expected an item id, a range of items, or an object with",
            ),
            (json!(null), "invalid type: null, expected an item id"),
            (json!([]), "invalid type: list, expected an item id"),
            (json!({"group": group}), "`items[1].mask`: missing field `mask`"),
            (json!({"group": group, "mask": "AQ==", "x": 1}), "unknown field `x`, expected `group` or `mask`"),
            (
                json!({"group": ID, "mask": ""}),
                "`items[1].group`: `01890000-0000-7000-8000-000000000001` is not an item group",
            ),
            (json!({"group": group, "mask": "AQ"}), "`items[1].mask`: `AQ` is not base64"),
            (json!({"group": group, "mask": "_-=="}), "`_-==` is not base64"),
            (json!({"group": group, "mask": 1}), "`items[1].mask`: invalid type: integer `1`, expected a string"),
            (json!({"group": group, "mask": STANDARD.encode([0; 897])}), "has 897 bytes, at most 896 are allowed"),
        ] {
            let problem = problem(&entry);
            assert!(problem.contains(named), "{entry}: {problem}");
        }
    }

    fn entry() -> impl Strategy<Value = AckEntry> {
        let item = |(fanout, group, index): (u128, u128, u16)| ItemId {
            fanout: Uuid::from_u128(fanout),
            group: Uuid::from_u128(group),
            index,
        };
        let item = (any::<u128>(), any::<u128>(), 0_u16..7_168).prop_map(item);
        prop_oneof![
            item.clone().prop_map(AckEntry::Item),
            (item.clone(), 0_u16..7_168).prop_map(|(first, more)| {
                let last = first.index.saturating_add(more).min(7_167);
                AckEntry::Range(ItemRange { first, last })
            }),
            (item, prop::collection::vec(any::<u8>(), 0..=896)).prop_map(|(item, bytes)| {
                let group = GroupId { fanout: item.fanout, group: item.group };
                AckEntry::Mask(GroupMask { group, mask: Bits::from_bytes(bytes) })
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(items in prop::collection::vec(entry(), 0..9), failed in prop::collection::vec(entry(), 0..9)) {
            let request = AckRequest { items, failed, ..AckRequest::default() };
            let body = serde_json::to_string(&request).unwrap();
            prop_assert_eq!(read::<AckRequest>(body.as_bytes()).unwrap(), request);
        }

        #[test]
        fn an_entry_names_what_it_adds(entry in entry(), other in prop::collection::btree_set(0_usize..7_168, 0..4)) {
            let mut items = Bits::default();
            entry.add_to(&mut items);
            let one_by_one: Bits = match &entry {
                AckEntry::Item(item) => std::iter::once(usize::from(item.index)).collect(),
                AckEntry::Range(range) => (range.first.index..=range.last).map(usize::from).collect(),
                AckEntry::Mask(mask) => mask.mask.iter().collect(),
            };
            prop_assert_eq!(&items, &one_by_one);
            let other: Bits = other.into_iter().collect();
            prop_assert_eq!(entry.names_any(&other), !items.and(&other).is_zero());
        }
    }
}
