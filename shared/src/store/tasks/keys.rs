//! Keys, which keep a task from being accepted twice. Their records are in the same table as the tasks'.

use std::collections::{HashMap, HashSet};

use super::Tasks;
use super::record::{ID, KEY, OF_KEY, Standing, TTL};
use crate::aws::attributes::{Reader, item, number, text};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::ids::{TaskId, derived};
use crate::limits::{KEY_RETENTION, RETENTION};
use uuid::Uuid;

/// Scope and value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind, and the scope that its policy gives, or else the fan-out, if there is one.
    pub scope: String,
    /// The key's value.
    pub value: String,
}

/// Within what a key is accepted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within<'a> {
    /// The tasks of the kind whose policy gives them this scope.
    Scope(&'a str),
    /// Those of one fan-out, if the policy gives no scope.
    Fanout(Uuid),
    /// Those that are no items, if the policy gives no scope.
    Single,
}

impl Key {
    /// The key of a task, whose policy may give it a scope.
    #[must_use]
    pub fn of(id: &TaskId, kind: &str, scope: Option<&str>, value: String) -> Self {
        let within = match (scope, id) {
            (Some(scope), _) => Within::Scope(scope),
            (None, TaskId::Item(item)) => Within::Fanout(item.fanout),
            (None, TaskId::Single(_)) => Within::Single,
        };
        Self::within(kind, within, value)
    }

    /// A key of a kind. No kind has a `=` or a `:`, so that the three are apart.
    #[must_use]
    pub fn within(kind: &str, within: Within<'_>, value: String) -> Self {
        let scope = match within {
            Within::Scope(scope) => format!("{kind}={scope}"),
            Within::Fanout(fanout) => format!("{kind}:{fanout}"),
            Within::Single => kind.to_owned(),
        };
        Self { scope, value }
    }

    pub(super) fn record_id(&self) -> String {
        format!("key:{}", derived::key(&self.scope, &self.value))
    }
}

/// The task that has the key.
const OWNER: &str = "owner";
/// The owner failed and released it.
const RELEASED: &str = "released";

/// Attributes that must be unchanged for a key to be released: it still has this owner.
const SAME_OWNER: [&str; 2] = [ID, OWNER];
/// Attributes that must be unchanged for a key to be handed on: it is as it was read. A task may take its own key again, and release
/// it again.
const AS_READ: [&str; 3] = [ID, OWNER, TTL];

/// A key's record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRecord {
    id: String,
    owner: TaskId,
    released: bool,
    /// When it expires, in epoch seconds; none: unchanged.
    ttl: Option<u64>,
}

impl KeyRecord {
    fn encode(&self) -> Item {
        item([
            (ID, Some(text(&self.id))),
            (OWNER, Some(text(self.owner))),
            (RELEASED, self.released.then(|| number(1_u32))),
            (TTL, self.ttl.map(number)),
        ])
    }

    fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("keys", ID, item);
        Ok(Self {
            id: reader.text(ID)?.to_owned(),
            owner: reader.parsed(OWNER)?,
            released: reader.has(RELEASED),
            ttl: reader.optional_number(TTL)?,
        })
    }

    fn holding(&self, now: Timestamp) -> Holding {
        // A deployment adds the same time to both.
        let until = self.ttl.unwrap_or_default().saturating_sub((KEY_RETENTION - RETENTION).as_secs());
        Holding { owner: self.owner, released: self.released, old: until < now.seconds(), ttl: self.ttl }
    }
}

/// A key that a task asks for.
#[derive(Clone, Debug)]
pub struct KeyRequest {
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
    /// Whether that task failed and released it.
    pub released: bool,
    /// Whether it was taken longer ago than a claimed task is remembered.
    pub old: bool,
    /// When its record expires, in epoch seconds.
    pub ttl: Option<u64>,
}

impl Holding {
    fn taken(owner: TaskId, ttl: Option<u64>) -> Self {
        Self { owner, released: false, old: false, ttl }
    }
}

/// The record id of a key, and the task whose record names it.
type Keyed = (String, Standing);

/// A key that goes from one task to another, or to the task that had it last.
#[derive(Clone, Debug)]
pub struct Takeover {
    /// The key.
    pub key: Key,
    /// Who has it, as it was read.
    pub from: Holding,
    /// The task that is to have it.
    pub to: TaskId,
}

