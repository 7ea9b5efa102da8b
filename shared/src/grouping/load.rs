//! What tasks take of a batch, known since they were registered: bytes, weight, and a value that only one member may have. Also
//! whether their lane does not linger while they wait, and how many members a batch with them may have.
//!
//! A record has a column for each, by slot, but only if some task differs from a small one without the others. A column is a
//! run of `count value`, both variable-length numbers (seven bits per byte, the lowest first); the column of hashes, which are
//! seldom alike, is a run of `hash (u32, big-endian)`, and that of tasks that flush is a bitfield.

use std::num::{NonZeroU16, NonZeroU32};

use md5::{Digest, Md5};

use crate::bits::Bits;
use crate::limits::{SLOTS_PER_RECORD_MAX, SMALL_TASK_BYTES};
use crate::policy::Weight;

/// What a task takes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes in a call.
    pub bytes: u32,
    /// Its weight, if its policy had one.
    pub weight: Weight,
    /// The hash of its `distinct` value, if its policy had one: two members of a batch never have the same hash. Two different
    /// values may; then one of the tasks takes the next batch.
    pub distinct: Option<NonZeroU32>,
    /// Whether its lane does not linger while it waits, if its policy said when.
    pub flushes: bool,
    /// How many members a batch with it may have, if fewer than the policy says: it was reissued so.
    pub at_most: Option<NonZeroU16>,
}

impl Default for Load {
    fn default() -> Self {
        Self { bytes: SMALL_TASK_BYTES, weight: Weight::default(), distinct: None, flushes: false, at_most: None }
    }
}

/// The hash of a value that only one member of a batch may have. It is stored, so it must never change.
#[must_use]
pub fn distinct(value: &str) -> NonZeroU32 {
    let mut first = [0; 4];
    first.iter_mut().zip(Md5::digest(value)).for_each(|(to, byte)| *to = byte);
    NonZeroU32::new(u32::from_be_bytes(first)).unwrap_or(NonZeroU32::MIN)
}

/// What the tasks of a record take, by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads(Vec<Load>);

/// Bytes are not a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a column of numbers (at byte {0})")]
pub struct ColumnError(usize);

/// The columns of a record; one that is empty is not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) bytes: Vec<u8>,
    pub(crate) weights: Vec<u8>,
    pub(crate) distinct: Vec<u8>,
    pub(crate) flushes: Vec<u8>,
    pub(crate) at_most: Vec<u8>,
}

impl Columns {
    /// Bytes of all of them.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.weights.len() + self.distinct.len() + self.flushes.len() + self.at_most.len()
    }
}

impl Loads {
    /// The load of a slot.
    #[must_use]
    pub fn get(&self, slot: usize) -> Load {
        self.0.get(slot).copied().unwrap_or_default()
    }

    /// The columns of these loads.
    pub(crate) fn columns(&self) -> Columns {
        let small = Load::default();
        Columns {
            bytes: pack(self.0.iter().map(|load| u64::from(load.bytes)), u64::from(small.bytes)),
            weights: pack(self.0.iter().map(|load| load.weight.0), small.weight.0),
            distinct: hashes(&self.0),
            flushes: Bits::from_iter(self.0.iter().enumerate().filter(|(_, load)| load.flushes).map(|(slot, _)| slot))
                .as_bytes()
                .to_vec(),
            at_most: pack(self.0.iter().map(|load| load.at_most.map_or(0, |most| u64::from(most.get()))), 0),
        }
    }

    /// Reads columns.
    pub(crate) fn of(columns: &Columns) -> Result<Self, ColumnError> {
        let (bytes, weights) = (unpack(&columns.bytes)?, unpack(&columns.weights)?);
        let at_most = unpack(&columns.at_most)?;
        let (hashes, rest) = columns.distinct.as_chunks::<4>();
        if !rest.is_empty() || hashes.len() > SLOTS_PER_RECORD_MAX {
            return Err(ColumnError(hashes.len() * 4));
        }
        let flushes = Bits::from_bytes(columns.flushes.clone());
        let flushing = flushes.last().map_or(0, |last| last + 1);
        if flushing > SLOTS_PER_RECORD_MAX {
            return Err(ColumnError(SLOTS_PER_RECORD_MAX / 8));
        }
        let small = Load::default();
        let load = |slot: usize| Load {
            bytes: bytes.get(slot).map_or(small.bytes, |bytes| u32::try_from(*bytes).unwrap_or(u32::MAX)),
            weight: weights.get(slot).copied().map_or(small.weight, Weight),
            distinct: hashes.get(slot).and_then(|hash| NonZeroU32::new(u32::from_be_bytes(*hash))),
            flushes: flushes.get(slot),
            at_most: at_most.get(slot).and_then(|most| NonZeroU16::new(u16::try_from(*most).unwrap_or(u16::MAX))),
        };
        let listed = bytes.len().max(weights.len()).max(hashes.len()).max(flushing).max(at_most.len());
        Ok((0..listed).map(load).collect())
    }
}

