//! Registering tasks: their lanes are computed, they are stored, and the lanes are woken.

mod bundles;
mod check;
mod compiled;
mod each;
mod items;
mod once;
mod opened;
mod owners;
mod stream;
mod wake;

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU16;

use crate::aws::{Queue, QueueError, StoreError};
use crate::clock::World;
use crate::config::{ConfigError, Surroundings, variables};
use crate::grouping::{BatchSize, Load};
use crate::ids::{ItemId, TaskId};
use crate::lane::Lane;
use crate::messages::{ElectMessage, GroupMessage, TaskRequest};
use crate::metrics::TASKS_DUPLICATE;
use crate::policy::HeadStart;
use crate::store::locks::Locks;
use crate::store::policies::Policies;
use crate::store::tasks::{Duplicate, Key, NewTask, Stored, Tasks, Waits};
use crate::tracking::{Acks, GroupsRead, Tracking, TrackingError, collect_duplicates};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;

use self::bundles::bundle;
pub use self::check::{TaskFault, check_count};
use self::compiled::CompiledPolicies;
pub use self::compiled::PoliciesOfKinds;
pub use self::once::request_id;
use self::owners::Owners;
pub use self::stream::Streamed;

/// Stores tasks and wakes their lanes.
#[derive(Debug)]
pub struct Registrar {
    tasks: Tasks,
    policies: CompiledPolicies,
    tracking: Tracking,
    locks: Locks,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    world: World,
}

/// The result for one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Registered {
    /// Its id.
    pub id: TaskId,
    /// Whether it was stored.
    #[serde(flatten)]
    pub outcome: Registration,
}

/// The result of registering a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Registration {
    /// It was stored.
    Registered,
    /// A task with this id is stored already, or it is an item that was done long ago.
    Known,
    /// It is a duplicate: another task has its key. If it is an item of a fan-out, the item was acked.
    Duplicate {
        /// The task that has the key.
        of: TaskId,
    },
}

/// Tasks could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Some cannot be accepted; none was stored.
    #[error("{} of the tasks cannot be accepted, the first: {}", .0.len(), .0.first().map(ToString::to_string).unwrap_or_default())]
    Refused(Vec<TaskFault>),
    /// The idempotency key was used for another request; nothing was stored.
    #[error("the idempotency key was used before with other values: {}", differs(*.first, *.tasks))]
    KeyReused {
        /// Tasks of this request.
        tasks: u64,
        /// Tasks of the first request under the key.
        first: u64,
    },
    /// A table could not be read or written. Some tasks may have been stored; repeating the request is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A lane could not be woken. Repeating the request is safe.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The item of a duplicate could not be acked. Repeating the request is safe.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
}

/// Tasks that were checked, to be registered.
#[derive(Debug)]
pub struct CheckedTasks(Vec<Assigned>);

/// A task that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    pub(crate) id: TaskId,
    pub(crate) lane: Lane,
    pub(crate) key: Option<Key>,
    pub(crate) content: String,
    /// What it takes of a batch, and the size of its kind's batches.
    pub(crate) load: Load,
    pub(crate) size: BatchSize,
    /// By how much earlier it counts in the order of its lane.
    pub(crate) head_start: HeadStart,
    /// Whether a client knows its id, and may ask for the task.
    pub(crate) id_known: bool,
}

impl CheckedTasks {
    /// The same tasks for batches of no more than so many members.
    #[must_use]
    pub fn at_most(mut self, members: Option<NonZeroU16>) -> Self {
        self.0.iter_mut().for_each(|task| task.load.at_most = members);
        self
    }
}

