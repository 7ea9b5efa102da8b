//! Tasks: what was registered, and which batch has claimed it.

mod bundles;
mod duplicates;
mod found;
mod keys;
mod requests;

use std::collections::{BTreeMap, HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Item, Segment, StoreError, Table};
use crate::clock::Timestamp;
use crate::grouping::{Bundle, BundleState};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{BUNDLED_RETENTION, RETENTION};
use crate::members::Members;
use crate::metrics::TASKS_REGISTERED;
use crate::waiting::Waiting;

pub use self::bundles::NewBundle;
pub use self::duplicates::{Duplicate, Stored, Waits};
pub use self::found::{Found, Source};
pub use self::keys::{Holding, Key, KeyClaim, Takeover};
pub use self::requests::RequestNote;

/// Status of a task that no batch has claimed.
const CREATED: &str = "created";
/// Status of a task of a bundle: which batch has claimed it is in the bundle's record.
const BUNDLED: &str = "bundled";
/// Status of a task on its own that a batch has claimed; what happens then is in the batch's record.
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
    /// The bundle it is stored for; none, if it waits on its own.
    pub bundle: Option<Uuid>,
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

/// What a batch API is to get of a task, and since when it has waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// JSON.
    pub json: String,
    /// When the task was registered.
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

    /// Stores tasks; what is stored under an id already stays as it is. Returns the positions of those, unless it was stored for
    /// the same bundle, which only the caller knows: then the answer of its own write was lost.
    ///
    /// # Errors
    /// The table cannot be written, or a record is corrupt.
    pub async fn insert(&self, tasks: &[NewTask]) -> Result<HashSet<usize>, StoreError> {
        let mut known = HashSet::new();
        for (bundled, keyed) in [(true, true), (true, false), (false, true), (false, false)] {
            let of = |at: &usize| tasks[*at].bundle.is_some() == bundled && tasks[*at].key.is_some() == keyed;
            let positions: Vec<usize> = (0..tasks.len()).filter(of).collect();
            let mut attributes = vec!["id", "lane", "status", "content", "created_at"];
            attributes.extend_from_slice(if bundled { &["bundle", "ttl"] } else { &["pending"] });
            attributes.extend(keyed.then_some("key"));
            let rows = positions.iter().map(|at| self.values(&tasks[*at])).collect();
            // Counted as they are stored: a request may bring thousands.
            let stored = |tasks| metrics::counter!(TASKS_REGISTERED).increment(tasks);
            let refused = self.table.inserts("storing tasks", &attributes).execute_counting(rows, stored).await?;
            known.extend(refused.into_iter().map(|(at, _)| positions[at]));
        }
        let own = self.own(tasks, &known).await?;
        known.retain(|at| !own.contains(at));
        Ok(known)
    }

    /// Those of the tasks found stored that were stored for the bundle they are to be in: by a write whose answer was lost.
    async fn own(&self, tasks: &[NewTask], known: &HashSet<usize>) -> Result<HashSet<usize>, StoreError> {
        let bundled: BTreeMap<TaskId, usize> =
            known.iter().filter(|at| tasks[**at].bundle.is_some()).map(|at| (tasks[*at].id, *at)).collect();
        let keys: Vec<String> = bundled.keys().map(ToString::to_string).collect();
        let mut own = HashSet::new();
        for item in self.table.get_many("id", &keys, &["id", "bundle"], true).await? {
            let reader = Reader::new("tasks", "id", &item);
            let at = bundled.get(&reader.parsed("id")?).copied();
            let bundle = bundle_of(&reader)?;
            own.extend(at.filter(|at| tasks[*at].bundle == bundle));
        }
        Ok(own)
    }

    /// The values of a task's record.
    fn values(&self, task: &NewTask) -> Vec<AttributeValue> {
        let now = self.table.world.now();
        let (id, lane) = (text(task.id), text(&task.lane));
        let status = text(if task.bundle.is_some() { BUNDLED } else { CREATED });
        let mut values = vec![id, lane.clone(), status, text(&task.content), time(now)];
        match task.bundle {
            Some(bundle) => values.extend([binary(bundle.as_bytes()), number(now.plus(BUNDLED_RETENTION).seconds())]),
            None => values.push(lane),
        }
        values.extend(task.key.as_ref().map(|key| text(key.record_id())));
        values
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

    /// What of this waits in a lane: no batch has claimed it yet. Strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn waiting(&self, named: &Waiting, lane: &Lane) -> Result<Waiting, StoreError> {
        let keys: Vec<String> = named.tasks.ids().iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "status", "lane"], true).await?;
        let text = lane.to_string();
        let mut tasks = Vec::new();
        for item in &items {
            let reader = Reader::new("tasks", "id", item);
            if reader.text("status")? == CREATED && reader.text("lane")? == text {
                tasks.push(reader.parsed("id")?);
            }
        }
        let ids: Vec<Uuid> = named.bundles.keys().copied().collect();
        let bundles = self.bundles(&ids, true).await?.into_values();
        let bundles = bundles.filter(|bundle| bundle.lane == *lane && bundle.waiting() > 0);
        Ok(Waiting {
            tasks: Members::new(tasks),
            bundles: bundles.map(|bundle| (bundle.id, bundle.waiting())).collect(),
        })
    }

    /// What of this batches have claimed altogether: tasks on their own, and bundles. Not strongly consistent: what was claimed
    /// just now may be missing.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn taken(&self, named: &Waiting) -> Result<Taken, StoreError> {
        let keys: Vec<String> = named.tasks.ids().iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "status"], false).await?;
        let mut taken = Taken::default();
        for item in &items {
            let reader = Reader::new("tasks", "id", item);
            if reader.text("status")? != CREATED {
                taken.tasks.insert(reader.parsed("id")?);
            }
        }
        let ids: Vec<Uuid> = named.bundles.keys().copied().collect();
        let bundles = self.bundles(&ids, false).await?.into_values();
        let over = |bundle: &Bundle| matches!(bundle.state, BundleState::Taken | BundleState::Dead);
        taken.bundles.extend(bundles.filter(over).map(|bundle| bundle.id));
        Ok(taken)
    }

    /// Contents of tasks. Reads again, strongly consistent, what an eventually consistent read did not find; what is in
    /// neither is gone.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn contents(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Content>, StoreError> {
        let mut contents = HashMap::with_capacity(ids.len());
        for consistent in [false, true] {
            let keys: Vec<String> =
                ids.iter().filter(|id| !contents.contains_key(*id)).map(ToString::to_string).collect();
            for item in self.table.get_many("id", &keys, &["id", "content", "created_at"], consistent).await? {
                let reader = Reader::new("tasks", "id", &item);
                if let Some(json) = reader.optional_text("content")? {
                    let created_at = Timestamp(reader.number("created_at")?);
                    contents.insert(reader.parsed("id")?, Content { json: json.to_owned(), created_at });
                }
            }
        }
        Ok(contents)
    }

    /// One task.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let Some(item) = self.table.get("id", id.to_string(), true).await? else { return Ok(None) };
        let reader = Reader::new("tasks", "id", &item);
        let batch = match bundle_of(&reader)? {
            None => reader.optional_parsed("batch")?,
            Some(bundle) => {
                let item = self.table.get("id", bundles::record_id(bundle), true).await?;
                let bundle = item.as_ref().map(bundles::decode).transpose()?;
                bundle.and_then(|bundle| bundle.claims.holder(bundle.members.slot(id)?))
            }
        };
        Ok(Some(Task {
            id: reader.parsed("id")?,
            lane: reader.parsed("lane")?,
            batch,
            content: reader.optional_text("content")?.map(str::to_owned),
            duplicate_of: reader.optional_parsed("of")?,
            created_at: Timestamp(reader.number("created_at")?),
        }))
    }

    /// One segment of the sparse index of what waits, page by page: hands `visit` each record with its lane.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn scan_pending(
        &self,
        segment: i32,
        segments: i32,
        mut visit: impl FnMut(Pending, Lane),
    ) -> Result<(), StoreError> {
        let visit = |item| {
            visit(pending(&item)?, Reader::new("tasks", "id", &item).parsed("pending")?);
            Ok(())
        };
        self.table.scan(Some("pending"), Segment { number: segment, of: segments }, visit).await
    }
}

