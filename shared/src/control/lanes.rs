//! The list of lanes: busy ones by their locks, and others by what waits in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{Control, Hold, Scope, Switchboard};
use crate::aws::StoreError;
use crate::clock::Timestamp;
use crate::grouping::Load;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{KEYS_PER_READ_MAX, STATEMENT_CALLS_AT_ONCE_MAX};
use crate::store::locks::Lock;
use crate::store::tasks::{PendingCursor, PendingRecord};

/// The state of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStanding {
    /// Its lock.
    pub lock: Lock,
    /// What waits in it.
    pub pending: PendingCount,
    /// The effect of its switches.
    pub hold: Hold,
    /// The scopes that pause it.
    pub paused_by: Vec<Scope>,
}

/// What waits in a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCount {
    /// Tasks.
    pub tasks: u64,
    /// The bytes that they take in calls.
    pub bytes: u64,
    /// Whether there are more records than the first ones, which were counted.
    pub more: bool,
    /// When the oldest of these was registered.
    pub oldest: Option<Timestamp>,
    /// The first record.
    pub first: Option<PendingRecord>,
}

/// Where a page of lanes ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneCursor {
    /// Among the busy lanes, after this one.
    Busy(Lane),
    /// After all busy lanes: among what waits.
    Waiting(Option<PendingCursor>),
    /// Among the partitions of a target, after this one.
    Partition(u32),
}

/// A page of lanes.
#[derive(Clone, Debug)]
pub struct LanesPage {
    /// The lanes.
    pub lanes: Vec<LaneStanding>,
    /// Where the next page begins, if there may be more.
    pub next: Option<LaneCursor>,
}

impl Control {
    /// A page of the lanes of a scope that are busy, or in which tasks wait. It looks at `most` lanes, or records of an index. A
    /// lane that changes while pages are read may be missing, or be listed twice.
    ///
    /// # Errors
    /// A table cannot be read, or a record is corrupt.
    pub async fn lanes(
        &self,
        scope: &Scope,
        only_paused: bool,
        after: Option<LaneCursor>,
        most: usize,
    ) -> Result<LanesPage, StoreError> {
        let (lanes, next, among) = match (scope, after) {
            (Scope::Lane(_) | Scope::Target { .. }, after) => {
                let first = match after {
                    Some(LaneCursor::Partition(last)) => last as usize + 1,
                    _ => 0,
                };
                let all = self.partitions(scope).await?;
                let lanes: Vec<Lane> = all.iter().skip(first).take(most).cloned().collect();
                let last = lanes.last().filter(|last| all.last() != Some(last)).map(|lane| lane.partition);
                (lanes, last.map(LaneCursor::Partition), Among::All)
            }
            (_, Some(LaneCursor::Waiting(after))) => {
                let page = self.tasks.pending(after.as_ref(), most).await?;
                let last = page.records.last().map(|(pending, lane)| PendingCursor::after(pending, lane));
                let next = last.filter(|_| page.more).map(|last| LaneCursor::Waiting(Some(last)));
                let mut seen: BTreeMap<Lane, Vec<PendingRecord>> = BTreeMap::new();
                for (pending, lane) in page.records {
                    seen.entry(lane).or_default().push(pending.record);
                }
                (seen.keys().cloned().collect(), next, Among::Waiting(seen))
            }
            (_, after) => {
                let after = match after {
                    Some(LaneCursor::Busy(lane)) => Some(lane),
                    _ => None,
                };
                let (lanes, more) = self.locks.active(after.as_ref(), most).await?;
                let last = lanes.last().filter(|_| more).cloned();
                (lanes, Some(last.map_or(LaneCursor::Waiting(None), LaneCursor::Busy)), Among::Busy)
            }
        };
        let lanes: Vec<Lane> = lanes.into_iter().filter(|lane| scope.covers(lane)).collect();
        let board = self.policies.switchboard().await?;
        let lanes = self.stand(lanes, &board, &among).await?;
        Ok(LanesPage { lanes: lanes.into_iter().filter(|lane| lane.hold.paused || !only_paused).collect(), next })
    }

    /// The state of these lanes, without those that another page shows.
    async fn stand(
        &self,
        lanes: Vec<Lane>,
        board: &Switchboard,
        among: &Among,
    ) -> Result<Vec<LaneStanding>, StoreError> {
        let mut locks: HashMap<Lane, Lock> =
            self.locks.get_many(&lanes, true).await?.into_iter().map(|lock| (lock.lane.clone(), lock)).collect();
        let stands = lanes.into_iter().map(|lane| {
            let lock = locks.remove(&lane).unwrap_or_else(|| Lock::free(lane));
            async move {
                let pending = self.count(&lock.lane).await?;
                let paused_by: BTreeSet<Scope> = board.pausing(&Scope::Lane(lock.lane.clone())).cloned().collect();
                let hold = board.hold(&lock.lane);
                let standing = LaneStanding { lock, pending, hold, paused_by: paused_by.into_iter().collect() };
                Ok::<_, StoreError>(Some(standing).filter(|standing| among.shows(standing)))
            }
        });
        let stands = stream::iter(stands.collect::<Vec<_>>()).buffered(STATEMENT_CALLS_AT_ONCE_MAX);
        Ok(stands.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
    }

    /// Counts what waits in a lane, in its first records.
    async fn count(&self, lane: &Lane) -> Result<PendingCount, StoreError> {
        let page = self.tasks.pending_in(lane, None, KEYS_PER_READ_MAX).await?;
        let first = page.records.first().map(|(pending, _)| *pending);
        let bundles: Vec<_> = page.records.iter().filter_map(|(pending, _)| pending.record.bundle()).collect();
        let alone = page.records.iter().filter_map(|(pending, _)| match pending.record {
            PendingRecord::Task(id) => Some(id),
            PendingRecord::Bundle(_) => None,
        });
        let alone: Vec<TaskId> = alone.collect();
        let mut loads: Vec<Load> = self.tasks.loads(&alone).await?.into_values().collect();
        for bundle in self.tasks.bundles(&bundles, false).await?.values() {
            loads.extend(bundle.free.iter().map(|slot| bundle.loads.get(slot)));
        }
        let bytes = loads.iter().map(|load| u64::from(load.bytes)).sum();
        Ok(PendingCount {
            tasks: loads.len() as u64,
            bytes,
            more: page.more,
            oldest: page.records.iter().map(|(pending, _)| pending.created_at()).min(),
            first: first.map(|first| first.record),
        })
    }
}

/// The lanes that a page is of.
enum Among {
    /// Lanes of a target, by name.
    All,
    /// Lanes that are busy by their locks.
    Busy,
    /// Lanes in which tasks wait, with the records of this page.
    Waiting(BTreeMap<Lane, Vec<PendingRecord>>),
}

impl Among {
    /// A lane that waits and is not busy is shown on the page that has its first record.
    fn shows(&self, lane: &LaneStanding) -> bool {
        match self {
            Self::All => !lane.lock.idle() || lane.pending.oldest.is_some() || lane.hold != Hold::default(),
            Self::Busy => true,
            Self::Waiting(seen) => {
                let of = seen.get(&lane.lock.lane);
                !lane.lock.active
                    && of.is_some_and(|seen| seen.iter().any(|record| Some(*record) == lane.pending.first))
            }
        }
    }
}
