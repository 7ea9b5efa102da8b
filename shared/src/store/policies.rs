//! Policies, by kind, and in the same records the switches of each kind and the lease of its dev session. All are read and cached together.

mod dev;
mod switches;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use self::switches::ALL;
use crate::aws::attributes::{Reader, text, time};
use crate::aws::{Item, Segment, StoreError, Table};
use crate::clock::Timestamp;
use crate::control::{DevLease, Hold, Switches};
use crate::lane::Lane;
use crate::limits::POLICY_CACHE_MAX;
use crate::policy::Policy;

pub use self::dev::DevError;
pub use self::switches::SwitchError;

/// The key of a record.
const KIND: &str = "kind";
/// The policy. Without it there may still be switches, and the kind has no policy.
const POLICY: &str = "policy";

/// The policies and switches, each cached for some seconds.
#[derive(Debug)]
pub struct Policies {
    table: Table,
    cache: Mutex<HashMap<String, Known>>,
}

/// What is cached of a kind.
#[derive(Clone, Debug)]
struct Known {
    read_at: Timestamp,
    policy: Option<Arc<Policy>>,
    /// The switches of its scopes, and the switch of everything.
    switches: Arc<[Switches; 2]>,
    /// The lease of its dev session.
    dev: Option<Arc<DevLease>>,
}

impl Known {
    fn hold(&self, lane: &Lane) -> Hold {
        self.switches.iter().fold(Hold::default(), |hold, switches| hold.and(switches.hold(lane)))
    }
}

