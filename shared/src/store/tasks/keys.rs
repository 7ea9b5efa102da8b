//! Keys, which keep a task from being accepted twice. Their records are in the same table as the tasks'.

use std::collections::HashMap;

use super::Tasks;
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, number, text};
use crate::ids::{TaskId, derived};
use crate::limits::{KEY_RETENTION, RETENTION};

/// Scope and value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind, and the fan-out if there is one.
    pub scope: String,
    /// The key's value.
    pub value: String,
}

impl Key {
    pub(super) fn record_id(&self) -> String {
        format!("key:{}", derived::key(&self.scope, &self.value))
    }
}

/// A key one wants for one's task.
#[derive(Clone, Debug)]
pub struct KeyClaim {
    /// The key.
    pub key: Key,
    /// The task that would own it.
    pub owner: TaskId,
}

/// Who has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The task that took it last.
    pub owner: TaskId,
    /// Whether that task failed and gave it back.
    pub released: bool,
    /// Whether it was taken longer ago than a claimed task is remembered.
    pub old: bool,
}

impl Holding {
    fn taken(owner: TaskId) -> Self {
        Self { owner, released: false, old: false }
    }
}

/// A key that goes from one task to another.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// The key.
    pub key: Key,
    /// The task that has it.
    pub from: TaskId,
    /// The task that is to have it.
    pub to: TaskId,
}

impl Tasks {
    /// Takes keys for their tasks, first come, first served. Returns for every claim who has its key now: the claimant, if
    /// it was free or already its own (a repeated request gets through).
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_keys(&self, claims: &[KeyClaim]) -> Result<Vec<Holding>, StoreError> {
        let now = self.table.world.now();
        let ttl = now.plus(KEY_RETENTION).seconds();
        // Two claims of one key in one call: the first is asked for, both are answered with its owner.
        let mut first: HashMap<String, Holding> = HashMap::with_capacity(claims.len());
        let mut order = Vec::with_capacity(claims.len());
        for claim in claims {
            let id = claim.key.record_id();
            if !first.contains_key(&id) {
                first.insert(id.clone(), Holding::taken(claim.owner));
                order.push((id, claim.owner));
            }
        }
        let rows = order.iter().map(|(id, owner)| vec![text(id), text(owner), number(ttl)]).collect();
        let refused = self.table.inserts("taking keys", &["id", "owner", "ttl"]).execute(rows).await?;
        let taken: Vec<String> = refused.into_iter().map(|(at, _)| order[at].0.clone()).collect();
        for item in self.table.get_many("id", &taken, &["id", "owner", "released", "ttl"], true).await? {
            let reader = Reader::new("keys", "id", &item);
            let until = reader.number("ttl")?.saturating_sub((KEY_RETENTION - RETENTION).as_secs());
            let (released, old) = (reader.has("released"), until < now.seconds());
            first.insert(reader.text("id")?.to_owned(), Holding { owner: reader.parsed("owner")?, released, old });
        }
        let holding = |claim: &KeyClaim| first.get(&claim.key.record_id()).copied();
        Ok(claims.iter().map(|claim| holding(claim).unwrap_or(Holding::taken(claim.owner))).collect())
    }

    /// Hands keys on, each on condition that it is still where it is said to be: a task that had a key and lost it never
    /// gets it back. Each key may be named once.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_over(&self, takeovers: &[Takeover]) -> Result<(), StoreError> {
        let ttl = self.table.world.now().plus(KEY_RETENTION).seconds();
        let takes = self.table.updates(
            "taking keys over",
            "SET \"owner\" = ? SET \"ttl\" = ? REMOVE \"released\" WHERE \"id\" = ? AND \"owner\" = ?",
        );
        let row = |taken: &Takeover| vec![text(taken.to), number(ttl), text(taken.key.record_id()), text(taken.from)];
        takes.execute(takeovers.iter().map(row).collect()).await.map(|_| ())
    }

    /// Releases the keys of tasks that failed, each on condition that the task still has it. Releasing one again changes
    /// nothing.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn release_keys(&self, ids: &[TaskId]) -> Result<(), StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let items = self.table.get_many("id", &keys, &["id", "key"], true).await?;
        let ttl = self.table.world.now().plus(RETENTION).seconds();
        let releases = self
            .table
            .updates("releasing keys", "SET \"released\" = ? SET \"ttl\" = ? WHERE \"id\" = ? AND \"owner\" = ?");
        let mut rows = Vec::new();
        for item in &items {
            let reader = Reader::new("tasks", "id", item);
            if let Some(key) = reader.optional_text("key")? {
                rows.push(vec![number(1_u32), number(ttl), text(key), text(reader.text("id")?)]);
            }
        }
        releases.execute(rows).await.map(|_| ())
    }
}
