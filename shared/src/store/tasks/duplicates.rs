//! Records of dropped duplicates, which name the task that each duplicates. They are in the same table as the tasks'
//! and have ids of tasks, but nobody ever claims them.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{CREATED, DUPLICATE, Tasks, bundle_of};
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, number, text, time};
use crate::grouping::BundleState;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::RETENTION;

/// A task that is dropped, because another one has its key.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Its id.
    pub id: TaskId,
    /// The lane it would have been in.
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
        /// How it waits; none, if a batch has claimed it, or its bundle still fills.
        waits: Option<Waits>,
    },
    /// It was dropped as a duplicate of this task.
    Duplicate(TaskId),
}

/// How a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// On its own.
    Alone,
    /// In a bundle, of which so many tasks wait.
    In(Uuid, u16),
}

impl Tasks {
    /// Notes that tasks are dropped; what is stored under their ids already stays as it is. Returns the positions of those.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn insert_duplicates(&self, duplicates: &[Duplicate]) -> Result<HashSet<usize>, StoreError> {
        let now = self.table.world.now();
        let ttl = number(now.plus(RETENTION).seconds());
        let row = |task: &Duplicate| {
            let (id, lane, of) = (text(task.id), text(&task.lane), text(task.of));
            vec![id, lane, text(DUPLICATE), of, time(now), ttl.clone()]
        };
        let inserts = self.table.inserts("storing duplicates", &["id", "lane", "status", "of", "created_at", "ttl"]);
        let refused = inserts.execute(duplicates.iter().map(row).collect()).await?;
        Ok(refused.into_iter().map(|(at, _)| at).collect())
    }

    /// What is stored under ids of tasks, strongly consistent; unknown ones are left out. The lane of a task need not be the
    /// one that its policy would place it in now. A task of a dead bundle is freed first: perhaps nobody else knows of it.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn stored(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Stored>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "lane", "status", "of", "bundle"], true).await?;
        let readers: Vec<Reader<'_>> = items.iter().map(|item| Reader::new("tasks", "id", item)).collect();
        let mut named = Vec::new();
        for reader in &readers {
            named.extend(bundle_of(reader)?);
        }
        let bundles = self.bundles(&named, true).await?;
        let mut stored = HashMap::with_capacity(readers.len());
        for reader in &readers {
            let id: TaskId = reader.parsed("id")?;
            let status = reader.text("status")?;
            if status == DUPLICATE {
                stored.insert(id, Stored::Duplicate(reader.parsed("of")?));
                continue;
            }
            let lane: Lane = reader.parsed("lane")?;
            let mut waits = (status == CREATED).then_some(Waits::Alone);
            if let Some(bundle) = bundle_of(reader)?.and_then(|bundle| bundles.get(&bundle)) {
                if bundle.state == BundleState::Dead {
                    self.free(bundle.id, &lane, &[id]).await?;
                    waits = Some(Waits::Alone);
                } else if bundle.members.slot(&id).is_some_and(|slot| bundle.waits(slot)) {
                    waits = Some(Waits::In(bundle.id, bundle.waiting()));
                }
            }
            stored.insert(id, Stored::Task { lane, waits });
        }
        Ok(stored)
    }
}
