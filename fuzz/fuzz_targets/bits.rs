//! Bitfields against a set of numbers, and acks against a list of outcomes.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use fanfold::bits::Bits;
use fanfold::clock::Timestamp;
use fanfold::limits::GROUP_ITEMS_MAX;
use fanfold::store::groups::{GroupRecord, Mask, clear};
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

fuzz_target!(|bytes: &[u8]| {
    sets(bytes);
    acks(bytes);
});

/// What the bytes say, three at a time: what to do, and with which index. Some beyond a group's end are among them.
fn steps(bytes: &[u8]) -> impl Iterator<Item = (u8, usize)> + '_ {
    bytes.chunks_exact(3).map(|step| {
        let index = usize::from(u16::from_be_bytes([step[1], step[2]])) % (GROUP_ITEMS_MAX as usize + 9);
        (step[0], index)
    })
}

fn sets(bytes: &[u8]) {
    let (mut left, mut right) = (Bits::default(), Bits::default());
    let (mut left_model, mut right_model) = (BTreeSet::new(), BTreeSet::new());
    for (what, index) in steps(bytes) {
        match what % 6 {
            0 => {
                left.set(index);
                left_model.insert(index);
            }
            1 => {
                right.set(index);
                right_model.insert(index);
            }
            2 => {
                left.merge(&right);
                left_model.extend(&right_model);
            }
            3 => {
                left = left.and(&right);
                left_model.retain(|index| right_model.contains(index));
            }
            4 => {
                left = left.minus(&right);
                left_model.retain(|index| !right_model.contains(index));
            }
            _ => {
                (left, right) = (Bits::ones(index), left);
                (left_model, right_model) = ((0..index).collect(), left_model);
            }
        }
        assert_eq!(left.get(index), left_model.contains(&index));
    }
    assert!(left.iter().eq(left_model.iter().copied()));
    assert_eq!(left.count(), left_model.len() as u64);
    assert_eq!(left.last(), left_model.last().copied());
    assert_eq!(left.is_zero(), left_model.is_empty());
    assert_eq!(Bits::from_bytes(left.as_bytes().to_vec()), left);
}

/// What an ack says of an item; of several in one request the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reported {
    Succeeded,
    Missing,
    Duplicate,
    Failed,
}

/// A group's acks, in any order and number: an item has the outcome that was reported first, and is counted once.
fn acks(bytes: &[u8]) {
    let Some((size, rest)) = bytes.split_first_chunk::<2>() else { return };
    let size = usize::from(u16::from_be_bytes(*size)) % (GROUP_ITEMS_MAX as usize + 1);
    let mut outcomes: Vec<Option<Reported>> = vec![None; size];
    let mut group = GroupRecord::new(Uuid::nil(), Uuid::nil(), size as u32, Timestamp(0));
    let mut newly = 0;
    for acks in rest.chunks(12) {
        let (mut mask, mut reported) = (Mask::default(), BTreeMap::new());
        for (what, index) in steps(acks) {
            mask.done.set(index);
            let what = match what % 4 {
                0 => Reported::Succeeded,
                1 => Reported::Duplicate,
                2 => Reported::Missing,
                _ => Reported::Failed,
            };
            match what {
                Reported::Succeeded => {}
                Reported::Missing => mask.missing.set(index),
                Reported::Duplicate => mask.duplicates.set(index),
                Reported::Failed => mask.failed.set(index),
            }
            let strongest = reported.entry(index).or_insert(what);
            *strongest = (*strongest).max(what);
        }
        for (index, what) in reported.into_iter().filter(|(index, _)| *index < size) {
            outcomes[index].get_or_insert(what);
        }
        let cleared = clear(&group, &mask);
        newly += cleared.newly;
        (group.pending, group.failed) = (cleared.pending, cleared.failed);
        (group.duplicates, group.missing) = (cleared.duplicates, cleared.missing);
    }
    for (index, outcome) in outcomes.iter().enumerate() {
        assert_eq!(group.pending.get(index), outcome.is_none());
        assert_eq!(group.failed.get(index), *outcome == Some(Reported::Failed));
        assert_eq!(group.duplicates.get(index), *outcome == Some(Reported::Duplicate));
        assert_eq!(group.missing.get(index), *outcome == Some(Reported::Missing));
    }
    assert_eq!(newly, outcomes.iter().flatten().count() as u64);
    assert_eq!(group.pending.count() + newly, size as u64);
    assert!(
        [&group.failed, &group.duplicates, &group.missing]
            .iter()
            .all(|bits| bits.last().is_none_or(|last| last < size))
    );
}
