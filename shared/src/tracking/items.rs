//! Items as they stand: whether they exist, and what became of one.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{AckRefusal, Tracking};
use crate::aws::StoreError;
use crate::ids::ItemId;
use crate::store::groups::GroupRecord;

/// Sizes of item groups, by fan-out and group.
#[derive(Clone, Debug, Default)]
pub struct Sizes(BTreeMap<(Uuid, Uuid), u32>);

impl Sizes {
    /// Why an item does not exist, if it does not.
    #[must_use]
    pub fn refusal(&self, item: &ItemId) -> Option<AckRefusal> {
        let ItemId { fanout, group, index } = *item;
        match self.0.get(&(fanout, group)).copied() {
            None => Some(AckRefusal::UnknownGroup { fanout, group }),
            Some(size) if u32::from(index) >= size => {
                Some(AckRefusal::OutOfRange { fanout, group, index: usize::from(index), size })
            }
            Some(_) => None,
        }
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It was not acked yet.
    Pending,
    /// It was acked as succeeded.
    Succeeded,
    /// It was acked as failed.
    Failed,
    /// It was dropped as a duplicate.
    Duplicate,
    /// There is no such item, or its fan-out ended long ago: acks of it are refused.
    Unknown,
}

impl Tracking {
    /// The sizes of the groups of these items, strongly consistent: one read per hundred groups, and one per hundred small
    /// fan-outs. Groups that do not exist are left out.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn sizes(&self, items: &[ItemId]) -> Result<Sizes, StoreError> {
        let groups = self.groups_named(items).await?;
        Ok(Sizes(groups.into_iter().map(|(name, group)| (name, group.size)).collect()))
    }

    /// Whether some of these items wait for their ack, strongly consistent. Those that do not exist wait for nothing.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn any_pending(&self, items: &[ItemId]) -> Result<bool, StoreError> {
        let groups = self.groups_named(items).await?;
        let pending = |item: &ItemId| {
            let group = groups.get(&(item.fanout, item.group));
            group.is_some_and(|group| state(group, item.index) == ItemState::Pending)
        };
        Ok(items.iter().any(pending))
    }

    /// The groups of these items, by fan-out and group.
    async fn groups_named(&self, items: &[ItemId]) -> Result<BTreeMap<(Uuid, Uuid), GroupRecord>, StoreError> {
        let names: BTreeSet<(Uuid, Uuid)> = items.iter().map(|item| (item.fanout, item.group)).collect();
        let (small, large): (Vec<_>, Vec<_>) = names.into_iter().partition(|(fanout, group)| fanout == group);
        let (small, large) = (small.into_iter().map(|name| name.0), large.into_iter().map(|name| name.1));
        let groups = self.groups.get_many(&large.collect::<Vec<_>>()).await?;
        let fanouts = self.fanouts.get_many(&small.collect::<Vec<_>>()).await?;
        let groups = groups.into_iter().chain(fanouts.iter().filter_map(|fanout| fanout.inline_group()));
        Ok(groups.map(|group| ((group.fanout, group.id), group)).collect())
    }

    /// What became of an item, strongly consistent.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn item(&self, item: &ItemId) -> Result<ItemState, StoreError> {
        let group = if item.fanout == item.group {
            self.fanouts.get(item.fanout).await?.and_then(|fanout| fanout.inline_group())
        } else {
            self.groups.get_many(&[item.group]).await?.pop()
        };
        Ok(group
            .filter(|group| group.fanout == item.fanout)
            .map_or(ItemState::Unknown, |group| state(&group, item.index)))
    }
}

fn state(group: &GroupRecord, index: u16) -> ItemState {
    let at = usize::from(index);
    match () {
        () if u32::from(index) >= group.size => ItemState::Unknown,
        () if group.pending.get(at) => ItemState::Pending,
        () if group.failed.get(at) => ItemState::Failed,
        () if group.duplicates.get(at) => ItemState::Duplicate,
        () => ItemState::Succeeded,
    }
}
