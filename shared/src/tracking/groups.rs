//! Which groups a fan-out has, page by page.

use uuid::Uuid;

use super::add::opening_groups;
use super::{Tracking, TrackingError};
use crate::ids::ItemGroup;
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
}
