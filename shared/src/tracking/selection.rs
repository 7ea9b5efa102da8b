//! The items of a fan-out that are in certain states, page by page.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::add::opening_groups;
use super::items::in_state;
use super::{ItemState, Tracking, TrackingError};
use crate::aws::StoreError;
use crate::bits::Bits;
use crate::ids::{ItemGroup, ItemId, parse_uuid};
use crate::limits::{GROUP_ITEMS_MAX, GROUPS_COUNTED_MAX, GROUPS_PER_PAGE_MAX, KEYS_PER_READ_MAX};
use crate::store::fanouts::Fanout;
use crate::store::groups::GroupRecord;

/// Where a reader of a fan-out's items stands: it has read this group before an item, and all groups before this one. As text:
/// `<group>:<next>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemCursor {
    /// The group.
    pub group: Uuid,
    /// The first index of it that was not read.
    pub next: u32,
}

impl ItemCursor {
    /// Right after an item.
    #[must_use]
    pub fn after(item: &ItemId) -> Self {
        Self { group: item.group, next: u32::from(item.index) + 1 }
    }

    /// Whether a reader at this place has passed an item of the fan-out.
    #[must_use]
    pub fn has_passed(&self, fanout: &Fanout, item: &ItemId) -> bool {
        if item.group == self.group {
            return u32::from(item.index) < self.next;
        }
        let opening = opening_groups(fanout);
        // Groups that were added come after those it was opened with, in the order of their ids.
        let place = |group: Uuid| match opening.iter().position(|other| other.id == group) {
            Some(position) => (0, position, Uuid::nil()),
            None => (1, 0, group),
        };
        place(item.group) < place(self.group)
    }
}

impl fmt::Display for ItemCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.next)
    }
}

impl FromStr for ItemCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (group, next) = text.split_once(':').ok_or("is not a group and a number")?;
        let digits = (1..=4).contains(&next.len()) && next.bytes().all(|digit| digit.is_ascii_digit());
        let next = next.parse().ok().filter(|_| digits).ok_or("names no item")?;
        let group = parse_uuid(group, "a group").map_err(|error| error.to_string())?;
        Ok(Self { group, next })
    }
}

/// How many items the index of a fan-out's groups shows, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Items of the groups that were read.
    pub items: u64,
    /// The last of these groups; none: none was read.
    pub group: Option<Uuid>,
}

/// A page of items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemPage {
    /// The items.
    pub items: Vec<ItemId>,
    /// Where the next page begins, if there may be more.
    pub next: Option<ItemCursor>,
}

impl Tracking {
    /// The items of a fan-out that are in one of these states, behind a cursor: at most `limit`, and fewer if they are found in so
    /// many groups. Items are in the order of [`Self::groups_of`]; the index that it reads may lag.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn items_in(
        &self,
        fanout: &Fanout,
        after: Option<ItemCursor>,
        wanted: &[ItemState],
        limit: usize,
    ) -> Result<ItemPage, TrackingError> {
        let (mut items, mut at) = (Vec::new(), after);
        for _ in 0..GROUPS_COUNTED_MAX / KEYS_PER_READ_MAX {
            let (groups, more, from) = match at.filter(|at| at.next < GROUP_ITEMS_MAX) {
                Some(at) => (vec![ItemGroup { id: at.group, upto: GROUP_ITEMS_MAX }], true, at.next),
                None => {
                    let page = self.groups_of(fanout, at.map(|at| at.group), KEYS_PER_READ_MAX).await?;
                    (page.groups, page.more, 0)
                }
            };
            for (group, bits) in self.bits_in(fanout, &groups, wanted).await? {
                let indices = bits.iter().filter_map(|index| u16::try_from(index).ok());
                for index in indices.filter(|index| u32::from(*index) >= from) {
                    if items.len() == limit {
                        return Ok(ItemPage { items, next: at });
                    }
                    let item = ItemId { fanout: fanout.id, group, index };
                    items.push(item);
                    at = Some(ItemCursor::after(&item));
                }
                at = Some(ItemCursor { group, next: GROUP_ITEMS_MAX });
            }
            if !more {
                return Ok(ItemPage { items, next: None });
            }
        }
        Ok(ItemPage { items, next: at })
    }

    /// Which items of these groups of a fan-out are in one of these states, by group in the order given, strongly consistent.
    /// Groups whose records are gone have none.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub(crate) async fn bits_in(
        &self,
        fanout: &Fanout,
        groups: &[ItemGroup],
        wanted: &[ItemState],
    ) -> Result<Vec<(Uuid, Bits)>, StoreError> {
        let ids: Vec<Uuid> = groups.iter().map(|group| group.id).filter(|id| *id != fanout.id).collect();
        let records = self.groups.get_many(&ids).await?.into_iter().chain(fanout.inline_group());
        let records: BTreeMap<Uuid, GroupRecord> =
            records.filter(|group| group.fanout == fanout.id).map(|group| (group.id, group)).collect();
        let bits = |group: &GroupRecord| {
            let mut bits = Bits::default();
            wanted.iter().for_each(|state| bits.merge(&in_state(group, *state)));
            bits
        };
        Ok(groups.iter().map(|group| (group.id, records.get(&group.id).map(bits).unwrap_or_default())).collect())
    }

    /// Counts what the index shows of a fan-out's groups, from where an earlier call stopped: at most `groups` of them. Also
    /// whether those were the last ones.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn count_listed(
        &self,
        fanout: &Fanout,
        from: Listed,
        groups: usize,
    ) -> Result<(Listed, bool), TrackingError> {
        let (mut listed, mut left) = (from, groups);
        while left > 0 {
            let page = self.groups_of(fanout, listed.group, left.min(GROUPS_PER_PAGE_MAX)).await?;
            listed.items += page.groups.iter().map(|group| u64::from(group.upto)).sum::<u64>();
            listed.group = page.groups.last().map(|group| group.id).or(listed.group);
            if !page.more {
                return Ok((listed, true));
            }
            left -= page.groups.len();
        }
        Ok((listed, false))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = ItemCursor { group: Uuid::from_u128(7), next: 7_168 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        let group = cursor.group;
        for wrong in
            ["", "7", &format!("{group}"), &format!("{group}:"), &format!("{group}:-1"), &format!("{group}:+1")]
        {
            assert!(wrong.parse::<ItemCursor>().is_err(), "{wrong}");
        }
        assert!(format!("{group}:10000").parse::<ItemCursor>().is_err());
    }
}
