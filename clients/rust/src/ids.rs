//! Item ids, `<fanout>:<group>:<index>`, which the client computes from the groups that Fanfold returns.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The most items of a group.
pub const GROUP_ITEMS_MAX: u16 = 7_168;

/// A group of a fan-out: `<fanout>:<group>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName {
    /// The fan-out.
    pub fanout: Uuid,
    /// Its item group.
    pub group: Uuid,
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.fanout, self.group)
    }
}

/// The id of an item of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// Its group.
    pub of: GroupName,
    /// Its number there, below [`GROUP_ITEMS_MAX`].
    pub index: u16,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.of, self.index)
    }
}

impl Serialize for Item {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text is not an item id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an item id (<fanout>:<group>:<index>, two UUIDs and a number below 7168)")]
pub struct NoItem(String);

impl FromStr for Item {
    type Err = NoItem;

    fn from_str(text: &str) -> Result<Self, NoItem> {
        match range(text) {
            Some((of, indexes)) if !text.ends_with(&format!("-{}", indexes.end())) => {
                Ok(Self { of, index: *indexes.start() })
            }
            _ => Err(no_item(text)),
        }
    }
}

/// An item group as Fanfold returns it: `upto` items, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ItemGroup {
    /// The group's id.
    pub id: Uuid,
    /// How many items it has.
    pub upto: u16,
}

/// Returns the ids of all items of these groups, in order.
pub fn expand(fanout: Uuid, groups: &[ItemGroup]) -> impl Iterator<Item = Item> {
    groups.iter().flat_map(move |group| {
        let of = GroupName { fanout, group: group.id };
        (0..group.upto).map(move |index| Item { of, index })
    })
}

/// Returns the items in an id or a range (`<fanout>:<group>:<first>-<last>`), in order.
///
/// # Errors
/// The text is neither.
pub fn expand_ranges(text: &str) -> Result<impl Iterator<Item = Item> + use<>, NoItem> {
    let (of, indexes) = range(text).ok_or_else(|| no_item(text))?;
    Ok(indexes.map(move |index| Item { of, index }))
}

fn range(text: &str) -> Option<(GroupName, RangeInclusive<u16>)> {
    let mut parts = text.splitn(3, ':');
    let of = GroupName { fanout: uuid(parts.next()?)?, group: uuid(parts.next()?)? };
    let indexes = parts.next()?;
    let (first, last) = indexes.split_once('-').unwrap_or((indexes, indexes));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last < GROUP_ITEMS_MAX).then_some((of, first..=last))
}

/// A UUID in its canonical form: 36 characters, lower case.
fn uuid(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|id| id.to_string() == text)
}

/// A number in its canonical form: "+1" and "01" would name one item twice.
fn number(text: &str) -> Option<u16> {
    text.parse::<u16>().ok().filter(|number| number.to_string() == text)
}

fn no_item(text: &str) -> NoItem {
    NoItem(text.chars().take(120).collect())
}