impl Registrar {
    /// In the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            policies: CompiledPolicies::new(Policies::from_environment(surroundings)?),
            tracking: Tracking::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            world: surroundings.world.clone(),
        })
    }

    /// The policies of these kinds, compiled.
    ///
    /// # Errors
    /// One cannot be read.
    pub async fn policies(&self, kinds: &BTreeSet<&str>) -> Result<PoliciesOfKinds, StoreError> {
        self.policies.of_kinds(kinds).await
    }

    /// An id for a request that brought none. Repeating such a request registers its tasks again.
    #[must_use]
    pub fn new_request_id(&self) -> String {
        self.world.uuid().to_string()
    }

    /// Registers tasks, however many. All are checked before the first is stored. A worker that dies meanwhile leaves some of
    /// them stored, each of which is handled; repeating the request completes it. Tasks without an id get one that follows from
    /// `request_id` and position, so that no repetition stores one twice.
    ///
    /// # Errors
    /// A task cannot be accepted, or tables or queues cannot be reached.
    pub async fn register(&self, tasks: Vec<TaskRequest>, request_id: &str) -> Result<Vec<Registered>, RegisterError> {
        self.register_checked(self.check(tasks, request_id).await?).await
    }

    /// The first half of [`Self::register`]: checks all but whether the items exist that tasks are. Writes nothing.
    ///
    /// # Errors
    /// A task cannot be accepted, or policies cannot be read.
    pub async fn check(&self, tasks: Vec<TaskRequest>, request_id: &str) -> Result<CheckedTasks, RegisterError> {
        self.assign(tasks, request_id, true).await.map(CheckedTasks)
    }

    /// The second half: stores them.
    ///
    /// # Errors
    /// The item of a task does not exist, or tables or queues cannot be reached.
    pub async fn register_checked(&self, tasks: CheckedTasks) -> Result<Vec<Registered>, RegisterError> {
        let CheckedTasks(assigned) = tasks;
        let groups = self.check_items(&assigned).await?;
        self.store(&assigned, &groups).await
    }

    /// Stores tasks that were checked: keys first, so that a key's owner is decided before its task exists. Then the bundles,
    /// so that `sweep` finds a task whose worker died right after it was stored. `groups`: those of the items that tasks are.
    pub(crate) fn store<'a>(
        &'a self,
        assigned: &'a [Assigned],
        groups: &'a GroupsRead,
    ) -> BoxFuture<'a, Result<Vec<Registered>, RegisterError>> {
        self.store_all(assigned, groups).boxed()
    }

    async fn store_all(&self, assigned: &[Assigned], groups: &GroupsRead) -> Result<Vec<Registered>, RegisterError> {
        let items = items::items(assigned);
        self.tracking.mark(groups, &items).await?;
        // These had their turn, even if their records are gone by now: they are not stored, and take no keys.
        let over = self.tracking.done_long_ago(groups, &items).await?;
        let over: HashSet<TaskId> = over.into_iter().map(TaskId::Item).collect();
        let owners = self.owners(assigned, &over).await?;
        let mut tasks = to_store(assigned, &owners, &over);
        let sizes = assigned.iter().map(|task| (task.lane.kind.as_str(), task.size)).collect();
        let bundles = bundle(&mut tasks, &sizes, &self.world);
        self.tasks.begin_bundles(&bundles).await?;
        let known = self.tasks.insert(&tasks).await?;
        let mut awake = self.open(&bundles, &tasks, &known).await?;
        owners.freed.iter().for_each(|(id, lane)| awake.add(lane, *id, Waits::Alone));
        let to_note = to_note(assigned, &owners);
        let noted = self.tasks.insert_duplicates(&to_note).await?;
        let before = known.iter().map(|at| tasks[*at].id).chain(noted.iter().map(|at| to_note[*at].id));
        let before = self.tasks.stored(&before.chain(over).collect::<Vec<_>>()).await?;
        let new: HashSet<TaskId> =
            tasks.iter().enumerate().filter(|(at, _)| !known.contains(at)).map(|(_, task)| task.id).collect();
        let mut duplicates = Vec::new();
        let mut registered = Vec::with_capacity(assigned.len());
        for (task, owner) in assigned.iter().zip(&owners.of) {
            let id = task.id;
            let outcome = match before.get(&id) {
                // The hint of the delivery that stored it may never have been sent. Once a batch has it, it needs none.
                Some(Stored::Task { lane, waits }) => {
                    waits.iter().for_each(|waits| awake.add(lane, id, *waits));
                    Registration::Known
                }
                Some(Stored::Duplicate(of)) => Registration::Duplicate { of: *of },
                None if *owner != id => Registration::Duplicate { of: *owner },
                None if new.contains(&id) => Registration::Registered,
                None => Registration::Known,
            };
            if matches!(outcome, Registration::Duplicate { .. }) {
                duplicates.push(id);
            }
            registered.push(Registered { id, outcome });
        }
        metrics::counter!(TASKS_DUPLICATE).increment(duplicates.len() as u64);
        // That a task flushes is stored with it. The hint only makes a leader look that lingers already.
        let flushing = tasks.iter().filter(|task| task.load.flushes).map(|task| task.lane.clone()).collect();
        self.wake(awake, &flushing).await?;
        self.ack_duplicates(&duplicates).await?;
        Ok(registered)
    }

    /// Acks the items of duplicates here and now: no record would show `sweep` an ack that got lost.
    async fn ack_duplicates(&self, duplicates: &[TaskId]) -> Result<(), RegisterError> {
        let items: Vec<ItemId> = duplicates.iter().filter_map(TaskId::item).collect();
        if items.is_empty() {
            return Ok(());
        }
        let mut acks = Acks::new();
        collect_duplicates(&mut acks, items);
        for refusal in self.tracking.ack(&acks).await?.values() {
            tracing::warn!(refusal = %refusal.problem, "the item of a duplicate was not acked");
        }
        Ok(())
    }
}

/// How two requests under one idempotency key differ.
fn differs(first: u64, tasks: u64) -> String {
    if first == tasks {
        "a task of `tasks` differs".to_owned()
    } else {
        format!("`tasks` had {first} tasks, now {tasks}")
    }
}

/// The tasks to store: every owner of a key as it is itself, if it is in the request. Otherwise its first duplicate stands in
/// for it under its id, if it is not stored: the owner's request may have died between key and task.
fn to_store(assigned: &[Assigned], owners: &Owners, over: &HashSet<TaskId>) -> Vec<NewTask> {
    let all = || assigned.iter().zip(&owners.of).filter(|(task, _)| !over.contains(&task.id));
    let themselves = all().filter(|(task, owner)| task.id == **owner);
    let others = all().filter(|(task, owner)| task.id != **owner && !owners.stored.contains(*owner));
    let mut seen = HashSet::with_capacity(assigned.len());
    let new = |(task, owner): (&Assigned, &TaskId)| NewTask {
        id: *owner,
        lane: task.lane.clone(),
        content: task.content.clone(),
        key: task.key.clone(),
        load: task.load,
        head_start: task.head_start,
        bundle: None,
    };
    themselves.chain(others).filter(|(_, owner)| seen.insert(**owner)).map(new).collect()
}

/// The duplicates whose ids a client knows, and may ask for.
fn to_note(assigned: &[Assigned], owners: &Owners) -> Vec<Duplicate> {
    let known = assigned.iter().zip(&owners.of).filter(|(task, owner)| task.id_known && task.id != **owner);
    known.map(|(task, owner)| Duplicate { id: task.id, lane: task.lane.clone(), of: *owner }).collect()
}