impl Tasks {
    /// Takes keys for their tasks, first come, first served. Returns the owner of each claim's key: the claimant, if the key
    /// was free or already its own, so that a repeated request gets through.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_keys(&self, claims: &[KeyRequest]) -> Result<Vec<Holding>, StoreError> {
        let now = self.table.world.now();
        let ttl = Some(self.table.expires(KEY_RETENTION).seconds());
        // If two claims in one call have the same key, the first is written, and both get its owner.
        let mut first: HashMap<String, Holding> = HashMap::with_capacity(claims.len());
        let mut wanted = Vec::with_capacity(claims.len());
        for claim in claims {
            let id = claim.key.record_id();
            if !first.contains_key(&id) {
                first.insert(id.clone(), Holding::taken(claim.owner, ttl));
                wanted.push(KeyRecord { id, owner: claim.owner, released: false, ttl });
            }
        }
        let items = wanted.iter().map(KeyRecord::encode).collect();
        let refused = self.table.insert_each("taking keys", items, |_| {}).await?;
        let taken: Vec<String> = refused.into_iter().map(|(at, _)| wanted[at].id.clone()).collect();
        for item in self.table.get_many(ID, &taken, &[], true).await? {
            let record = KeyRecord::decode(&item)?;
            let holding = record.holding(now);
            first.insert(record.id, holding);
        }
        let holding = |claim: &KeyRequest| first.get(&claim.key.record_id()).copied();
        Ok(claims.iter().map(|claim| holding(claim).unwrap_or(Holding::taken(claim.owner, ttl))).collect())
    }

    /// The task that has a key, or had it last.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn owner(&self, key: &Key) -> Result<Option<TaskId>, StoreError> {
        let items = self.table.get_many(ID, &[key.record_id()], &[], true).await?;
        Ok(items.first().map(KeyRecord::decode).transpose()?.map(|record| record.owner))
    }

    /// Hands keys on, each on condition that it is as it was read, so that a task that lost a key never gets it back, and a late
    /// write takes no key that was released since. Each key may be named once.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn take_over(&self, takeovers: &[Takeover]) -> Result<(), StoreError> {
        let ttl = Some(self.table.expires(KEY_RETENTION).seconds());
        let takeover = |taken: &Takeover| {
            let Takeover { key, from, .. } = taken;
            let before = KeyRecord { id: key.record_id(), owner: from.owner, released: true, ttl: from.ttl };
            let after = KeyRecord { owner: taken.to, released: false, ttl, ..before.clone() };
            (before.encode(), after.encode())
        };
        let takeovers = takeovers.iter().map(takeover).collect();
        self.table.change_each("taking keys over", &AS_READ, takeovers).await.map(|_| ())
    }

    /// Releases the keys of tasks that failed, each on condition that the task still has it. Releasing one again changes
    /// nothing.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn release_keys(&self, ids: &[TaskId]) -> Result<(), StoreError> {
        let keyed = self.keyed(ids).await?;
        self.release(keyed).await
    }

    /// The same for members of a batch, perhaps long after it ended. A task that was registered again when its record had expired
    /// may have its key again: only keys of tasks that this batch has claimed are released.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn release_keys_of(&self, batch: Uuid, ids: &[TaskId]) -> Result<(), StoreError> {
        let mut keyed = self.keyed(ids).await?;
        let claimants = self.claimants(keyed.iter().map(|(_, task)| task.clone()).collect()).await?;
        keyed.retain(|(_, task)| claimants.get(&task.id) == Some(&batch));
        self.release(keyed).await
    }

    /// Those of these tasks that have a key.
    async fn keyed(&self, ids: &[TaskId]) -> Result<Vec<Keyed>, StoreError> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut keyed = Vec::new();
        for item in self.table.get_many(ID, &ids, &OF_KEY, true).await? {
            if let Some(key) = Reader::new("tasks", ID, &item).optional_text(KEY)? {
                keyed.push((key.to_owned(), Standing::decode(&item)?));
            }
        }
        Ok(keyed)
    }

    /// Releases keys, each if the task still has it.
    async fn release(&self, mut releases: Vec<Keyed>) -> Result<(), StoreError> {
        let ttl = Some(self.table.expires(RETENTION).seconds());
        let release = |(key, Standing { id: owner, .. }): Keyed| {
            let before = KeyRecord { id: key, owner, released: false, ttl: None };
            let after = KeyRecord { released: true, ttl, ..before.clone() };
            (before.encode(), after.encode())
        };
        // Several may have had one key, each after another, and a call may name a record only once.
        while !releases.is_empty() {
            let mut named = HashSet::new();
            let (round, rest) = releases.into_iter().partition(|(key, _): &Keyed| named.insert(key.clone()));
            releases = rest;
            let round = Vec::into_iter(round).map(release).collect();
            self.table.change_each("releasing keys", &SAME_OWNER, round).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_task;

    proptest! {
        #[test]
        fn what_is_written_is_read(owner in any_task(), released: bool, ttl: Option<u64>) {
            let record = KeyRecord { id: "key:1".to_owned(), owner, released, ttl };
            prop_assert_eq!(KeyRecord::decode(&record.encode()).unwrap(), record);
        }
    }
}
