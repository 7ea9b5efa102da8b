//! Lists of task ids, packed: a batch record is billed by its size and names every member.
//!
//! The packed form is a run of sections. `0x00 count (u16) count × uuid (16 bytes)`: tasks on their own.
//! `0x01 fanout (16) group (16) count (u16) count × index (u16)`: items of one item group. Numbers are big-endian.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ItemId, TaskId};
use crate::limits::GROUP_ITEMS_MAX;

const SINGLES: u8 = 0;
const ITEMS: u8 = 1;

/// Task ids in a fixed order; the position of an id is its slot. Ids of one item group stand together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(Vec<TaskId>);

/// Bytes are not a packed list of task ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a packed list of task ids (at byte {0})")]
pub struct MembersError(usize);

impl Members {
    /// Puts ids in the order they will keep; a repeated id is kept once.
    pub fn new(ids: impl IntoIterator<Item = TaskId>) -> Self {
        let mut ids: Vec<TaskId> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    /// The ids by slot.
    #[must_use]
    pub fn ids(&self) -> &[TaskId] {
        &self.0
    }

    /// The slot of an id.
    #[must_use]
    pub fn slot(&self, id: &TaskId) -> Option<usize> {
        self.0.binary_search(id).ok()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let section = |id: &TaskId| id.item().map(|item| (item.fanout, item.group));
        let mut bytes = Vec::with_capacity(64 + self.0.len() * 4);
        for run in self.0.chunk_by(|a, b| section(a) == section(b)) {
            // A count is two bytes; longer runs are cut.
            for run in run.chunks(usize::from(u16::MAX)) {
                match section(&run[0]) {
                    None => bytes.push(SINGLES),
                    Some((fanout, group)) => {
                        bytes.push(ITEMS);
                        bytes.extend_from_slice(fanout.as_bytes());
                        bytes.extend_from_slice(group.as_bytes());
                    }
                }
                bytes.extend_from_slice(&u16::try_from(run.len()).unwrap_or(u16::MAX).to_be_bytes());
                for id in run {
                    match id {
                        TaskId::Single(id) => bytes.extend_from_slice(id.as_bytes()),
                        TaskId::Item(item) => bytes.extend_from_slice(&item.index.to_be_bytes()),
                    }
                }
            }
        }
        bytes
    }

    /// Reads the packed form.
    ///
    /// # Errors
    /// The bytes are not one.
    pub fn unpack(bytes: &[u8]) -> Result<Self, MembersError> {
        let mut at = 0;
        let mut ids = Vec::new();
        while at < bytes.len() {
            let mut take = |count: usize| {
                let part = bytes.get(at..at + count).ok_or(MembersError(at))?;
                at += count;
                Ok::<_, MembersError>(part)
            };
            let group = match take(1)?[0] {
                SINGLES => None,
                ITEMS => Some((read_uuid(take(16)?), read_uuid(take(16)?))),
                _ => return Err(MembersError(at - 1)),
            };
            let count = read_u16(take(2)?);
            for _ in 0..count {
                ids.push(match group {
                    None => TaskId::Single(read_uuid(take(16)?)),
                    Some((fanout, group)) => {
                        let index = read_u16(take(2)?);
                        // No item has it: its id could be written, but not read again.
                        if u32::from(index) >= GROUP_ITEMS_MAX {
                            return Err(MembersError(at - 2));
                        }
                        TaskId::Item(ItemId { fanout, group, index })
                    }
                });
            }
        }
        Ok(Self::new(ids))
    }
}

fn read_u16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |number, byte| number << 8 | u16::from(*byte))
}

fn read_uuid(bytes: &[u8]) -> Uuid {
    Uuid::from_slice(bytes).unwrap_or_default()
}

impl FromIterator<TaskId> for Members {
    fn from_iter<I: IntoIterator<Item = TaskId>>(ids: I) -> Self {
        Self::new(ids)
    }
}

/// In messages, the packed form as base64.
impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.pack()))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        Self::unpack(&bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task_id() -> impl Strategy<Value = TaskId> {
        prop_oneof![
            any::<u128>().prop_map(|id| TaskId::Single(Uuid::from_u128(id))),
            (0_u128..3, 0_u128..3, 0_u16..7_168).prop_map(|(fanout, group, index)| TaskId::Item(ItemId {
                fanout: Uuid::from_u128(fanout),
                group: Uuid::from_u128(group),
                index
            })),
        ]
    }

    proptest! {
        #[test]
        fn round_trips(ids in prop::collection::vec(task_id(), 0..300)) {
            let members = Members::new(ids);
            prop_assert_eq!(&Members::unpack(&members.pack()).unwrap(), &members);
            let json = serde_json::to_string(&members).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Members>(&json).unwrap(), &members);
            for (slot, id) in members.ids().iter().enumerate() {
                prop_assert_eq!(members.slot(id), Some(slot));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Members::unpack(&bytes);
        }
    }

    #[test]
    fn an_index_that_no_item_has_is_refused() {
        let packed = |index: u16| [&[ITEMS][..], &[0; 32], &[0, 1], &index.to_be_bytes()].concat();
        assert_eq!(Members::unpack(&packed(7_167)).unwrap().len(), 1);
        assert_eq!(Members::unpack(&packed(7_168)), Err(MembersError(35)));
        assert_eq!(Members::unpack(&packed(u16::MAX)), Err(MembersError(35)));
    }

    #[test]
    fn a_hundred_items_of_one_group_take_few_bytes() {
        let item = |index| TaskId::Item(ItemId { fanout: Uuid::nil(), group: Uuid::nil(), index });
        assert_eq!(Members::new((0..100).map(item)).pack().len(), 235);
    }
}
