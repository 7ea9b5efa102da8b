//! Names of several items: a whole item group, and a range of its items.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{IdError, ItemId, index, uuid};
use crate::limits::GROUP_ITEMS_MAX;

/// Names an item group: `<fanout>:<group>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId {
    /// The fan-out.
    pub fanout: Uuid,
    /// The group.
    pub group: Uuid,
}

const GROUP: &str = "an item group (<fanout>:<group>, two UUIDs in lower case)";

impl FromStr for GroupId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (fanout, group) = text.split_once(':')?;
            Some(Self { fanout: uuid(fanout)?, group: uuid(group)? })
        };
        parse().ok_or_else(|| IdError::new(text, GROUP))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.fanout, self.group)
    }
}

/// Names items of one group that follow each other: `<fanout>:<group>:<first>-<last>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemRange {
    /// The first item.
    pub first: ItemId,
    /// The index of the last one, not below the first one's.
    pub last: u16,
}

impl ItemRange {
    /// Its name; a single item has its own.
    #[must_use]
    pub fn shortly(&self) -> String {
        if self.first.index == self.last { self.first.to_string() } else { self.to_string() }
    }
}

impl FromStr for ItemRange {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parse = || {
            let (first, last) = text.rsplit_once('-')?;
            let range = Self { first: first.parse().ok()?, last: index(last)? };
            (range.first.index <= range.last).then_some(range)
        };
        let expected = || {
            format!(
                "a range of items (<fanout>:<group>:<first>-<last>: two UUIDs, and two numbers below {GROUP_ITEMS_MAX}, of \
                 which the first is not beyond the last)"
            )
        };
        parse().ok_or_else(|| IdError::new(text, expected()))
    }
}

impl fmt::Display for ItemRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_canonical_is_read() {
        let id = "01890000-0000-7000-8000-000000000001";
        assert_eq!(format!("{id}:{id}").parse::<GroupId>().unwrap().to_string(), format!("{id}:{id}"));
        for bad in [String::new(), id.to_owned(), format!("{id}:"), format!("{id}:{id}:"), format!("{id}:{id}:1")] {
            assert!(bad.parse::<GroupId>().is_err(), "{bad}");
        }
        for good in ["0-0", "5-9", "0-7167", "7167-7167"] {
            let text = format!("{id}:{id}:{good}");
            assert_eq!(text.parse::<ItemRange>().unwrap().to_string(), text);
        }
        for bad in ["", "5", "5-", "-5", "9-5", "0-7168", "05-9", "5-09", "+5-9", "5-+9", "5--9", "5-6-7", "5 - 9"] {
            let text = format!("{id}:{id}:{bad}");
            let error = text.parse::<ItemRange>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("below 7168"), "{error}");
        }
    }
}
