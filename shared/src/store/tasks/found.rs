//! What waits in a lane, as its next leader finds it.

use std::collections::HashMap;

use uuid::Uuid;

use super::record::PENDING;
use super::{Pending, PendingRecord, Tasks};
use crate::aws::{Section, StoreError};
use crate::clock::Timestamp;
use crate::grouping::{Bundle, BundleState, Rank};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{BUNDLES_PER_READ, KEYS_PER_READ_MAX};
use crate::waiting::Waiting;

/// A record that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingRecord {
    /// A task on its own. The index may lag behind: perhaps it is claimed.
    Task(TaskId),
    /// A bundle with tasks that wait.
    Bundle(Box<Bundle>),
}

impl WaitingRecord {
    /// How many tasks wait in it.
    #[must_use]
    pub fn waiting(&self) -> usize {
        match self {
            Self::Task(_) => 1,
            Self::Bundle(bundle) => usize::from(bundle.waiting()),
        }
    }
}

/// What waits in a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Records to claim from: first those of the index, in the order of the lane, then the other named ones. By rank: all of them in
    /// the order of the lane.
    pub records: Vec<WaitingRecord>,
    /// Bundles that the index shows and that may be stuck: they fill, or are dead.
    pub unfilled: Vec<Bundle>,
    /// When the last record came, of those that the index shows and the bundles.
    pub newest: Option<Timestamp>,
}

impl Found {
    /// How many tasks wait.
    fn waiting(&self) -> usize {
        self.records.iter().map(WaitingRecord::waiting).sum()
    }
}

impl Tasks {
    /// Finds what waits in a lane: the named records, which the index may not show yet, and, if these are fewer than `enough`
    /// tasks, records that the index shows. Bundles are read strongly consistent. `by_rank`: a named one may have been overtaken, so
    /// the index is read in any case, and all that is found comes in the order of the lane.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn find(&self, lane: &Lane, named: &Waiting, enough: usize, by_rank: bool) -> Result<Found, StoreError> {
        let mut found = Found::default();
        let mut seen = HashMap::new();
        let section = Section::all(PENDING, lane);
        let mut start = None;
        while by_rank || named.len() < enough {
            let (items, next) = self.table.page(&section, KEYS_PER_READ_MAX, start).await?;
            let records = items.iter().map(Pending::decode).collect::<Result<Vec<_>, _>>()?;
            found.newest = records.iter().map(Pending::created_at).max().max(found.newest);
            seen.extend(records.iter().map(|pending| (pending.record, pending.rank)));
            let records: Vec<PendingRecord> = records.into_iter().map(|pending| pending.record).collect();
            self.look(lane, &records, enough, &mut found).await?;
            start = next;
            if start.is_none() || found.waiting() >= enough {
                break;
            }
        }
        let tasks = named.tasks.ids().iter().copied().map(PendingRecord::Task);
        let bundles = named.bundles.keys().copied().map(PendingRecord::Bundle);
        let beside: Vec<PendingRecord> = tasks.chain(bundles).filter(|record| !seen.contains_key(record)).collect();
        self.look(lane, &beside, usize::MAX, &mut found).await?;
        if by_rank {
            self.order(lane, &mut found.records, seen).await?;
        }
        Ok(found)
    }

    /// Puts records in the order of their lane, without those that are found not to wait. `seen`: what the index showed of them.
    /// Of the others only so many are read as one request can: the index shows the rest before long.
    async fn order(
        &self,
        lane: &Lane,
        records: &mut Vec<WaitingRecord>,
        mut seen: HashMap<PendingRecord, Rank>,
    ) -> Result<(), StoreError> {
        let unseen = records.iter().filter_map(|record| match record {
            WaitingRecord::Task(id) => Some(*id).filter(|id| !seen.contains_key(&PendingRecord::Task(*id))),
            WaitingRecord::Bundle(_) => None,
        });
        let unseen: Vec<TaskId> = unseen.take(KEYS_PER_READ_MAX).collect();
        let ranks = self.ranks(&unseen, lane).await?;
        records.retain(|record| match record {
            WaitingRecord::Task(id) => ranks.get(id).is_none_or(Option::is_some),
            WaitingRecord::Bundle(_) => true,
        });
        seen.extend(ranks.into_iter().filter_map(|(id, rank)| Some((PendingRecord::Task(id), rank?))));
        records.sort_by_key(|record| {
            let rank = match record {
                WaitingRecord::Task(id) => seen.get(&PendingRecord::Task(*id)).copied(),
                WaitingRecord::Bundle(bundle) => Some(bundle.rank()),
            };
            (rank.is_none(), rank)
        });
        Ok(())
    }

    /// Adds records until there are enough tasks.
    async fn look(
        &self,
        lane: &Lane,
        records: &[PendingRecord],
        enough: usize,
        found: &mut Found,
    ) -> Result<(), StoreError> {
        let mut rest = records;
        while !rest.is_empty() && found.waiting() < enough {
            let (records, others) = rest.split_at(read_at_once(rest));
            rest = others;
            let ids: Vec<Uuid> = records.iter().filter_map(PendingRecord::bundle).collect();
            let mut bundles = self.bundles(&ids, true).await?;
            for record in records {
                match record {
                    PendingRecord::Task(id) => found.records.push(WaitingRecord::Task(*id)),
                    PendingRecord::Bundle(id) => match bundles.remove(id).filter(|bundle| bundle.lane == *lane) {
                        Some(bundle) if bundle.waiting() > 0 => {
                            found.newest = found.newest.max(Some(bundle.created_at));
                            found.records.push(WaitingRecord::Bundle(Box::new(bundle)))
                        }
                        Some(bundle) if matches!(bundle.state, BundleState::Filling | BundleState::Dead) => {
                            found.unfilled.push(bundle);
                        }
                        _ => {}
                    },
                }
            }
        }
        Ok(())
    }
}

/// How many of these records are looked at with one read: as many as one has bundles for, with the tasks between them.
fn read_at_once(records: &[PendingRecord]) -> usize {
    let mut bundles = 0;
    let fits = |record: &&PendingRecord| {
        bundles += usize::from(record.bundle().is_some());
        bundles <= BUNDLES_PER_READ
    };
    records.iter().take(KEYS_PER_READ_MAX).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_reads_are_enough_wherever_the_bundles_are() {
        let task = PendingRecord::Task(TaskId::Single(Uuid::nil()));
        let bundle = PendingRecord::Bundle(Uuid::nil());
        let reads = |records: &[PendingRecord]| {
            let (mut rest, mut reads) = (records, Vec::new());
            while !rest.is_empty() {
                reads.push(read_at_once(rest));
                rest = &rest[read_at_once(rest)..];
            }
            reads
        };
        assert_eq!(reads(&vec![bundle; 2 * BUNDLES_PER_READ + 1]), [BUNDLES_PER_READ, BUNDLES_PER_READ, 1]);
        assert_eq!(reads(&vec![task; KEYS_PER_READ_MAX + 1]), [KEYS_PER_READ_MAX, 1]);
        let turns = [task, bundle].repeat(2 * BUNDLES_PER_READ);
        assert_eq!(reads(&turns), [2 * BUNDLES_PER_READ + 1, 2 * BUNDLES_PER_READ - 1]);
    }
}
