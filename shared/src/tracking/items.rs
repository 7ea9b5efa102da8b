//! Items: whether they exist, and their states.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::{AckRefusal, Tracking};
use crate::aws::StoreError;
use crate::bits::Bits;
use crate::ids::{ItemGroup, ItemId};
use crate::limits::{ACKS_AT_ONCE_MAX, RETENTION};
use crate::store::fanouts::Fanout;
use crate::store::groups::GroupRecord;

/// The item groups that some items are in, as they were read, by fan-out and group.
#[derive(Clone, Debug, Default)]
pub struct GroupsRead(BTreeMap<(Uuid, Uuid), GroupRecord>);

impl GroupsRead {
    /// Why an item does not exist, if it does not.
    #[must_use]
    pub fn refusal(&self, item: &ItemId) -> Option<AckRefusal> {
        let ItemId { fanout, group, index } = *item;
        match self.0.get(&(fanout, group)).map(|group| group.size) {
            None => Some(AckRefusal::UnknownGroup { fanout, group }),
            Some(size) if u32::from(index) >= size => {
                Some(AckRefusal::OutOfRange { fanout, group, index: usize::from(index), size })
            }
            Some(_) => None,
        }
    }

    /// The state of an item.
    #[must_use]
    pub fn state(&self, item: &ItemId) -> ItemState {
        self.0.get(&(item.fanout, item.group)).map_or(ItemState::Unknown, |group| state(group, item.index))
    }

    /// Whether tasks were registered for items of an item's group.
    #[must_use]
    pub fn has_tasks(&self, item: &ItemId) -> bool {
        self.0.get(&(item.fanout, item.group)).is_some_and(|group| group.tasks)
    }

    /// Whether the group of an item is to be marked as a parent's: it is not yet, and has not ended.
    pub(super) fn is_to_be_marked(&self, item: &ItemId) -> bool {
        self.0.get(&(item.fanout, item.group)).is_some_and(|group| !group.children && !group.pending.is_zero())
    }

    /// Whether an item is done, which it stays whatever becomes of the records of its task.
    fn is_done(&self, item: &ItemId) -> bool {
        matches!(self.state(item), ItemState::Succeeded | ItemState::Failed | ItemState::Duplicate)
    }
}

/// The state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// It is not acked yet.
    Pending,
    /// It was acked as succeeded.
    Succeeded,
    /// It was acked as failed.
    Failed,
    /// It is a duplicate.
    Duplicate,
    /// It was not done when its fan-out ended.
    Missing,
    /// It does not exist, or does not exist any more, because its fan-out ended long ago. Acks of it are refused.
    Unknown,
}

