//! Which groups a fan-out has, page by page.

use uuid::Uuid;

use super::add::opening_groups;
use super::{Tracking, TrackingError};
use crate::ids::{ItemGroup, ItemId};
use crate::limits::KEYS_PER_READ_MAX;
use crate::store::fanouts::Fanout;

/// A page of a fan-out's groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPage {
    /// The groups.
    pub groups: Vec<ItemGroup>,
    /// Whether there may be more.
    pub more: bool,
}

impl Tracking {
    /// The groups of a fan-out after the one named, at most `limit`: first those it was opened with, which its header shows,
    /// then those added, which an index shows and may show late.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn groups_of(
        &self,
        fanout: &Fanout,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<GroupPage, TrackingError> {
        let opening = opening_groups(fanout);
        let place = after.and_then(|after| opening.iter().position(|group| group.id == after));
        // A caller that names an added group has read those it was opened with.
        let rest = match (after, place) {
            (None, _) => opening.as_slice(),
            (Some(_), Some(place)) => &opening[place + 1..],
            (Some(_), None) => &[],
        };
        let mut groups: Vec<ItemGroup> = rest.iter().take(limit).copied().collect();
        let mut more = rest.len() > limit;
        if !more && fanout.total > fanout.opened_with && !fanout.estimated() {
            let after = after.filter(|_| place.is_none());
            let left = limit - groups.len();
            // One more shows whether that was all.
            let added = self.groups.listed(fanout.id, after, left + 1).await?;
            more = added.len() > left;
            groups.extend(added.into_iter().take(left));
        }
        Ok(GroupPage { groups, more })
    }

    /// The items of a fan-out after the one named, at most `limit`, in the order of its groups, and whether there may be more.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn items_after(
        &self,
        fanout: &Fanout,
        after: Option<ItemId>,
        limit: usize,
    ) -> Result<(Vec<ItemId>, bool), TrackingError> {
        let item = |group: Uuid, index: u32| {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            ItemId { fanout: fanout.id, group, index }
        };
        let mut items = Vec::new();
        let mut more = true;
        let mut last = after.map(|after| after.group);
        if let Some(after) = after
            && let Some(group) = self.group_of(fanout, after.group).await?
        {
            items.extend((u32::from(after.index) + 1..group.upto).map(|index| item(group.id, index)));
        }
        while more && items.len() <= limit {
            let page = self.groups_of(fanout, last, KEYS_PER_READ_MAX).await?;
            last = page.groups.last().map(|group| group.id).or(last);
            more = page.more;
            items.extend(page.groups.iter().flat_map(|group| (0..group.upto).map(|index| item(group.id, index))));
        }
        let more = more || items.len() > limit;
        items.truncate(limit);
        Ok((items, more))
    }

    /// A group of a fan-out.
    async fn group_of(&self, fanout: &Fanout, id: Uuid) -> Result<Option<ItemGroup>, TrackingError> {
        if let Some(group) = opening_groups(fanout).into_iter().find(|group| group.id == id) {
            return Ok(Some(group));
        }
        let group = self.groups.get_many(&[id]).await?.pop().filter(|group| group.fanout == fanout.id);
        Ok(group.map(|group| ItemGroup { id, upto: group.size }))
    }
}
