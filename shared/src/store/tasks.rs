//! Tasks: what was registered, and which batch has claimed it. Beside them in the table: bundles, keys, and notes of requests.

mod bundles;
mod cancel;
mod duplicates;
mod found;
mod keys;
mod pending;
mod record;
mod requests;
mod status;
mod waiting;

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use self::record::{ID, OF_CONTENT, OF_LOADS, OF_RANK, OF_STANDING, SAME_LANE, Standing, State, TaskRecord};
use crate::aws::{StoreError, Table};
use crate::grouping::{Bundle, BundleState, Load, NO_BATCH, Rank};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{BUNDLED_RETENTION, RETENTION};
use crate::metrics::TASKS_REGISTERED;
use crate::policy::HeadStart;

pub use self::cancel::CancelNote;
pub use self::duplicates::{Duplicate, Stored, Waits};
pub use self::found::{Found, Search, WaitingRecord};
pub use self::keys::{Holding, Key, KeyRequest, Takeover, Within};
pub use self::pending::{Pending, PendingCursor, PendingPage, PendingRecord};
pub(crate) use self::record::{AT_MOST, FLUSHES};
pub use self::record::{Content, DUPLICATE, Task};
pub use self::requests::RequestNote;
pub use self::status::TaskStatus;
pub use self::waiting::Taken;

/// A task to be stored.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// Its lane.
    pub lane: Lane,
    /// Its content, JSON.
    pub content: String,
    /// Its key, if its policy has one: it is released when the task fails.
    pub key: Option<Key>,
    /// What it takes of a batch.
    pub load: Load,
    /// By how much earlier it counts in the order of its lane; that of its bundle, if it has one.
    pub head_start: HeadStart,
    /// The bundle it is stored for; none, if it waits on its own.
    pub bundle: Option<Uuid>,
}

/// The tasks.
#[derive(Clone, Debug)]
pub struct Tasks {
    table: Table,
}

