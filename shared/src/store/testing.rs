//! Values for round trips of records.

use proptest::prelude::*;
use uuid::Uuid;

use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemId, TaskId};
use crate::lane::Lane;

pub(super) fn any_id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

pub(super) fn any_time() -> impl Strategy<Value = Timestamp> {
    (0..u64::MAX / 2).prop_map(Timestamp)
}

pub(super) fn any_bits() -> impl Strategy<Value = Bits> {
    prop::collection::btree_set(0_usize..90, 0..9).prop_map(|set| set.into_iter().collect())
}

pub(super) fn any_task() -> impl Strategy<Value = TaskId> {
    let item = |(fanout, group, index)| TaskId::Item(ItemId { fanout, group, index });
    prop_oneof![any_id().prop_map(TaskId::Single), (any_id(), any_id(), 0_u16..7_168).prop_map(item)]
}

pub(super) fn any_lane() -> impl Strategy<Value = Lane> {
    "[a-z]{1,9}:(0|[1-9][0-9]?):[a-zA-Z:]{0,9}".prop_filter_map("no lane", |lane| lane.parse().ok())
}
