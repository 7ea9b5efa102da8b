//! Lists of fan-outs: pages of an index, in its order.

use std::ops::RangeInclusive;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::{Fanout, FanoutState, Fanouts, named, opened};
use crate::aws::attributes::{Reader, binary};
use crate::aws::{Range, Section, StoreError};
use crate::clock::Timestamp;
use crate::limits::LIST_QUERIES_AT_ONCE_MAX;

/// The user keys that a list asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UserKeys {
    /// Any, or none.
    #[default]
    Any,
    /// This one.
    Exactly(String),
    /// Those that begin with this.
    Beginning(String),
}

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Those with these user keys.
    pub user_keys: UserKeys,
    /// Those in these states; none: in any.
    pub states: Vec<FanoutState>,
    /// Those that were opened later.
    pub opened_after: Option<Timestamp>,
    /// Those that were opened earlier.
    pub opened_before: Option<Timestamp>,
    /// Oldest first, otherwise newest first. A list by the beginning of user keys is sorted by user key, and within one user
    /// key newest first.
    pub oldest_first: bool,
}

/// A page of fan-outs.
#[derive(Clone, Debug, Default)]
pub struct FanoutPage {
    /// The fan-outs of the page that exist and match: there may be none although more pages follow.
    pub fanouts: Vec<Fanout>,
    /// The sort key after which the next page begins, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// The section of an index that a list reads. The index is named after its sort key.
#[derive(Clone, Debug)]
pub(super) struct IndexRange {
    pub(super) index: &'static str,
    /// Its partition key.
    pub(super) key: &'static str,
    pub(super) partitions: Vec<AttributeValue>,
    /// The sort keys lie between these two.
    pub(super) low: Vec<u8>,
    pub(super) high: Vec<u8>,
    /// How long they are.
    pub(super) lengths: RangeInclusive<usize>,
    /// Whether the list begins with the highest one.
    pub(super) backward: bool,
}

impl IndexRange {
    fn contains(&self, sort_key: &[u8]) -> bool {
        self.lengths.contains(&sort_key.len()) && (self.low.as_slice()..=self.high.as_slice()).contains(&sort_key)
    }

    /// The rest of it after a page; the last entry of that page is found again.
    fn rest(self, after: Option<&[u8]>) -> Self {
        match after {
            None => self,
            Some(after) if self.backward => Self { high: after.to_vec(), ..self },
            Some(after) => Self { low: after.to_vec(), ..self },
        }
    }
}

impl Listing {
    fn index_range(&self) -> IndexRange {
        match &self.user_keys {
            UserKeys::Any => opened::index_range(self),
            UserKeys::Exactly(key) => named::index_range(key, self),
            UserKeys::Beginning(prefix) => named::index_range_of_prefix(prefix),
        }
    }

    /// Whether a page of this list can have ended with this sort key.
    #[must_use]
    pub fn may_follow(&self, sort_key: &[u8]) -> bool {
        self.index_range().contains(sort_key)
    }

    /// Whether the list asks for this fan-out.
    fn takes(&self, fanout: &Fanout) -> bool {
        let key = fanout.user_key.as_deref();
        let named = match &self.user_keys {
            UserKeys::Any => true,
            UserKeys::Exactly(wanted) => key == Some(wanted),
            UserKeys::Beginning(prefix) => key.is_some_and(|key| key.starts_with(prefix.as_str())),
        };
        named
            && (self.states.is_empty() || self.states.contains(&fanout.state))
            && self.opened_after.is_none_or(|after| fanout.created_at > after)
            && self.opened_before.is_none_or(|before| fanout.created_at < before)
    }
}

impl Fanouts {
    /// A page of these fan-outs, after this sort key: reads `limit` index entries. The index may lag, so a fan-out is found
    /// only some time after it was opened or its end was decided; what is found is current.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn list(&self, listing: &Listing, after: Option<&[u8]>, limit: usize) -> Result<FanoutPage, StoreError> {
        let mut entries = self.entries(listing.index_range().rest(after), limit + 2).await?;
        entries.retain(|(sort_key, _)| Some(sort_key.as_slice()) != after);
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|(sort_key, _)| sort_key.clone());
        let ids: Vec<Uuid> = entries.into_iter().map(|(_, id)| id).collect();
        let mut fanouts = self.get_many(&ids).await?;
        fanouts.retain(|fanout| listing.takes(fanout));
        fanouts.sort_by_cached_key(|fanout| ids.iter().position(|id| *id == fanout.id));
        Ok(FanoutPage { fanouts, next })
    }

    /// At least the first `limit` entries there, as sort keys and ids, in the order of the list. A fan-out that moves from one
    /// partition to another may be in both.
    async fn entries(&self, index_range: IndexRange, limit: usize) -> Result<Vec<(Vec<u8>, Uuid)>, StoreError> {
        if index_range.low > index_range.high {
            return Ok(Vec::new());
        }
        let IndexRange { index, key, partitions, backward, .. } = index_range;
        let range = Range::Between(binary(&index_range.low), binary(&index_range.high));
        let section = |partition| {
            let range = Some((index, range.clone()));
            Section { range, backward, limit, ..Section::keyed(index, key, partition) }
        };
        let queries = partitions.into_iter().map(|partition| self.table.query(section(partition)));
        let found: Vec<_> = stream::iter(queries).buffered(LIST_QUERIES_AT_ONCE_MAX).try_collect().await?;
        let mut entries = Vec::new();
        for item in found.iter().flatten() {
            let reader = Reader::new("fanouts", "id", item);
            entries.push((reader.bytes(index)?.to_vec(), reader.parsed("id")?));
        }
        entries.sort_unstable();
        entries.dedup();
        if backward {
            entries.reverse();
        }
        Ok(entries)
    }
}
