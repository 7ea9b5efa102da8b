//! The shapes that an ack of the same items may have: ids, ranges, bitfields.

use std::collections::BTreeMap;

use fanfold::bits::Bits;
use fanfold::ids::{GroupId, ItemId, ItemRange};
use fanfold::messages::{AckEntry, GroupMask};

use crate::dice::Dice;

/// These items, each group of them in one of the shapes.
pub(crate) fn entries(dice: &Dice, items: &[ItemId]) -> Vec<AckEntry> {
    let mut groups: BTreeMap<GroupId, Bits> = BTreeMap::new();
    for ItemId { fanout, group, index } in items {
        groups.entry(GroupId { fanout: *fanout, group: *group }).or_default().set(usize::from(*index));
    }
    groups.into_iter().flat_map(|(group, mask)| shape(dice, group, mask)).collect()
}

fn shape(dice: &Dice, group: GroupId, mask: Bits) -> Vec<AckEntry> {
    let item = |index: usize| {
        let index = index.try_into().unwrap_or(u16::MAX);
        ItemId { fanout: group.fanout, group: group.group, index }
    };
    match dice.below(3) {
        0 => mask.iter().map(|index| AckEntry::Item(item(index))).collect(),
        1 => {
            let range = |(first, last)| AckEntry::Range(ItemRange { first: item(first), last: item(last).index });
            mask.runs().map(range).collect()
        }
        _ => vec![AckEntry::Mask(GroupMask { group, mask })],
    }
}
