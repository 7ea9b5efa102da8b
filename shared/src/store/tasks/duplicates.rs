//! Records of duplicates, each of which names the task that it duplicates. They are in the same table as the tasks and
//! have ids of tasks, but no batch claims them.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::Tasks;
use super::record::{Standing, State, TaskRecord};
use crate::aws::StoreError;
use crate::grouping::{BundleState, Load, Rank};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::RETENTION;
use crate::policy::HeadStart;

/// A duplicate: another task has its key.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Its id.
    pub id: TaskId,
    /// The lane that it would have been in.
    pub lane: Lane,
    /// The task that has the key.
    pub of: TaskId,
}

/// What is stored under a task's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The task.
    Task {
        /// The lane it is in.
        lane: Lane,
        /// How it waits; none, if a batch has claimed it, it was cancelled, or its bundle still fills.
        waits: Option<Waits>,
    },
    /// It is a duplicate of this task.
    Duplicate(TaskId),
}

impl Stored {
    /// The lane of a task that was freed just now.
    #[must_use]
    pub fn freed(&self) -> Option<&Lane> {
        match self {
            Self::Task { lane, waits: Some(Waits::Freed) } => Some(lane),
            Self::Task { .. } | Self::Duplicate(_) => None,
        }
    }
}

/// How a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// On its own.
    Alone,
    /// It waits on its own from now on: its bundle is dead, and no hint was sent to its lane.
    Freed,
    /// In a bundle, with the number of its tasks that wait.
    In(Uuid, u16),
}

impl Tasks {
    /// Notes that tasks are duplicates; a record that exists under their ids stays as it is. Returns the positions of those.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn insert_duplicates(&self, duplicates: &[Duplicate]) -> Result<HashSet<usize>, StoreError> {
        let now = self.table.world.now();
        let (ttl, rank) = (Some(self.table.expires(RETENTION).seconds()), Rank::new(now, HeadStart::NONE));
        let item = |task: &Duplicate| {
            let standing = Standing { id: task.id, lane: task.lane.clone(), state: State::Duplicate(task.of), ttl };
            TaskRecord { standing, content: None, key: None, load: Load::default(), rank }.encode()
        };
        let items = duplicates.iter().map(item).collect();
        let refused = self.table.insert_each("storing duplicates", items, |_| {}).await?;
        Ok(refused.into_iter().map(|(at, _)| at).collect())
    }

    /// What is stored under ids of tasks, strongly consistent; unknown ones are left out. A task's lane may differ from the one
    /// that its policy would give it now. A task of a dead bundle is freed first, since no other worker may know of it.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn stored(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Stored>, StoreError> {
        let standings = self.standings(ids, true).await?;
        let named: Vec<Uuid> = standings.iter().filter_map(|task| task.state.bundle()).collect();
        let bundles = self.bundles(&named, true).await?;
        let dead = |task: &Standing| {
            let bundle = task.state.bundle().and_then(|bundle| bundles.get(&bundle));
            bundle.is_some_and(|bundle| bundle.state == BundleState::Dead)
        };
        self.free(standings.iter().filter(|task| dead(task)).cloned().collect()).await?;
        let stored = |task: Standing| {
            let waits = match task.state {
                State::Duplicate(of) => return (task.id, Stored::Duplicate(of)),
                State::Created => Some(Waits::Alone),
                State::Batched(_) | State::Cancelled => None,
                State::Bundled(_) if dead(&task) => Some(Waits::Freed),
                State::Bundled(bundle) => bundles.get(&bundle).and_then(|bundle| {
                    let waits = bundle.waits(bundle.members.slot(&task.id)?);
                    waits.then(|| Waits::In(bundle.id, bundle.waiting()))
                }),
            };
            (task.id, Stored::Task { lane: task.lane, waits })
        };
        Ok(standings.into_iter().map(stored).collect())
    }
}
