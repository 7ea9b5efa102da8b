//! Records of dropped duplicates, which name the task that each duplicates. They are in the same table as the tasks'
//! and have ids of tasks, but nobody ever claims them.

use std::collections::{HashMap, HashSet};

use super::{CREATED, DUPLICATE, Tasks};
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, number, text, time};
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
        /// Whether no batch has claimed it yet.
        waits: bool,
    },
    /// It was dropped as a duplicate of this task.
    Duplicate(TaskId),
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
    /// one that its policy would place it in now.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn stored(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Stored>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "lane", "status", "of"], true).await?;
        let readers = items.iter().map(|item| Reader::new("tasks", "id", item));
        let stored = |reader: Reader<'_>| {
            let stored = match reader.text("status")? {
                DUPLICATE => Stored::Duplicate(reader.parsed("of")?),
                status => Stored::Task { lane: reader.parsed("lane")?, waits: status == CREATED },
            };
            Ok((reader.parsed("id")?, stored))
        };
        readers.map(stored).collect()
    }
}
