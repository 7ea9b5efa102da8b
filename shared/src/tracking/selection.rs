//! The items of a fan-out that are in certain states, page by page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::items::in_state;
use super::{ItemState, Tracking, TrackingError};
use crate::aws::StoreError;
use crate::bits::Bits;
use crate::ids::{ItemGroup, ItemId};
use crate::limits::{GROUP_ITEMS_MAX, GROUPS_COUNTED_MAX, KEYS_PER_READ_MAX};
use crate::store::fanouts::Fanout;
use crate::store::groups::GroupRecord;

/// Where a reader of a fan-out's items stands: it has read this group before an item, and all groups before this one.
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

    /// Whether the index shows all groups of a fan-out to which nothing is added any more.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn all_listed(&self, fanout: &Fanout) -> Result<bool, TrackingError> {
        let (mut seen, mut after) = (0, None);
        loop {
            let page = self.groups_of(fanout, after, KEYS_PER_READ_MAX).await?;
            seen += page.groups.iter().map(|group| u64::from(group.upto)).sum::<u64>();
            after = page.groups.last().map(|group| group.id).filter(|_| page.more);
            if after.is_none() {
                return Ok(seen >= fanout.total);
            }
        }
    }
}