fn without_paused<T>(all: Vec<T>, holds: Vec<Hold>) -> Vec<(T, Hold)> {
    all.into_iter().zip(holds).filter(|(_, hold)| !hold.paused).collect()
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
        Ok(self.known(kind).await?.policy)
    }

    /// The effect of the switches on a lane, as it was at most some seconds ago. If this says that the lane is paused, it is so
    /// now: a worker that discards a message because of a pause must not miss its end.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn hold(&self, lane: &Lane) -> Result<Hold, StoreError> {
        let hold = self.known(&lane.kind).await?.hold(lane);
        if !hold.paused {
            return Ok(hold);
        }
        Ok(self.read_both(&lane.kind).await?.hold(lane))
    }

    /// The same for several lanes.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    async fn holds(&self, lanes: &[&Lane]) -> Result<Vec<Hold>, StoreError> {
        let mut now: HashMap<&str, Known> = HashMap::new();
        let mut holds = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let kind = lane.kind.as_str();
            let known = match now.get(kind) {
                Some(known) => known.hold(lane),
                None => self.known(kind).await?.hold(lane),
            };
            if known.paused && !now.contains_key(kind) {
                now.insert(kind, self.read_both(kind).await?);
            }
            holds.push(now.get(kind).map_or(known, |known| known.hold(lane)));
        }
        Ok(holds)
    }

    /// Those of some lanes that are not paused, each with the effect of the switches on it. `lane`: the lane of one of them.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn not_paused<T>(&self, all: Vec<T>, lane: impl Fn(&T) -> &Lane) -> Result<Vec<(T, Hold)>, StoreError> {
        let holds = self.holds(&all.iter().map(lane).collect::<Vec<_>>()).await?;
        Ok(without_paused(all, holds))
    }

    /// The same before a step that reads the switches again: if they cannot be read, all continue.
    pub async fn perhaps_not_paused<T>(&self, all: Vec<T>, lane: impl Fn(&T) -> &Lane) -> Vec<(T, Hold)> {
        let lanes: Vec<&Lane> = all.iter().map(lane).collect();
        let holds = self.holds(&lanes).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the switches cannot be read");
            vec![Hold::default(); lanes.len()]
        });
        without_paused(all, holds)
    }

    /// What is cached of a kind, or else what is stored. What was read in the future, by a clock that was set back, is read anew.
    async fn known(&self, kind: &str) -> Result<Known, StoreError> {
        let now = self.table.world.now();
        if let Some(known) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(kind)
            && known.read_at <= now
            && now.since(known.read_at) < POLICY_CACHE_MAX
        {
            return Ok(known.clone());
        }
        self.read_both(kind).await
    }

    /// Reads a kind's record and that of everything, and caches them if there is a policy.
    async fn read_both(&self, kind: &str) -> Result<Known, StoreError> {
        let read_at = self.table.world.now();
        let keys = [kind.to_owned(), ALL.to_owned()];
        let (mut policy, mut switches, mut dev) = (None, [Switches::default(), Switches::default()], None);
        for item in self.table.get_many(KIND, &keys, &[], true).await? {
            let is_kinds = Reader::new("policies", KIND, &item).text(KIND)? == kind;
            if is_kinds {
                policy = decode(&item)?.map(Arc::new);
                dev = dev::decode(&item)?.map(Arc::new);
            }
            switches[usize::from(!is_kinds)] = switches::decode(&item)?;
        }
        let known = Known { read_at, policy, switches: Arc::new(switches), dev };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // A missing policy is not cached, so a policy is found as soon as it is stored.
        match &known.policy {
            Some(_) => drop(cache.insert(kind.to_owned(), known.clone())),
            None => drop(cache.remove(kind)),
        }
        drop(cache);
        Ok(known)
    }

    /// The policy of a kind as it is stored now.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn read(&self, kind: &str) -> Result<Option<Policy>, StoreError> {
        let item = self.table.get(KIND, kind.to_owned(), true).await?;
        item.as_ref().map_or(Ok(None), decode)
    }

    /// Stores a policy that was checked. The switches of its kind stay as they are.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn put(&self, policy: &Policy) -> Result<(), StoreError> {
        let change = self.table.change(KIND, &policy.kind).set(POLICY, text(encode(policy)?));
        change.set("updated_at", time(self.table.world.now())).send().await.map(drop)?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(&policy.kind);
        Ok(())
    }

    /// Deletes the policy of a kind, if there is one. Its tasks wait until there is one again. The switches of the kind stay as
    /// they are: a pause ends only when someone ends it.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn delete(&self, kind: &str) -> Result<(), StoreError> {
        let change = self.table.change(KIND, kind).remove([POLICY]).when_present(POLICY);
        change.send().await.map(drop)?;
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).remove(kind);
        Ok(())
    }

    /// Every policy, by kind. There are few: one per kind.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn list(&self) -> Result<Vec<Policy>, StoreError> {
        let policies = self.items().await?.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        let mut policies: Vec<Policy> = policies.into_iter().flatten().collect();
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

    /// The records with a policy.
    async fn items(&self) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let all = |item: Item| {
            // The switch of everything, and those of a kind whose policy was deleted, are without one.
            if item.contains_key(POLICY) {
                items.push(item);
            }
            Ok(())
        };
        self.table.scan(None, Segment::ALL, all).await?;
        Ok(items)
    }
}

/// The policy is kept as the JSON it was given in, so that a field added later needs no migration.
fn encode(policy: &Policy) -> Result<String, StoreError> {
    serde_json::to_string(policy).map_err(|error| StoreError::Unbuilt {
        table: "policies".to_owned(),
        problem: format!("the policy of {} cannot be written as JSON: {error}", policy.kind),
    })
}

/// The policy in a record, if there is one.
fn decode(item: &Item) -> Result<Option<Policy>, StoreError> {
    if !item.contains_key(POLICY) {
        return Ok(None);
    }
    Reader::new("policies", KIND, item).json(POLICY).map(Some)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::aws::attributes::item;

    #[test]
    fn what_is_written_is_read() {
        let policy = serde_json::json!({
            "kind": "parcel",
            "target": "task.depot",
            "max_batch": 7,
            "batch_api": {"url": "https://example.com/parcels"},
        });
        let policy: Policy = serde_json::from_value(policy).unwrap();
        let stored = item([(KIND, Some(text("parcel"))), (POLICY, Some(text(encode(&policy).unwrap())))]);
        assert_eq!(decode(&stored).unwrap(), Some(policy));
    }
}
