//! The index of fan-outs by their user keys: sorted by key, and of one key the newest first.

use futures::future::try_join_all;
use uuid::Uuid;

use super::{Fanout, Fanouts};
use crate::aws::attributes::{Reader, binary};
use crate::aws::{Part, StoreError};
use crate::clock::Timestamp;
use crate::limits::{FEW_SHARDS, NAMED_BYTES_MAX};
use crate::store::shards::{few, nth};

/// The index, which is named after its sort key, and its partition key. What never changes is in it, and nothing else: a later
/// write of the header costs nothing more.
pub(super) const NAMED: &str = "named";
pub(super) const NAMES: &str = "names";

/// What follows the start of the user key: a zero, the time, the id.
const REST: usize = 1 + 8 + 16;

/// Which user keys are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserKeys {
    /// This one.
    Exactly(String),
    /// Those that begin with this.
    Beginning(String),
}

impl UserKeys {
    /// Whether this is one of them.
    #[must_use]
    pub fn have(&self, user_key: &str) -> bool {
        match self {
            Self::Exactly(key) => user_key == key,
            Self::Beginning(prefix) => user_key.starts_with(prefix.as_str()),
        }
    }

    /// Whether a page of them can have ended with this sort key.
    #[must_use]
    pub fn may_follow(&self, sort_key: &[u8]) -> bool {
        let lengths = REST..=NAMED_BYTES_MAX + REST;
        lengths.contains(&sort_key.len()) && sort_key.starts_with(&self.start())
    }

    /// What the sort keys of all of them begin with; those of others may do so, too.
    fn start(&self) -> Vec<u8> {
        match self {
            Self::Exactly(key) => [beginning(key), &[0]].concat(),
            Self::Beginning(prefix) => beginning(prefix).to_vec(),
        }
    }
}

/// A page of fan-outs.
#[derive(Clone, Debug)]
pub struct NamedPage {
    /// Those of it that exist and have one of the user keys: there may be none although more follow.
    pub fanouts: Vec<Fanout>,
    /// What the next page comes after, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// As much of a user key as is sorted by: a long one is not stored twice as a whole.
fn beginning(user_key: &str) -> &[u8] {
    let bytes = user_key.as_bytes();
    bytes.get(..NAMED_BYTES_MAX).unwrap_or(bytes)
}

/// Under which a fan-out is found.
pub(super) fn sort_key(user_key: &str, created_at: Timestamp, id: Uuid) -> Vec<u8> {
    [beginning(user_key), &[0], &(u64::MAX - created_at.0).to_be_bytes(), id.as_bytes()].concat()
}

impl Fanouts {
    /// A page of the fan-outs with these user keys, after this sort key: at most `limit`. The index may lag, so that a fan-out is
    /// found soon after it was opened; what is found is as it stands.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn named(&self, keys: &UserKeys, after: Option<Vec<u8>>, limit: usize) -> Result<NamedPage, StoreError> {
        let start = keys.start();
        let shards = match keys {
            UserKeys::Exactly(key) => vec![few(key)],
            UserKeys::Beginning(_) => (0..FEW_SHARDS).map(nth).collect(),
        };
        let after = after.unwrap_or_else(|| start.clone());
        // One more tells whether more follow.
        let part =
            |shard| Part { after: Some((NAMED, binary(&after))), limit: limit + 1, ..Part::keyed(NAMED, NAMES, shard) };
        let found = try_join_all(shards.into_iter().map(|shard| self.table.query(part(shard)))).await?;
        let mut entries = Vec::new();
        for item in found.iter().flatten() {
            let reader = Reader::new("fanouts", "id", item);
            let entry = (reader.bytes(NAMED)?.to_vec(), reader.parsed::<Uuid>("id")?);
            entries.extend(Some(entry).filter(|(sort_key, _)| sort_key.starts_with(&start)));
        }
        entries.sort_unstable();
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|(sort_key, _)| sort_key.clone());
        let ids: Vec<Uuid> = entries.into_iter().map(|(_, id)| id).collect();
        let mut fanouts = self.get_many(&ids).await?;
        fanouts.retain(|fanout| fanout.user_key.as_deref().is_some_and(|key| keys.have(key)));
        fanouts.sort_by_cached_key(|fanout| ids.iter().position(|id| *id == fanout.id));
        Ok(NamedPage { fanouts, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_key_comes_first() {
        let (old, new) = (Timestamp(1_000), Timestamp(2_000));
        let id = Uuid::nil();
        assert!(sort_key("a", new, id) < sort_key("a", old, id));
        assert!(sort_key("a", old, id) < sort_key("b", new, id));
        assert!(sort_key("a", old, id) < sort_key("ab", new, id));
    }

    #[test]
    fn a_sort_key_begins_as_the_keys_that_are_asked_for() {
        let long = "ü".repeat(512);
        for key in ["", "a", "order 4711", "a\0b", &long] {
            let sort_key = sort_key(key, Timestamp(1), Uuid::nil());
            // DynamoDB takes no longer ones.
            assert!(sort_key.len() <= 1_024);
            assert!(UserKeys::Exactly(key.to_owned()).may_follow(&sort_key));
            assert!(UserKeys::Beginning(key.to_owned()).may_follow(&sort_key));
            assert!(!UserKeys::Exactly("other".to_owned()).may_follow(&sort_key));
            assert!(!UserKeys::Exactly(key.to_owned()).may_follow(&sort_key[..REST - 1]));
        }
    }
}