impl Tasks {
    /// The tasks in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Stores tasks; a record that exists under an id stays as it is. Returns the positions of those, except where it was
    /// stored for the same bundle: only this caller knows the bundle, so the answer to its own write was lost.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn insert(&self, tasks: &[NewTask]) -> Result<HashSet<usize>, StoreError> {
        let items = tasks.iter().map(|task| self.record(task).encode()).collect();
        // Counted as they are stored: a request may bring thousands.
        let stored = |tasks| metrics::counter!(TASKS_REGISTERED).increment(tasks);
        let refused = self.table.insert_each("storing tasks", items, stored).await?;
        let mut known: HashSet<usize> = refused.into_iter().map(|(at, _)| at).collect();
        let bundled: BTreeMap<TaskId, usize> =
            known.iter().filter(|at| tasks[**at].bundle.is_some()).map(|at| (tasks[*at].id, *at)).collect();
        let ids: Vec<TaskId> = bundled.keys().copied().collect();
        for stands in self.standings(&ids, true).await? {
            if let Some(at) = bundled.get(&stands.id)
                && stands.state.bundle() == tasks[*at].bundle
            {
                known.remove(at);
            }
        }
        Ok(known)
    }

    fn record(&self, task: &NewTask) -> TaskRecord {
        let now = self.table.world.now();
        let (state, ttl) = match task.bundle {
            Some(bundle) => (State::Bundled(bundle), Some(self.table.expires(BUNDLED_RETENTION).seconds())),
            None => (State::Created, None),
        };
        TaskRecord {
            standing: Standing { id: task.id, lane: task.lane.clone(), state, ttl },
            content: Some(task.content.clone()),
            key: task.key.as_ref().map(Key::record_id),
            load: task.load,
            rank: Rank::new(now, task.head_start),
        }
    }

    /// What is stored under ids of tasks; unknown ones are left out.
    async fn standings(&self, ids: &[TaskId], consistent: bool) -> Result<Vec<Standing>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many(ID, &keys, &OF_STANDING, consistent).await?.iter().map(Standing::decode).collect()
    }

    /// Claims tasks of a lane for a batch. Returns those that the batch has now, whether claimed here or before. A task in
    /// another lane than named stays as it is.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn claim(&self, ids: &[TaskId], lane: &Lane, batch: Uuid) -> Result<Vec<TaskId>, StoreError> {
        let until = self.table.expires(RETENTION).seconds();
        let claim = |id: &TaskId| {
            let before = Standing { id: *id, lane: lane.clone(), state: State::Created, ttl: None };
            let after = Standing { state: State::Batched(batch), ttl: Some(until), ..before.clone() };
            (before.encode(), after.encode())
        };
        let refused = self.table.change_each("claiming tasks", &SAME_LANE, ids.iter().map(claim).collect()).await?;
        let mut lost = HashSet::new();
        for (at, item) in refused {
            // A refused claim is still the batch's own if an earlier delivery made it.
            let stands = item.as_ref().map(Standing::decode).transpose()?;
            if stands.is_none_or(|task| task.state != State::Batched(batch)) {
                lost.insert(at);
            }
        }
        Ok(ids.iter().enumerate().filter(|(at, _)| !lost.contains(at)).map(|(_, id)| *id).collect())
    }

    /// Contents of tasks. Tasks that an eventually consistent read does not find are read again, strongly consistent; those
    /// still not found are gone.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn contents(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Content>, StoreError> {
        let mut contents = HashMap::with_capacity(ids.len());
        for consistent in [false, true] {
            let keys: Vec<String> =
                ids.iter().filter(|id| !contents.contains_key(*id)).map(ToString::to_string).collect();
            for item in self.table.get_many(ID, &keys, &OF_CONTENT, consistent).await? {
                contents.extend(Content::decode(&item)?);
            }
        }
        Ok(contents)
    }

    /// What tasks on their own take of a batch. A task whose record is gone counts as a small one. That one flushes may be out of
    /// date once it is claimed.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn loads(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Load>, StoreError> {
        let mut loads = HashMap::with_capacity(ids.len());
        // They never change, but a new one may be missing in an eventually consistent read.
        for consistent in [false, true] {
            let keys: Vec<String> = ids.iter().filter(|id| !loads.contains_key(*id)).map(ToString::to_string).collect();
            for item in self.table.get_many(ID, &keys, &OF_LOADS, consistent).await? {
                loads.extend([record::decode_load(&item)?]);
            }
        }
        Ok(loads)
    }

    /// The places of tasks in the order of their lane, strongly consistent; none for those that do not wait there on their own.
    /// Unknown ones are left out.
    pub(super) async fn ranks(&self, ids: &[TaskId], lane: &Lane) -> Result<HashMap<TaskId, Option<Rank>>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table
            .get_many(ID, &keys, &OF_RANK, true)
            .await?
            .iter()
            .map(|item| record::decode_ranked(item, lane))
            .collect()
    }

    /// Whether anything is stored under a task's id: the task, or that it is a duplicate.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn is_stored(&self, id: &TaskId) -> Result<bool, StoreError> {
        Ok(self.table.get(ID, id.to_string(), true).await?.is_some())
    }

    /// The batches that claimed tasks, strongly consistent. Tasks without one, and unknown ones, are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn batches_of(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Uuid>, StoreError> {
        let standings = self.standings(ids, true).await?;
        self.claimants(standings).await
    }

    /// The batches that claimed tasks, by their records as they were just read.
    async fn claimants(&self, standings: Vec<Standing>) -> Result<HashMap<TaskId, Uuid>, StoreError> {
        let (mut claimed, mut bundled) = (HashMap::with_capacity(standings.len()), Vec::new());
        for Standing { id, state, .. } in standings {
            match state {
                State::Batched(batch) => drop(claimed.insert(id, batch)),
                State::Bundled(bundle) => bundled.push((id, bundle)),
                State::Created | State::Cancelled | State::Duplicate(_) => {}
            }
        }
        let bundles: Vec<Uuid> = bundled.iter().map(|(_, bundle)| *bundle).collect();
        let bundles = self.bundles(&bundles, true).await?;
        let holder = |(id, bundle): (TaskId, Uuid)| {
            let bundle = bundles.get(&bundle)?;
            let holder = bundle.claims.holder(bundle.members.slot(&id)?)?;
            (holder != NO_BATCH).then_some((id, holder))
        };
        claimed.extend(bundled.into_iter().filter_map(holder));
        Ok(claimed)
    }

    /// One task.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let Some(item) = self.table.get(ID, id.to_string(), true).await? else { return Ok(None) };
        let record = TaskRecord::decode(&item)?;
        let bundles = match record.standing.state.bundle() {
            Some(bundle) => self.bundles(&[bundle], true).await?,
            None => BTreeMap::new(),
        };
        Ok(Some(shown(record, &bundles)))
    }

    /// Several tasks, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Task>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let records = self.table.get_many(ID, &keys, &[], true).await?;
        let records: Vec<TaskRecord> = records.iter().map(TaskRecord::decode).collect::<Result<_, _>>()?;
        let named: Vec<Uuid> = records.iter().filter_map(|record| record.standing.state.bundle()).collect();
        let bundles = if named.is_empty() { BTreeMap::new() } else { self.bundles(&named, true).await? };
        Ok(records.into_iter().map(|record| (record.standing.id, shown(record, &bundles))).collect())
    }
}

/// A task by its record and its bundle.
fn shown(record: TaskRecord, bundles: &BTreeMap<Uuid, Bundle>) -> Task {
    let TaskRecord { standing, content, rank, .. } = record;
    let task = Task {
        id: standing.id,
        lane: standing.lane,
        batch: None,
        content,
        duplicate_of: None,
        cancelled: false,
        fills: false,
        created_at: rank.created_at,
    };
    match standing.state {
        State::Created => task,
        State::Cancelled => Task { cancelled: true, ..task },
        State::Batched(batch) => Task { batch: Some(batch), ..task },
        State::Duplicate(of) => Task { duplicate_of: Some(of), ..task },
        State::Bundled(bundle) => match bundles.get(&bundle) {
            Some(bundle) => of_bundle(task, bundle),
            None => task,
        },
    }
}

/// A task that was stored for a bundle.
fn of_bundle(task: Task, bundle: &Bundle) -> Task {
    let holder = bundle.members.slot(&task.id).and_then(|slot| bundle.claims.holder(slot));
    Task {
        batch: holder.filter(|batch| *batch != NO_BATCH),
        cancelled: holder == Some(NO_BATCH),
        fills: bundle.state == BundleState::Filling,
        ..task
    }
}