/// A record as the index of what waits shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What it is.
    pub record: PendingRecord,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// A record that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PendingRecord {
    /// A task on its own.
    Task(TaskId),
    /// A bundle.
    Bundle(Uuid),
}

impl PendingRecord {
    /// The bundle, if it is one.
    #[must_use]
    pub fn bundle(&self) -> Option<Uuid> {
        match self {
            Self::Task(_) => None,
            Self::Bundle(id) => Some(*id),
        }
    }
}

/// What batches have claimed altogether.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Tasks on their own.
    pub tasks: HashSet<TaskId>,
    /// Bundles.
    pub bundles: HashSet<Uuid>,
}

impl Taken {
    /// What is left of this.
    #[must_use]
    pub fn out_of(&self, waiting: Waiting) -> Waiting {
        let Waiting { tasks, mut bundles } = waiting;
        bundles.retain(|id, _| !self.bundles.contains(id));
        Waiting { bundles, ..Waiting::alone(tasks.ids().iter().filter(|id| !self.tasks.contains(id)).copied()) }
    }
}

fn pending(item: &Item) -> Result<Pending, StoreError> {
    let reader = Reader::new("tasks", "id", item);
    let record = match reader.text("id")?.strip_prefix(bundles::PREFIX) {
        None => PendingRecord::Task(reader.parsed("id")?),
        Some(id) => PendingRecord::Bundle(id.parse().map_err(|error| reader.corrupt("id", error))?),
    };
    Ok(Pending { record, created_at: Timestamp(reader.number("created_at")?) })
}

/// The bundle that a task was stored for.
fn bundle_of(reader: &Reader<'_>) -> Result<Option<Uuid>, StoreError> {
    match reader.bytes("bundle")? {
        [] => Ok(None),
        bytes => Uuid::from_slice(bytes).map(Some).map_err(|error| reader.corrupt("bundle", error)),
    }
}

/// A refused claim is still the batch's own if an earlier delivery made it.
fn claimed_by(batch: Uuid, item: Option<&Item>) -> Result<Claim, StoreError> {
    let Some(item) = item else { return Ok(Claim::Lost) };
    let owner = Reader::new("tasks", "id", item).optional_text("batch")?;
    Ok(if owner == Some(batch.to_string().as_str()) { Claim::Mine } else { Claim::Lost })
}
