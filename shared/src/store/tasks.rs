//! Tasks: what was registered, and which batch has claimed it.

mod duplicates;
mod keys;
mod requests;

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::aws::attributes::{Reader, number, text, time};
use crate::aws::{Item, Part, Segment, StoreError, Table};
use crate::clock::Timestamp;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::RETENTION;
use crate::metrics::TASKS_REGISTERED;

pub use self::duplicates::{Duplicate, Stored};
pub use self::keys::{Holding, Key, KeyClaim, Takeover};
pub use self::requests::RequestNote;

/// Status of a task that no batch has claimed.
const CREATED: &str = "created";
/// Status of a task that a batch has claimed; what happens then is in the batch's record.
const BATCHED: &str = "batched";
/// Status of a task that was dropped, because another one has its key.
pub const DUPLICATE: &str = "duplicate";

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
}

/// A stored task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// Its lane.
    pub lane: Lane,
    /// The batch that claimed it.
    pub batch: Option<Uuid>,
    /// Its content, JSON; none, if it was dropped.
    pub content: Option<String>,
    /// The task that it was dropped as a duplicate of.
    pub duplicate_of: Option<TaskId>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// How the claim of one task went.
enum Claim {
    Mine,
    Lost,
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

    /// Stores tasks; what is stored under an id already stays as it is. Returns the positions of those.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn insert(&self, tasks: &[NewTask]) -> Result<HashSet<usize>, StoreError> {
        let now = self.table.world.now();
        let mut known = HashSet::new();
        let (keyed, plain): (Vec<usize>, Vec<usize>) = (0..tasks.len()).partition(|at| tasks[*at].key.is_some());
        const ATTRIBUTES: [&str; 7] = ["id", "lane", "status", "content", "created_at", "pending", "key"];
        for (positions, attributes) in [(keyed, &ATTRIBUTES[..]), (plain, &ATTRIBUTES[..6])] {
            let values = |task: &NewTask| {
                let lane = text(&task.lane);
                let values = [text(task.id), lane.clone(), text(CREATED), text(&task.content), time(now), lane];
                values.into_iter().chain(task.key.as_ref().map(|key| text(key.record_id()))).collect()
            };
            let rows = positions.iter().map(|at| values(&tasks[*at])).collect();
            // Counted as they are stored: a request may bring thousands.
            let stored = |tasks| metrics::counter!(TASKS_REGISTERED).increment(tasks);
            let refused = self.table.inserts("storing tasks", attributes).execute_counting(rows, stored).await?;
            known.extend(refused.into_iter().map(|(at, _)| positions[at]));
        }
        Ok(known)
    }

    /// Claims tasks of a lane for a batch. Returns those that are the batch's now, whether claimed here or before. A task that
    /// is named for a lane it is not in stays as it is.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn claim(&self, ids: &[TaskId], lane: &Lane, batch: Uuid) -> Result<Vec<TaskId>, StoreError> {
        let ttl = self.table.world.now().plus(RETENTION).seconds();
        let claims = self.table.updates(
            "claiming tasks",
            "SET \"status\" = ? SET \"batch\" = ? SET \"ttl\" = ? REMOVE \"pending\" \
             WHERE \"id\" = ? AND \"status\" = ? AND \"lane\" = ?",
        );
        let claim = |id| vec![text(BATCHED), text(batch), number(ttl), text(id), text(CREATED), text(lane)];
        let refused = claims.execute(ids.iter().map(claim).collect()).await?;
        let mut lost = HashSet::new();
        for (at, item) in refused {
            if matches!(claimed_by(batch, item.as_ref())?, Claim::Lost) {
                lost.insert(at);
            }
        }
        Ok(ids.iter().enumerate().filter(|(at, _)| !lost.contains(at)).map(|(_, id)| *id).collect())
    }

    /// Those of `ids` that wait in a lane: no batch has claimed them yet. Strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn unclaimed(&self, ids: &[TaskId], lane: &Lane) -> Result<Vec<TaskId>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "status", "lane"], true).await?;
        let lane = lane.to_string();
        let mut unclaimed = Vec::new();
        for item in &items {
            let reader = Reader::new("tasks", "id", item);
            if reader.text("status")? == CREATED && reader.text("lane")? == lane {
                unclaimed.push(reader.parsed("id")?);
            }
        }
        unclaimed.sort_unstable();
        Ok(unclaimed)
    }

    /// Those of `ids` that some batch has claimed. Not strongly consistent: one claimed just now may be missing.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn claimed(&self, ids: &[TaskId]) -> Result<HashSet<TaskId>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "status"], false).await?;
        let readers = items.iter().map(|item| Reader::new("tasks", "id", item));
        let mut claimed = HashSet::new();
        for reader in readers {
            if reader.text("status")? != CREATED {
                claimed.insert(reader.parsed("id")?);
            }
        }
        Ok(claimed)
    }

    /// The lane's unclaimed tasks, oldest first, at most `limit`, as the index shows them: it may lag behind.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn pending(&self, lane: &Lane, limit: usize) -> Result<Vec<TaskId>, StoreError> {
        let items = self.table.query(Part { limit, ..Part::all("pending", lane) }).await?;
        items.iter().map(|item| Reader::new("tasks", "id", item).parsed("id")).collect()
    }

    /// Contents of tasks. Reads again, strongly consistent, what an eventually consistent read did not find; what is in
    /// neither is gone.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn contents(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, String>, StoreError> {
        let mut contents = HashMap::with_capacity(ids.len());
        for consistent in [false, true] {
            let keys: Vec<String> =
                ids.iter().filter(|id| !contents.contains_key(*id)).map(ToString::to_string).collect();
            for item in self.table.get_many("id", &keys, &["id", "content"], consistent).await? {
                let reader = Reader::new("tasks", "id", &item);
                if let Some(content) = reader.optional_text("content")? {
                    contents.insert(reader.parsed("id")?, content.to_owned());
                }
            }
        }
        Ok(contents)
    }

    /// One task.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let Some(item) = self.table.get("id", id.to_string(), true).await? else { return Ok(None) };
        let reader = Reader::new("tasks", "id", &item);
        Ok(Some(Task {
            id: reader.parsed("id")?,
            lane: reader.parsed("lane")?,
            batch: reader.optional_parsed("batch")?,
            content: reader.optional_text("content")?.map(str::to_owned),
            duplicate_of: reader.optional_parsed("of")?,
            created_at: Timestamp(reader.number("created_at")?),
        }))
    }

    /// One segment of the sparse index of unclaimed tasks, page by page: hands `visit` id, lane and age of each.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn scan_pending(
        &self,
        segment: i32,
        segments: i32,
        mut visit: impl FnMut(TaskId, Lane, Timestamp),
    ) -> Result<(), StoreError> {
        let visit = |item| {
            let reader = Reader::new("tasks", "id", &item);
            visit(reader.parsed("id")?, reader.parsed("pending")?, Timestamp(reader.number("created_at")?));
            Ok(())
        };
        self.table.scan(Some("pending"), Segment { number: segment, of: segments }, visit).await
    }
}

/// A refused claim is still the batch's own if an earlier delivery made it.
fn claimed_by(batch: Uuid, item: Option<&Item>) -> Result<Claim, StoreError> {
    let Some(item) = item else { return Ok(Claim::Lost) };
    let owner = Reader::new("tasks", "id", item).optional_text("batch")?;
    Ok(if owner == Some(batch.to_string().as_str()) { Claim::Mine } else { Claim::Lost })
}
