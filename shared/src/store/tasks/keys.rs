//! Keys, which keep a task from being accepted twice. Their records are in the same table as the tasks'.

use std::collections::HashMap;

use super::Tasks;
use crate::ids::{TaskId, derived};
use crate::limits::RETENTION;
use crate::store::StoreError;
use crate::store::attributes::{Reader, number, text};

/// Scope and value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind, and the fan-out if there is one.
    pub scope: String,
    /// The key's value.
    pub value: String,
}

impl Key {
    fn record_id(&self) -> String {
        format!("key:{}", derived("key", &[self.scope.as_bytes(), self.value.as_bytes()]))
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

impl Tasks {
    /// Takes keys for their tasks, first come, first served. Answers for every claim who owns its key now: the claimant, if
    /// it was free or already its own (a repeated request gets through).
    ///
    /// # Errors
    /// The table can not be written.
    pub async fn take_keys(&self, claims: &[KeyClaim]) -> Result<Vec<TaskId>, StoreError> {
        let ttl = self.world.now().plus(RETENTION).seconds();
        // Two claims of one key in one call: the first is asked for, both are answered with its owner.
        let mut first: HashMap<String, TaskId> = HashMap::with_capacity(claims.len());
        let mut order = Vec::with_capacity(claims.len());
        for claim in claims {
            let id = claim.key.record_id();
            if !first.contains_key(&id) {
                first.insert(id.clone(), claim.owner);
                order.push(id);
            }
        }
        let statement = format!("INSERT INTO \"{}\" VALUE {{'id': ?, 'owner': ?, 'ttl': ?}}", self.table.name);
        let parameters = order
            .iter()
            .map(|id| vec![text(id), text(first.get(id).map(ToString::to_string).unwrap_or_default()), number(ttl)])
            .collect();
        let refused = self.execute("taking keys", &statement, parameters).await?;
        let taken: Vec<String> = refused.into_iter().map(|(at, _)| order[at].clone()).collect();
        for item in self.table.get_many("id", &taken, &["id", "owner"], true).await? {
            let reader = Reader::new("keys", "id", &item);
            first.insert(reader.text("id")?.to_owned(), reader.parsed("owner")?);
        }
        Ok(claims.iter().map(|claim| first.get(&claim.key.record_id()).copied().unwrap_or(claim.owner)).collect())
    }
}
