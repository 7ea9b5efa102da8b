//! Adding items to open fan-outs, and the names of their groups.

use std::time::Duration;

use uuid::Uuid;

use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::ids::{ItemGroup, derived, group_sizes};
use crate::limits::ITEMS_PER_ADD_MAX;
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::groups::GroupRecord;
use crate::store::producers::Partition;

/// What became of an add.
enum Added {
    /// The groups are there.
    Done,
    /// Nothing was written: the groups of this fan-out count failures and these did not, or the other way round.
    Otherwise,
}

impl Tracking {
    /// Adds items to an open fan-out: the groups and the header's counts in one transaction. With an idempotency key,
    /// repeating the call gives the same groups.
    ///
    /// # Errors
    /// The fan-out does not exist or is not open, the key was used for another number of items, or the tables cannot be
    /// written.
    pub async fn add(&self, fanout: Uuid, items: u32, key: Option<&str>) -> Result<Vec<ItemGroup>, TrackingError> {
        if !(1..=ITEMS_PER_ADD_MAX).contains(&items) {
            return Err(items_out_of_range("items", items, 1));
        }
        let seed = key.map_or_else(|| self.world.uuid(), |key| derived::addition(fanout, key));
        self.add_seeded(fanout, items, seed, key.is_some()).await
    }

    /// Adds the items of a page of a producer's partition. Repeating the call gives the same groups.
    ///
    /// # Errors
    /// The fan-out does not exist or is not open, or the tables cannot be written.
    pub async fn add_page(&self, at: &Partition, items: u32) -> Result<Vec<ItemGroup>, TrackingError> {
        self.add_seeded(at.fanout, items, derived::page(at.fanout, at.number, at.page), true).await
    }

    async fn add_seeded(
        &self,
        fanout: Uuid,
        items: u32,
        seed: Uuid,
        keyed: bool,
    ) -> Result<Vec<ItemGroup>, TrackingError> {
        let sizes: Vec<u32> = group_sizes(items).collect();
        let groups = name_groups(fanout, seed, &sizes);
        // Most fan-outs tolerate any number of failures. Others refuse this write.
        match self.add_groups(fanout, items, &groups, keyed, false).await? {
            Added::Otherwise => match self.add_groups(fanout, items, &groups, keyed, true).await? {
                Added::Otherwise => Err(StoreError::Contended { what: format!("adding to {fanout}") }.into()),
                Added::Done => Ok(groups),
            },
            Added::Done => Ok(groups),
        }
    }

    /// Adds groups that count failures if `counted`, or finds that they were added before.
    async fn add_groups(
        &self,
        fanout: Uuid,
        items: u32,
        groups: &[ItemGroup],
        keyed: bool,
        counted: bool,
    ) -> Result<Added, TrackingError> {
        let mut actions = Vec::with_capacity(groups.len() + 1);
        // A repetition finds the first group, however many items it asks for, so that group notes how many the first call
        // added.
        let now = self.world.now();
        for (at, group) in groups.iter().enumerate() {
            let added = (keyed && at == 0).then_some(items);
            let group = GroupRecord { added, counted, ..GroupRecord::new(group.id, fanout, group.upto, now) };
            actions.push(self.groups.insert_action(&group, true)?);
        }
        actions.push(self.fanouts.add_action(fanout, u64::from(items), groups.len() as u64, counted)?);
        let Write::Refused(refused) = self.fanouts.transact(&actions).await? else { return Ok(Added::Done) };
        // The groups exist: this very call was made before, and the fan-out's state since does not matter.
        if refused.iter().any(|(at, _)| *at < groups.len()) {
            let ids: Vec<Uuid> = groups.iter().map(|group| group.id).collect();
            let found = self.groups.get_many(&ids).await?;
            let header = self.fanouts.get(fanout).await?.ok_or(TrackingError::UnknownFanout(fanout))?;
            return same_add(groups, items, &found, &header).map(|()| Added::Done);
        }
        match self.fanouts.get(fanout).await? {
            None => Err(TrackingError::UnknownFanout(fanout)),
            Some(header) if header.estimated() => Err(TrackingError::Estimated(fanout)),
            Some(header) if header.state == FanoutState::Open && header.tolerated.is_some() != counted => {
                Ok(Added::Otherwise)
            }
            Some(header) => Err(TrackingError::NotOpen { id: fanout, state: header.state }),
        }
    }
}

/// Why an idempotency key is refused that named a fan-out once.
pub(super) const FORGOTTEN: &str = "its fan-out ended long ago";

/// More than clocks of workers differ, and far less than a header is kept.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(3_600);

pub(super) fn items_out_of_range(field: &'static str, items: u32, least: u32) -> TrackingError {
    TrackingError::OutOfRange {
        field,
        value: items.to_string(),
        allowed: format!("{least} to {ITEMS_PER_ADD_MAX} a call"),
    }
}

/// The groups that a fan-out was opened with.
pub(super) fn opening_groups(fanout: &Fanout) -> Vec<ItemGroup> {
    if fanout.inline.is_some() || fanout.estimated() {
        return fanout.inline_groups();
    }
    // A call adds no more than fits a `u32`.
    let sizes: Vec<u32> = group_sizes(u32::try_from(fanout.opened_with).unwrap_or(0)).collect();
    name_groups(fanout.id, fanout.id, &sizes)
}

/// The groups of the items of a page of a producer's partition.
#[must_use]
pub fn page_groups(fanout: Uuid, partition: u32, page: u64, items: u32) -> Vec<ItemGroup> {
    name_groups(fanout, derived::page(fanout, partition, page), &group_sizes(items).collect::<Vec<_>>())
}

pub(super) fn name_groups(fanout: Uuid, seed: Uuid, sizes: &[u32]) -> Vec<ItemGroup> {
    let name = |(at, upto): (usize, &u32)| ItemGroup { id: derived::group(fanout, seed, at), upto: *upto };
    sizes.iter().enumerate().map(name).collect()
}

/// A repeated call must ask for as many items as the first. Groups without that note can only be compared by size. Groups outlive the
/// header of their fan-out, which may have been opened again under its key since: those that ended before are not of that one.
fn same_add(wanted: &[ItemGroup], items: u32, found: &[GroupRecord], header: &Fanout) -> Result<(), TrackingError> {
    if found.iter().any(|group| group.updated_at.plus(CLOCKS_DIFFER_MAX) < header.created_at) {
        return Err(TrackingError::KeyReused(FORGOTTEN.to_owned()));
    }
    let as_many = found.iter().filter_map(|group| group.added).all(|added| added == items);
    let same = wanted.iter().all(|group| found.iter().any(|other| other.id == group.id && other.size == group.upto));
    if as_many && same { Ok(()) } else { Err(TrackingError::KeyReused("`items` differs".to_owned())) }
}
