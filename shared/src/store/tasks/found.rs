//! What waits in a lane, as its next leader finds it.

use std::collections::{BTreeMap, HashMap};

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

/// How a leader looks for what waits in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// It looks for no more than so many tasks.
    pub enough: usize,
    /// A named record may have been overtaken: index and named records are all read, and what is found comes in the lane's order.
    pub by_rank: bool,
    /// Whether their number matters: then tasks on their own that the index shows are read, as batches may have claimed them.
    pub counts: bool,
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
    /// Named records that were not looked at, since enough was found before.
    pub unread: Waiting,
}

impl Found {
    /// How many tasks wait.
    fn waiting(&self) -> usize {
        self.records.iter().map(WaitingRecord::waiting).sum()
    }
}

impl Tasks {
    /// Finds what waits in a lane: if the named records are fewer tasks than enough, records that the index shows, and then the
    /// named ones, which it may not show yet, until enough is found. Bundles are read strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn find(&self, lane: &Lane, named: &Waiting, search: Search) -> Result<Found, StoreError> {
        let Search { enough, by_rank, .. } = search;
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
            self.look(lane, &records, search, &mut found).await?;
            start = next;
            if start.is_none() || found.waiting() >= enough {
                break;
            }
        }
        let beside: Vec<PendingRecord> = records_of(named).filter(|record| !seen.contains_key(record)).collect();
        let enough = if by_rank { usize::MAX } else { enough };
        let unread = self.look(lane, &beside, Search { enough, counts: false, ..search }, &mut found).await?;
        found.unread = those(named, unread);
        if by_rank {
            self.order(lane, &mut found.records, seen).await?;
        }
        Ok(found)
    }

    /// The named records that wait in a lane, strongly consistent, until they are enough tasks: the others are not looked at, and
    /// follow as they are named.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn enough_of(&self, named: &Waiting, lane: &Lane, enough: usize) -> Result<Waiting, StoreError> {
        let (records, mut found): (Vec<PendingRecord>, _) = (records_of(named).collect(), Found::default());
        let search = Search { enough, by_rank: false, counts: true };
        let unread = self.look(lane, &records, search, &mut found).await?;
        let (mut tasks, mut bundles) = (Vec::new(), BTreeMap::new());
        for record in found.records {
            match record {
                WaitingRecord::Task(id) => tasks.push(id),
                WaitingRecord::Bundle(bundle) => drop(bundles.insert(bundle.id, bundle.waiting())),
            }
        }
        Ok(Waiting { bundles, ..Waiting::alone(tasks) }.union(&those(named, unread)))
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

    /// Adds records until there are enough tasks. Returns those that were not looked at.
    async fn look<'a>(
        &self,
        lane: &Lane,
        records: &'a [PendingRecord],
        search: Search,
        found: &mut Found,
    ) -> Result<&'a [PendingRecord], StoreError> {
        let mut rest = records;
        while let missing = search.enough.saturating_sub(found.waiting())
            && missing > 0
            && !rest.is_empty()
        {
            // Each task that is read is charged for.
            let most = if search.counts { missing } else { usize::MAX };
            let (records, others) = rest.split_at(read_at_once(rest).min(most));
            rest = others;
            let alone = Waiting::alone(records.iter().filter_map(PendingRecord::task));
            let alone = if search.counts { self.waiting(&alone, lane).await? } else { alone }.tasks;
            let ids: Vec<Uuid> = records.iter().filter_map(PendingRecord::bundle).collect();
            let mut bundles = self.bundles(&ids, true).await?;
            for record in records {
                match record {
                    PendingRecord::Task(id) if alone.slot(id).is_none() => {}
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
        Ok(rest)
    }
}

/// The named records: tasks on their own, then bundles.
fn records_of(named: &Waiting) -> impl Iterator<Item = PendingRecord> {
    let tasks = named.tasks.ids().iter().copied().map(PendingRecord::Task);
    tasks.chain(named.bundles.keys().copied().map(PendingRecord::Bundle))
}

/// These of the named records.
fn those(named: &Waiting, records: &[PendingRecord]) -> Waiting {
    let bundle = |id: Uuid| Some((id, *named.bundles.get(&id)?));
    let bundles = records.iter().filter_map(PendingRecord::bundle).filter_map(bundle).collect();
    Waiting { bundles, ..Waiting::alone(records.iter().filter_map(PendingRecord::task)) }
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
