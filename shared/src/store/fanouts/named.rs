//! The index of fan-outs by their user keys: sorted by key, and of one key the newest first.

use uuid::Uuid;

use super::Listing;
use super::list::IndexRange;
use crate::clock::Timestamp;
use crate::limits::{FEW_SHARDS, NAMED_BYTES_MAX};
use crate::store::shards::{few, nth};

/// The index, which is named after its sort key, and its partition key. It holds only attributes that never change, so later
/// writes of the header cost nothing more.
pub(super) const NAMED: &str = "named";
pub(super) const NAMES: &str = "names";

/// What follows the start of the user key: a zero, the time, the id.
const REST: usize = 1 + 8 + 16;

/// Above everything that may follow the start of a user key: its rest, which is UTF-8, or a zero.
const ABOVE: [u8; 1] = [0xff];

/// The part of a user key that is sorted by: a long one is not stored twice as a whole.
fn beginning(user_key: &str) -> &[u8] {
    let bytes = user_key.as_bytes();
    bytes.get(..NAMED_BYTES_MAX).unwrap_or(bytes)
}

/// A time, encoded so that the newest comes first.
fn newest_first(opened: Timestamp) -> [u8; 8] {
    (u64::MAX - opened.0).to_be_bytes()
}

/// The sort key of a fan-out.
pub(super) fn sort_key(user_key: &str, created_at: Timestamp, id: Uuid) -> Vec<u8> {
    [beginning(user_key), &[0], &newest_first(created_at), id.as_bytes()].concat()
}

/// The part of the index with this user key.
pub(super) fn index_range(user_key: &str, listing: &Listing) -> IndexRange {
    let start = beginning(user_key);
    // Fan-outs opened then or earlier have sort keys above this one, later ones below it.
    let from = |opened: Timestamp| [start, &[0], &newest_first(opened)].concat();
    let latest = listing.opened_before.map_or(u64::MAX, |before| before.0.saturating_sub(1));
    IndexRange {
        index: NAMED,
        key: NAMES,
        partitions: vec![few(user_key)],
        low: from(Timestamp(latest)),
        high: from(listing.opened_after.unwrap_or_default()),
        lengths: start.len() + REST..=start.len() + REST,
        backward: listing.oldest_first,
    }
}

/// The part of the index with user keys that begin with this.
pub(super) fn index_range_of_prefix(prefix: &str) -> IndexRange {
    let start = beginning(prefix);
    IndexRange {
        index: NAMED,
        key: NAMES,
        partitions: (0..FEW_SHARDS).map(nth).collect(),
        low: start.to_vec(),
        high: [start, &ABOVE].concat(),
        lengths: start.len() + REST..=NAMED_BYTES_MAX + REST,
        backward: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fanouts::UserKeys;

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
        let listing = |user_keys| Listing { user_keys, ..Listing::default() };
        for key in ["a", "order 4711", "a\0b", &long] {
            let sort_key = sort_key(key, Timestamp(1), Uuid::nil());
            // DynamoDB takes no longer ones.
            assert!(sort_key.len() <= 1_024);
            assert!(listing(UserKeys::Exactly(key.to_owned())).may_follow(&sort_key));
            assert!(listing(UserKeys::Beginning(key.to_owned())).may_follow(&sort_key));
            assert!(!listing(UserKeys::Exactly("other".to_owned())).may_follow(&sort_key));
            assert!(!listing(UserKeys::Exactly(key.to_owned())).may_follow(&sort_key[..REST - 1]));
        }
    }

    #[test]
    fn a_list_between_two_times_begins_and_ends_there() {
        let at = |opened| sort_key("a", Timestamp(opened), Uuid::max());
        let times = |after, before| {
            let (opened_after, opened_before) = (Some(Timestamp(after)), Some(Timestamp(before)));
            Listing { user_keys: UserKeys::Exactly("a".to_owned()), opened_after, opened_before, ..Listing::default() }
        };
        let found = |after, before| [10, 20, 30].map(|opened| times(after, before).may_follow(&at(opened)));
        assert_eq!(found(0, u64::MAX), [true, true, true]);
        assert_eq!(found(10, 30), [false, true, false]);
        assert_eq!(found(9, 21), [true, true, false]);
        assert_eq!(found(30, 10), [false, false, false]);
    }
}
