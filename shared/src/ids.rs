//! Ids: fan-outs, item groups, items, tasks, batches.

pub mod derived;
mod range;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::GROUP_ITEMS_MAX;
use crate::text::start;

pub use range::{GroupId, ItemRange};

/// A text is not the id it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct IdError {
    /// The text, shortened.
    pub value: String,
    /// What was expected.
    pub expected: Cow<'static, str>,
}

impl IdError {
    fn new(value: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { value: start(value).to_owned(), expected: expected.into() }
    }
}

/// Names one item of a fan-out: `<fanout>:<group>:<index>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    /// The fan-out.
    pub fanout: Uuid,
    /// Its item group. A small fan-out that keeps its bitfield in its own header is its own group.
    pub group: Uuid,
    /// The item's bit, below 7,168.
    pub index: u16,
}

impl FromStr for ItemId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let mut parts = text.split(':');
            let (fanout, group, index) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() {
                return None;
            }
            Some(Self { fanout: uuid(fanout)?, group: uuid(group)?, index: self::index(index)? })
        };
        let expected =
            || format!("an item id (<fanout>:<group>:<index>, two UUIDs and a number below {GROUP_ITEMS_MAX})");
        parse().ok_or_else(|| IdError::new(text, expected()))
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.fanout, self.group, self.index)
    }
}

/// Names a task: an item of a fan-out, or a task on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskId {
    /// A task on its own.
    Single(Uuid),
    /// A task that is an item of a fan-out.
    Item(ItemId),
}

impl TaskId {
    /// The item that it is, if it is one.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        match self {
            Self::Item(item) => Some(*item),
            Self::Single(_) => None,
        }
    }
}

impl FromStr for TaskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.contains(':') {
            text.parse().map(Self::Item)
        } else {
            uuid(text).map(Self::Single).ok_or_else(|| IdError::new(text, "a task id (a UUID, or an item id)"))
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(id) => id.fmt(f),
            Self::Item(id) => id.fmt(f),
        }
    }
}

/// An index below 7,168 in its canonical form: "+1" and "01" would name one item twice.
fn index(text: &str) -> Option<u16> {
    if text.is_empty() || (text.len() > 1 && text.starts_with('0')) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|index| u32::from(*index) < GROUP_ITEMS_MAX)
}

/// A UUID in its canonical form: 36 characters, lower case.
fn uuid(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    (text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase())).then_some(id)
}

/// Reads a fan-out's or batch's id.
///
/// # Errors
/// The text is not a UUID in canonical form.
pub fn parse_uuid(text: &str, expected: &'static str) -> Result<Uuid, IdError> {
    uuid(text).ok_or_else(|| IdError::new(text, expected))
}

/// The problem that a batch is not there.
#[must_use]
pub fn no_batch(id: Uuid) -> String {
    format!("there is no batch {id}")
}

/// The problem that a task is not there.
#[must_use]
pub fn no_task(id: &TaskId) -> String {
    format!("there is no task {id}")
}

macro_rules! serde_as_text {
    ($($id:ty),*) => {$(
        impl Serialize for $id {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
serde_as_text!(ItemId, TaskId, GroupId);

/// An item group as a producer receives it. The client computes the item ids from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ItemGroup {
    /// The group's id.
    pub id: Uuid,
    /// Its items are `<fanout>:<id>:0` to `<fanout>:<id>:<upto - 1>`.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = GROUP_ITEMS_MAX)))]
    pub upto: u32,
}

impl ItemGroup {
    /// The ids of the group's items.
    pub fn expand(self, fanout: Uuid) -> impl Iterator<Item = ItemId> {
        // `upto` is at most 7,168; anything larger was not made by Fanfold.
        let upto = u16::try_from(self.upto.min(GROUP_ITEMS_MAX)).unwrap_or(0);
        (0..upto).map(move |index| ItemId { fanout, group: self.id, index })
    }
}

/// The ids of all items of several groups, in order.
pub fn expand(fanout: Uuid, groups: &[ItemGroup]) -> impl Iterator<Item = ItemId> {
    groups.iter().flat_map(move |group| group.expand(fanout))
}

/// How `items` are cut into groups.
pub(crate) fn group_sizes(items: u32) -> impl Iterator<Item = u32> {
    (0..items.div_ceil(GROUP_ITEMS_MAX)).map(move |group| (items - group * GROUP_ITEMS_MAX).min(GROUP_ITEMS_MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_not_canonical() {
        let id = "01890000-0000-7000-8000-000000000001";
        for bad in [
            String::new(),
            id.to_owned(),
            format!("{id}:{id}"),
            format!("{id}:{id}:"),
            format!("{id}:{id}:+1"),
            format!("{id}:{id}:-1"),
            format!("{id}:{id}:01"),
            format!("{id}:{id}:7168"),
            format!("{id}:{id}:99999999999999999999"),
            format!("{id}:{id}:1:2"),
            format!("{}:{id}:1", id.replace('-', "")),
            format!("{}:{id}:1", id.replace("01890000", "0189ABCD")),
        ] {
            assert!(bad.parse::<ItemId>().is_err(), "{bad}");
        }
        assert!(format!("{id}:{id}:7167").parse::<ItemId>().is_ok());
    }

    proptest! {
        #[test]
        fn item_ids_round_trip(fanout: u128, group: u128, index in 0_u16..7_168) {
            let id = ItemId { fanout: Uuid::from_u128(fanout), group: Uuid::from_u128(group), index };
            prop_assert_eq!(id.to_string().parse::<ItemId>().unwrap(), id);
            let json = serde_json::to_string(&TaskId::Item(id)).unwrap();
            prop_assert_eq!(serde_json::from_str::<TaskId>(&json).unwrap(), TaskId::Item(id));
        }

        #[test]
        fn groups_hold_all_items_once(items in 0_u32..100_000) {
            let sizes: Vec<u32> = group_sizes(items).collect();
            prop_assert_eq!(sizes.iter().sum::<u32>(), items);
            prop_assert!(sizes.iter().all(|size| (1..=GROUP_ITEMS_MAX).contains(size)));
            let groups: Vec<_> = sizes.iter().enumerate()
                .map(|(n, upto)| ItemGroup { id: Uuid::from_u128(n as u128), upto: *upto }).collect();
            let ids: std::collections::HashSet<_> = expand(Uuid::nil(), &groups).collect();
            prop_assert_eq!(ids.len(), items as usize);
        }

        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,120}") {
            if let Ok(id) = text.parse::<TaskId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
