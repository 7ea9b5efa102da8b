//! Values for tests.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::ids::{ItemId, TaskId};
use crate::lane::Lane;
use crate::policy::Policy;

/// A lane of parcels.
pub(crate) fn lane() -> Lane {
    "parcel:0:NY".parse().unwrap()
}

/// A policy of parcels by state, with these changes.
pub(crate) fn parcels(changes: Value) -> Policy {
    let mut policy = json!({"kind": "parcel", "target": "content.state", "batch_api": {"command": ["x"]}});
    policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(policy).unwrap()
}

pub(crate) fn any_id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

pub(crate) fn any_time() -> impl Strategy<Value = Timestamp> {
    (0..u64::MAX / 2).prop_map(Timestamp)
}

pub(crate) fn any_bits() -> impl Strategy<Value = Bits> {
    prop::collection::btree_set(0_usize..90, 0..9).prop_map(|set| set.into_iter().collect())
}

pub(crate) fn any_task() -> impl Strategy<Value = TaskId> {
    let item = |(fanout, group, index)| TaskId::Item(ItemId { fanout, group, index });
    prop_oneof![any_id().prop_map(TaskId::Single), (any_id(), any_id(), 0_u16..7_168).prop_map(item)]
}

pub(crate) fn any_lane() -> impl Strategy<Value = Lane> {
    "[a-z]{1,9}:(0|[1-9][0-9]?):[a-zA-Z:]{0,9}".prop_filter_map("no lane", |lane| lane.parse().ok())
}
