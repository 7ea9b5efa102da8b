//! Messages that ack items, in each of the shapes that an ack may have.

use std::collections::BTreeMap;

use clap::ValueEnum;
use fanfold::bits::Bits;
use fanfold::ids::{GroupId, ItemId};
use fanfold::messages::{AckEntry, AckRequest, GroupMask};

use crate::Outcome;

/// Bytes of a message of SQS, at most, as everywhere here.
const MESSAGE_BYTES: usize = 256 * 1024;

/// Bytes that a mask takes in a message, at most.
const MASK_BYTES: usize = 1_320;

/// How a message names items.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shape {
    /// One by one.
    Ids,
    /// By a bitfield for each group.
    Masks,
}

/// The messages that say of items whether they failed: one, if all fits.
pub(super) fn of(acks: &[(ItemId, bool)], shape: Shape) -> Outcome<Vec<String>> {
    match shape {
        Shape::Ids => {
            let of = |failed| acks.iter().filter(move |ack| ack.1 == failed).map(|ack| ack.0.into()).collect();
            let request = AckRequest { items: of(false), failed: of(true), ..AckRequest::default() };
            Ok(vec![serde_json::to_string(&request)?])
        }
        Shape::Masks => {
            let mut groups: BTreeMap<(GroupId, bool), Bits> = BTreeMap::new();
            for (ItemId { fanout, group, index }, failed) in acks {
                let group = GroupId { fanout: *fanout, group: *group };
                groups.entry((group, *failed)).or_default().set(usize::from(*index));
            }
            let groups: Vec<_> = groups.into_iter().collect();
            groups.chunks(MESSAGE_BYTES / MASK_BYTES).map(masks).collect()
        }
    }
}

fn masks(groups: &[((GroupId, bool), Bits)]) -> Outcome<String> {
    let of = |failed| {
        let wanted = groups.iter().filter(move |((_, fails), _)| *fails == failed);
        wanted.map(|((group, _), mask)| AckEntry::Mask(GroupMask { group: *group, mask: mask.clone() })).collect()
    };
    Ok(serde_json::to_string(&AckRequest { items: of(false), failed: of(true), ..AckRequest::default() })?)
}
