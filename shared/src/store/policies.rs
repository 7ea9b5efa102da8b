//! Policies, by kind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::aws::attributes::{Reader, item, text, time};
use crate::aws::{Item, Segment, StoreError, Table};
use crate::clock::Timestamp;
use crate::limits::POLICY_CACHE_MAX;
use crate::policy::Policy;

/// The key of a record.
const KIND: &str = "kind";

/// The policies, each cached for some seconds.
#[derive(Debug)]
pub struct Policies {
    table: Table,
    cache: Mutex<HashMap<String, (Timestamp, Arc<Policy>)>>,
}

impl Policies {
    /// The policies in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table, cache: Mutex::default() }
    }

    /// The policy of a kind, as it was at most some seconds ago. Until it is read again, the same object is returned.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, kind: &str) -> Result<Option<Arc<Policy>>, StoreError> {
        let now = self.table.world.now();
        if let Some((read_at, policy)) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(kind)
            && now.since(*read_at) < POLICY_CACHE_MAX
        {
            return Ok(Some(Arc::clone(policy)));
        }
        // A missing policy is not cached, so a policy is found as soon as it is stored.
        let Some(policy) = self.read(kind).await?.map(Arc::new) else { return Ok(None) };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(kind.to_owned(), (now, Arc::clone(&policy)));
        Ok(Some(policy))
    }

    /// The policy of a kind as it is stored now.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn read(&self, kind: &str) -> Result<Option<Policy>, StoreError> {
        self.table.get(KIND, kind.to_owned(), true).await?.as_ref().map(decode).transpose()
    }

    /// Stores a policy that was checked.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn put(&self, policy: &Policy) -> Result<(), StoreError> {
        self.table.replace(encode(policy, self.table.world.now())?).await?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(&policy.kind);
        Ok(())
    }

    /// Deletes the policy of a kind, if there is one. Its tasks wait until there is one again.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn delete(&self, kind: &str) -> Result<(), StoreError> {
        self.table.delete(KIND, kind.to_owned()).await?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        Ok(())
    }

    /// Every policy, by kind. There are few: one per kind.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn list(&self) -> Result<Vec<Policy>, StoreError> {
        let mut policies = self.items().await?.iter().map(decode).collect::<Result<Vec<Policy>, _>>()?;
        policies.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(policies)
    }

    /// The kinds that have a policy, readable or not.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn kinds(&self) -> Result<Vec<String>, StoreError> {
        let kind = |item: &Item| Reader::new("policies", KIND, item).text(KIND).map(str::to_owned);
        let mut kinds = self.items().await?.iter().map(kind).collect::<Result<Vec<String>, _>>()?;
        kinds.sort_unstable();
        Ok(kinds)
    }

    async fn items(&self) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let all = |item| {
            items.push(item);
            Ok(())
        };
        self.table.scan(None, Segment::ALL, all).await?;
        Ok(items)
    }
}

/// The policy is kept as the JSON it was given in, so that a field added later needs no migration.
fn encode(policy: &Policy, now: Timestamp) -> Result<Item, StoreError> {
    let json = serde_json::to_string(policy).map_err(|error| StoreError::Corrupt {
        table: "policies",
        id: policy.kind.clone(),
        attribute: "policy",
        problem: error.to_string(),
    })?;
    Ok(item([(KIND, Some(text(&policy.kind))), ("policy", Some(text(json))), ("updated_at", Some(time(now)))]))
}

fn decode(item: &Item) -> Result<Policy, StoreError> {
    Reader::new("policies", KIND, item).json("policy")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let policy = serde_json::json!({
            "kind": "parcel",
            "target": "task.depot",
            "max_batch": 7,
            "batch_api": {"url": "https://example.com/parcels"},
        });
        let policy: Policy = serde_json::from_value(policy).unwrap();
        assert_eq!(decode(&encode(&policy, Timestamp(1)).unwrap()).unwrap(), policy);
    }
}
