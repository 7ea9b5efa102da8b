//! Values for round trips of records.

use proptest::prelude::*;
use uuid::Uuid;

use crate::bits::Bits;
use crate::clock::Timestamp;

pub(super) fn any_id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

pub(super) fn any_time() -> impl Strategy<Value = Timestamp> {
    (0..u64::MAX / 2).prop_map(Timestamp)
}

pub(super) fn any_bits() -> impl Strategy<Value = Bits> {
    prop::collection::btree_set(0_usize..90, 0..9).prop_map(|set| set.into_iter().collect())
}
