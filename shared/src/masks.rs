//! Lists of records with some of their slots each, packed: which slots of a bundle each batch has claimed, and which slots of
//! each bundle a batch is going to claim.
//!
//! The packed form is a run of `id (16 bytes) length (u16, big-endian) length × byte`, the bytes being a bitfield without its
//! trailing zero bytes.

use uuid::Uuid;

use crate::bits::Bits;

/// Records, each with some of its slots, in the order they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masks(Vec<(Uuid, Bits)>);

/// Bytes are not a packed list of masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a packed list of ids with slots (at byte {0})")]
pub struct MasksError(usize);

/// Bytes that one entry takes beside its bitfield.
pub(crate) const ENTRY_BYTES: usize = 18;

impl Masks {
    /// The slots of a record; none, if it is not listed.
    #[must_use]
    pub fn get(&self, id: Uuid) -> Option<&Bits> {
        self.0.iter().find(|(listed, _)| *listed == id).map(|(_, slots)| slots)
    }

    /// Adds slots of a record.
    pub fn add(&mut self, id: Uuid, slots: &Bits) {
        match self.0.iter_mut().find(|(listed, _)| *listed == id) {
            Some((_, listed)) => listed.merge(slots),
            None => self.0.push((id, slots.clone())),
        }
    }

    /// The record that has a slot.
    #[must_use]
    pub fn holder(&self, slot: usize) -> Option<Uuid> {
        self.0.iter().find(|(_, slots)| slots.get(slot)).map(|(id, _)| *id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, &Bits)> {
        self.0.iter().map(|(id, slots)| (*id, slots))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (id, slots) in &self.0 {
            let slots = slots.as_bytes();
            let used = slots.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.extend_from_slice(id.as_bytes());
            bytes.extend_from_slice(&u16::try_from(used).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend_from_slice(&slots[..used.min(usize::from(u16::MAX))]);
        }
        bytes
    }

    /// Reads the packed form.
    ///
    /// # Errors
    /// The bytes are not one.
    pub fn unpack(bytes: &[u8]) -> Result<Self, MasksError> {
        let mut masks = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let entry = || {
                let head = bytes.get(at..at + ENTRY_BYTES)?;
                let id = Uuid::from_slice(&head[..16]).ok()?;
                let length = usize::from(u16::from_be_bytes([head[16], head[17]]));
                let slots = bytes.get(at + ENTRY_BYTES..at + ENTRY_BYTES + length)?;
                Some((id, Bits::from_bytes(slots.to_vec())))
            };
            let (id, slots) = entry().ok_or(MasksError(at))?;
            at += ENTRY_BYTES + slots.as_bytes().len();
            masks.push((id, slots));
        }
        Ok(Self(masks))
    }
}

impl FromIterator<(Uuid, Bits)> for Masks {
    fn from_iter<I: IntoIterator<Item = (Uuid, Bits)>>(entries: I) -> Self {
        let mut masks = Self::default();
        entries.into_iter().for_each(|(id, slots)| masks.add(id, &slots));
        masks
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn slots() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(0_usize..400, 0..20)
    }

    proptest! {
        #[test]
        fn round_trips(entries in prop::collection::btree_map(any::<u128>(), slots(), 0..8)) {
            let masks: Masks =
                entries.iter().map(|(id, slots)| (Uuid::from_u128(*id), slots.iter().copied().collect())).collect();
            let read = Masks::unpack(&masks.pack()).unwrap();
            for (id, slots) in &entries {
                let kept = read.get(Uuid::from_u128(*id)).unwrap();
                prop_assert_eq!(&kept.iter().collect::<BTreeSet<_>>(), slots);
            }
            prop_assert_eq!(read.iter().count(), entries.len());
            prop_assert_eq!(read.pack(), masks.pack());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Masks::unpack(&bytes);
        }
    }

    #[test]
    fn a_slot_has_one_holder() {
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let masks: Masks = [(first, Bits::from_iter([0, 9])), (second, Bits::from_iter([3]))].into_iter().collect();
        assert_eq!([0, 3, 9, 4].map(|slot| masks.holder(slot)), [Some(first), Some(second), Some(first), None]);
        assert_eq!(masks.pack().len(), 2 * ENTRY_BYTES + 3);
    }
}
