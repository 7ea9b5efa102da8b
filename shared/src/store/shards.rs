//! Shards of the sparse indexes by which `sweep` finds lanes and fan-outs, so that their writes do not all go to one partition.

use std::fmt::Display;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::aws::attributes::text;
use crate::ids::derived;
use crate::limits::{FEW_SHARDS, INDEX_SHARDS};

/// The partition key under which an index shows the record with this key: always the same.
pub(super) fn shard(key: impl Display) -> AttributeValue {
    text(derived::shard_hash(&key.to_string()) % u128::from(INDEX_SHARDS))
}

/// The same under few keys, for an index that is read by key, and not as a whole.
pub(super) fn few(key: impl Display) -> AttributeValue {
    text(one_of_few(key))
}

/// The partition key of one of those few.
pub(super) fn nth(shard: u64) -> AttributeValue {
    text(shard)
}

/// The same with few keys per sort of record.
pub(super) fn few_of(sort: &str, key: impl Display) -> AttributeValue {
    text(format_args!("{sort}:{}", one_of_few(key)))
}

/// The partition key of one of those few, of this sort.
pub(super) fn nth_of(sort: &str, shard: u64) -> AttributeValue {
    text(format_args!("{sort}:{shard}"))
}

fn one_of_few(key: impl Display) -> u128 {
    derived::shard_hash(&key.to_string()) % u128::from(FEW_SHARDS)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn shards_share_the_records_evenly() {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for key in 0..100_000 {
            *counts.entry(format!("{:?}", shard(key))).or_default() += 1;
        }
        assert_eq!(counts.len() as u64, INDEX_SHARDS);
        assert!(counts.values().all(|count| (40..=160).contains(count)), "{counts:?}");
    }
}