impl Tracking {
    /// The groups of these items, strongly consistent: one read per hundred groups, and one per hundred small fan-outs. Groups that do
    /// not exist are left out.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn groups_with(&self, items: &[ItemId]) -> Result<GroupsRead, StoreError> {
        let names: BTreeSet<(Uuid, Uuid)> = items.iter().map(|item| (item.fanout, item.group)).collect();
        let (small, large): (Vec<_>, Vec<_>) = names.into_iter().partition(|(fanout, group)| fanout == group);
        let (small, large) = (small.into_iter().map(|name| name.0), large.into_iter().map(|name| name.1));
        let groups = self.groups.get_many(&large.collect::<Vec<_>>()).await?;
        let fanouts = self.fanouts.get_many(&small.collect::<Vec<_>>()).await?;
        let groups = groups.into_iter().chain(fanouts.iter().filter_map(|fanout| fanout.inline_group()));
        Ok(GroupsRead(groups.map(|group| ((group.fanout, group.id), group)).collect()))
    }

    /// Marks the groups of these items as having tasks, before the first of them is stored: from then on, a fan-out that is cut
    /// short waits for tasks in progress. One write per group, once.
    ///
    /// # Errors
    /// The tables cannot be written.
    pub async fn mark(&self, groups: &GroupsRead, items: &[ItemId]) -> Result<(), StoreError> {
        let names: BTreeSet<(Uuid, Uuid)> = items.iter().map(|item| (item.fanout, item.group)).collect();
        let new =
            names.into_iter().filter(|name| groups.0.get(name).is_some_and(|it| !it.tasks && !it.pending.is_zero()));
        let mark = async |(fanout, group)| {
            if fanout == group { self.fanouts.mark(fanout).await } else { self.groups.mark(group).await }
        };
        stream::iter(new.map(mark)).buffer_unordered(ACKS_AT_ONCE_MAX).try_collect().await
    }

    /// Marks the group of an item as having fan-outs under it, or items that other fan-outs do when they end, before such a one is opened: from then on, it may be idle for as long as
    /// they may take. One write per group, once.
    ///
    /// # Errors
    /// The tables cannot be written.
    pub(super) async fn mark_parent(&self, item: &ItemId) -> Result<(), StoreError> {
        let ItemId { fanout, group, .. } = *item;
        if fanout == group { self.fanouts.mark_parent(fanout).await } else { self.groups.mark_parent(group).await }
    }

    /// Those of these items that are done, of fan-outs which were opened so long ago that the record of a task which was called for
    /// the item may have expired. `groups`: theirs. Reads headers only if some are done.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn done_long_ago(&self, groups: &GroupsRead, items: &[ItemId]) -> Result<BTreeSet<ItemId>, StoreError> {
        let done: BTreeSet<ItemId> = items.iter().filter(|item| groups.is_done(item)).copied().collect();
        let fanouts: BTreeSet<Uuid> = done.iter().map(|item| item.fanout).collect();
        if fanouts.is_empty() {
            return Ok(done);
        }
        let now = self.world.now();
        let young = |fanout: Fanout| (now.since(fanout.created_at) < RETENTION).then_some(fanout.id);
        let fanouts = self.fanouts.get_many(&fanouts.into_iter().collect::<Vec<_>>()).await?;
        let young: BTreeSet<Uuid> = fanouts.into_iter().filter_map(young).collect();
        Ok(done.into_iter().filter(|item| !young.contains(&item.fanout)).collect())
    }

    /// Whether some of these items wait for their ack, strongly consistent. Those that do not exist wait for nothing.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn any_pending(&self, items: &[ItemId]) -> Result<bool, StoreError> {
        let groups = self.groups_with(items).await?;
        Ok(items.iter().any(|item| groups.state(item) == ItemState::Pending))
    }

    /// The states of items, in their order, strongly consistent.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn states(&self, items: &[ItemId]) -> Result<Vec<ItemState>, StoreError> {
        let groups = self.groups_with(items).await?;
        Ok(items.iter().map(|item| groups.state(item)).collect())
    }

    /// The items of these groups of a fan-out that are in a state, strongly consistent: runs of indices, both ends included, by
    /// group in the order given. Groups whose records are gone have none.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn in_state(
        &self,
        fanout: &Fanout,
        groups: &[ItemGroup],
        wanted: ItemState,
    ) -> Result<Vec<(Uuid, Vec<(u16, u16)>)>, StoreError> {
        let records = self.records(fanout, groups).await?;
        let index = |index: usize| u16::try_from(index).unwrap_or(u16::MAX);
        let runs = |id: &Uuid| {
            let bits = records.get(id).map(|group| in_state(group, wanted)).unwrap_or_default();
            bits.runs().map(|(first, last)| (index(first), index(last))).collect()
        };
        Ok(groups.iter().map(|group| (group.id, runs(&group.id))).collect())
    }

    /// The records of these groups of a fan-out, strongly consistent, in the order given: the states of their items. Groups whose
    /// records are gone are left out.
    ///
    /// # Errors
    /// The tables cannot be read, or a record is corrupt.
    pub async fn group_states(&self, fanout: &Fanout, groups: &[ItemGroup]) -> Result<Vec<GroupRecord>, StoreError> {
        let mut records = self.records(fanout, groups).await?;
        Ok(groups.iter().filter_map(|group| records.remove(&group.id)).collect())
    }

    async fn records(&self, fanout: &Fanout, groups: &[ItemGroup]) -> Result<BTreeMap<Uuid, GroupRecord>, StoreError> {
        let ids: Vec<Uuid> = groups.iter().map(|group| group.id).filter(|id| *id != fanout.id).collect();
        let records = self.groups.get_many(&ids).await?.into_iter().chain(fanout.inline_group());
        Ok(records.map(|group| (group.id, group)).collect())
    }

    /// The state of an item, strongly consistent.
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

/// The items of a group that are in a state.
pub(super) fn in_state(group: &GroupRecord, state: ItemState) -> Bits {
    match state {
        ItemState::Pending => group.pending.clone(),
        ItemState::Failed => group.failed.clone(),
        ItemState::Duplicate => group.duplicates.clone(),
        ItemState::Missing => group.missing.clone(),
        ItemState::Succeeded => [&group.pending, &group.failed, &group.duplicates, &group.missing]
            .into_iter()
            .fold(Bits::ones(group.size as usize), |left, others| left.minus(others)),
        ItemState::Unknown => Bits::default(),
    }
}

fn state(group: &GroupRecord, index: u16) -> ItemState {
    let at = usize::from(index);
    match () {
        () if u32::from(index) >= group.size => ItemState::Unknown,
        () if group.pending.get(at) => ItemState::Pending,
        () if group.failed.get(at) => ItemState::Failed,
        () if group.duplicates.get(at) => ItemState::Duplicate,
        () if group.missing.get(at) => ItemState::Missing,
        () => ItemState::Succeeded,
    }
}