impl FromIterator<Load> for Loads {
    fn from_iter<I: IntoIterator<Item = Load>>(loads: I) -> Self {
        let mut loads: Vec<Load> = loads.into_iter().collect();
        // Small ones at the end are not listed.
        let listed = loads.iter().rposition(|load| *load != Load::default()).map_or(0, |last| last + 1);
        loads.truncate(listed);
        Self(loads)
    }
}

/// The column of hashes; empty, if there are none.
fn hashes(loads: &[Load]) -> Vec<u8> {
    if loads.iter().all(|load| load.distinct.is_none()) {
        return Vec::new();
    }
    loads.iter().flat_map(|load| load.distinct.map_or(0, NonZeroU32::get).to_be_bytes()).collect()
}

/// A column; empty, if all its values are `usual`.
fn pack(values: impl Iterator<Item = u64>, usual: u64) -> Vec<u8> {
    let values: Vec<u64> = values.collect();
    let mut column = Vec::new();
    if values.iter().any(|value| *value != usual) {
        for run in values.chunk_by(|a, b| a == b) {
            put(&mut column, run.len() as u64);
            put(&mut column, run[0]);
        }
    }
    column
}

fn put(column: &mut Vec<u8>, mut number: u64) {
    while let rest = number >> 7
        && rest > 0
    {
        column.push(number.to_le_bytes()[0] | 0x80);
        number = rest;
    }
    column.push(number.to_le_bytes()[0]);
}

fn unpack(column: &[u8]) -> Result<Vec<u64>, ColumnError> {
    let (mut values, mut at) = (Vec::new(), 0);
    while at < column.len() {
        let begins = at;
        let count = take(column, &mut at)?;
        let value = take(column, &mut at)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > SLOTS_PER_RECORD_MAX - values.len() {
            return Err(ColumnError(begins));
        }
        values.extend(std::iter::repeat_n(value, count));
    }
    Ok(values)
}

fn take(column: &[u8], at: &mut usize) -> Result<u64, ColumnError> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *column.get(*at).ok_or(ColumnError(*at))?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ColumnError(*at))
}

#[cfg(test)]
pub(crate) fn any_loads() -> impl proptest::strategy::Strategy<Value = Loads> {
    use proptest::prelude::*;
    let (bytes, weight) = (prop_oneof![Just(SMALL_TASK_BYTES), 1_u32..200_000], prop_oneof![Just(0_u64), any::<u64>()]);
    let at_most = prop_oneof![Just(0_u16), any::<u16>()];
    let load = (bytes, weight, prop_oneof![Just(0_u32), any::<u32>()], any::<bool>(), at_most);
    let load = load.prop_map(|(bytes, weight, distinct, flushes, at_most)| Load {
        bytes,
        weight: Weight(weight),
        distinct: NonZeroU32::new(distinct),
        flushes,
        at_most: NonZeroU16::new(at_most),
    });
    prop::collection::vec(load, 0..9).prop_map(|loads| loads.into_iter().collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(loads in any_loads()) {
            prop_assert_eq!(Loads::of(&loads.columns()).unwrap(), loads);
        }

        #[test]
        fn any_bytes_are_read_or_refused(column in prop::collection::vec(any::<u8>(), 0..40)) {
            let columns = Columns { bytes: column.clone(), weights: column.clone(), distinct: column.clone(), flushes: column.clone(), at_most: column };
            if let Ok(loads) = Loads::of(&columns) {
                prop_assert_eq!(Loads::of(&loads.columns()).unwrap(), loads);
            }
        }
    }

    #[test]
    fn small_tasks_without_weight_are_not_listed() {
        let small: Loads = [Load::default(); 300].into_iter().collect();
        assert_eq!((small.columns(), &small), (Columns::default(), &Loads::default()));
        assert_eq!(small.get(7), Load::default());
        // Tasks of one kind are mostly alike: they take some bytes together.
        let alike: Loads = [Load { bytes: 512, weight: Weight(3_000), ..Load::default() }; 300].into_iter().collect();
        assert_eq!(alike.columns().len(), 8);
        // One that flushes takes a bit for itself and each before it.
        let one = |slot: usize| Load { flushes: slot == 9, ..Load::default() };
        assert_eq!((0..300).map(one).collect::<Loads>().columns().len(), 2);
    }

    #[test]
    fn a_column_that_is_too_long_is_refused() {
        let mut column = Vec::new();
        put(&mut column, u64::MAX);
        put(&mut column, 1);
        let read = |bytes: &[u8]| Loads::of(&Columns { bytes: bytes.to_vec(), ..Columns::default() });
        assert_eq!(read(&column), Err(ColumnError(0)));
        assert_eq!(read(&column[..4]), Err(ColumnError(4)), "it is cut off");
    }

    /// Hashes stand in tables.
    #[test]
    fn a_value_keeps_its_hash() {
        let hashes = ["", "ORD-1", "é"].map(|value| distinct(value).get());
        assert_eq!(hashes, [0xd41d_8cd9, 0xa256_0d5a, 0x66dd_cd97]);
    }
}
