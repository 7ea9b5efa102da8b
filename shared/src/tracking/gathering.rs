//! Acks that are sent on in place of being written. An invocation that has a few items of each of many groups would clear a few
//! bits with each write. It sends them on, as bitfields in few messages; the next invocation adds its own, and a group is written once
//! enough of its items have come together. No I/O.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::ack::out_of_range;
use super::acks::Acks;
use crate::bits::Bits;
use crate::ids::{GroupId, ItemId};
use crate::limits::{
    GATHERED_BYTES_MIN, GATHERED_GROUPS_MIN, GATHERED_ITEMS_MIN, GATHERED_SPREAD_MIN, GATHERED_TIMES_MAX,
    MESSAGE_BYTES_MAX,
};
use crate::messages::{AckEntry, AckRequest, GroupMask};
use crate::store::groups::{GroupRecord, Mask, clear};

/// Bytes of an item's id in a message, at most, with quotes and comma.
const ID_BYTES: usize = 36 + 1 + 36 + 1 + 4 + 3;

/// Bytes of a mask in a message, beside its base64.
const MASK_BYTES: usize = 36 + 1 + 36 + r#"{"group":"","mask":""},"#.len();

/// Bytes of a message that are not its entries, at most.
const FRAME_BYTES: usize = 128;

/// When an invocation sends acks on. The limits are the default; tests gather less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Bytes of its messages, at least.
    pub bytes: usize,
    /// Groups that it sends on, at least.
    pub groups: usize,
    /// Items of a group that are worth a write.
    pub items: u64,
    /// Items of each group that it has on average, at least.
    pub spread: u64,
    /// How often an ack is sent on, at most.
    pub times: u32,
}

impl Default for Gathering {
    fn default() -> Self {
        Self {
            bytes: GATHERED_BYTES_MIN,
            groups: GATHERED_GROUPS_MIN,
            items: GATHERED_ITEMS_MIN,
            spread: GATHERED_SPREAD_MIN,
            times: GATHERED_TIMES_MAX,
        }
    }
}

/// Whether a name is that of a group, and not of a small fan-out, whose header is written in any case.
fn has_record((fanout, group): &(Uuid, Uuid)) -> bool {
    fanout != group
}

impl Gathering {
    /// Whether an invocation whose messages have so many bytes, and were sent on so often, is to send acks on.
    #[must_use]
    pub fn helps(&self, bytes: usize, gathered: u32, acks: &Acks) -> bool {
        if bytes < self.bytes || gathered >= self.times || acks.len() < self.groups {
            return false;
        }
        let (mut groups, mut items) = (0, 0);
        for (_, mask) in acks.iter().filter(|(name, _)| has_record(name)) {
            groups += 1;
            items += mask.done.count();
        }
        groups >= self.groups && items >= self.spread * groups as u64
    }

    /// What is written now, and what is sent on. Written are groups of which enough items are newly done, or the last ones; and
    /// whatever needs another look than at its bits: acks that are refused, and failures that are counted.
    pub(super) fn split(&self, acks: &Acks, groups: &BTreeMap<Uuid, GroupRecord>) -> (Acks, Acks) {
        let (mut now, mut later) = (Acks::new(), Acks::new());
        for (name, mask) in acks {
            let group = groups.get(&name.1).filter(|group| has_record(name) && group.fanout == name.0);
            match group.filter(|group| self.waits(group, mask)) {
                Some(group) => later.insert(*name, open(mask, &group.pending)),
                None => now.insert(*name, mask.clone()),
            };
        }
        if later.len() < self.groups {
            now.append(&mut later);
        }
        (now, later)
    }

    fn waits(&self, group: &GroupRecord, mask: &Mask) -> bool {
        let cleared = clear(group, mask);
        let few = cleared.newly > 0 && cleared.newly < self.items && !cleared.pending.is_zero();
        let counts = group.counted && cleared.failed != group.failed;
        few && !counts && out_of_range(group, mask).is_none()
    }
}

/// What a mask says of items that are not done.
fn open(mask: &Mask, pending: &Bits) -> Mask {
    let Mask { done, failed, duplicates, missing } = mask;
    Mask {
        done: done.and(pending),
        failed: failed.and(pending),
        duplicates: duplicates.and(pending),
        missing: missing.and(pending),
    }
}

/// The messages that say what these acks do, each as large as it may be. Items that are missing are not among them: only a batch, or whoever
/// ends a fan-out, says that, and neither is sent on.
#[must_use]
pub fn gathered_requests(acks: &Acks, gathered: u32) -> Vec<AckRequest> {
    let mut requests = Vec::new();
    let new = || AckRequest { gathered, ..AckRequest::default() };
    let (mut request, mut bytes) = (new(), FRAME_BYTES);
    for (&(fanout, group), mask) in acks {
        let group = GroupId { fanout, group };
        let succeeded = mask.done.minus(&mask.failed).minus(&mask.duplicates);
        let all = [&succeeded, &mask.failed, &mask.duplicates].map(|items| entries(group, items));
        let more: usize = all.iter().map(|(_, bytes)| bytes).sum();
        if bytes + more > MESSAGE_BYTES_MAX {
            requests.push(std::mem::replace(&mut request, new()));
            bytes = FRAME_BYTES;
        }
        bytes += more;
        let [(items, _), (failed, _), (duplicates, _)] = all;
        request.items.extend(items);
        request.failed.extend(failed);
        request.duplicates.extend(duplicates);
    }
    if bytes > FRAME_BYTES {
        requests.push(request);
    }
    requests
}

/// Items of a group, one by one or as a bitfield, whichever is shorter, and how many bytes that takes at most.
fn entries(group: GroupId, items: &Bits) -> (Vec<AckEntry>, usize) {
    let Some(last) = items.last() else { return (Vec::new(), 0) };
    let (one_by_one, mask) = (ID_BYTES * items.count() as usize, MASK_BYTES + 4 * (last / 8 + 1).div_ceil(3));
    if one_by_one > mask {
        let mask_of = Bits::from_bytes(items.as_bytes()[..=last / 8].to_vec());
        return (vec![AckEntry::Mask(GroupMask { group, mask: mask_of })], mask);
    }
    let id = |index: usize| {
        let index = u16::try_from(index).ok()?;
        Some(AckEntry::Item(ItemId { fanout: group.fanout, group: group.group, index }))
    };
    (items.iter().filter_map(id).collect(), one_by_one)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::super::acks::collect;
    use super::*;
    use crate::clock::Timestamp;
    use crate::limits::{GROUP_ITEMS_MAX, MASK_BYTES_MAX};

    const FANOUT: Uuid = Uuid::from_u128(1);

    fn bits(indices: impl IntoIterator<Item = usize>) -> Bits {
        indices.into_iter().collect()
    }

    fn mask(done: impl IntoIterator<Item = usize>) -> Mask {
        Mask { done: bits(done), ..Mask::default() }
    }

    /// Acks of so many items of each of so many groups, and these groups.
    fn spread(groups: u128, items: usize) -> (Acks, BTreeMap<Uuid, GroupRecord>) {
        let names: Vec<Uuid> = (2..groups + 2).map(Uuid::from_u128).collect();
        let record = |id: &Uuid| (*id, GroupRecord::new(*id, FANOUT, GROUP_ITEMS_MAX, Timestamp(0)));
        (names.iter().map(|id| ((FANOUT, *id), mask(0..items))).collect(), names.iter().map(record).collect())
    }

    #[test]
    fn only_full_invocations_that_meet_many_groups_send_on() {
        let gathering = Gathering::default();
        let (acks, _) = spread(140, 40);
        let (half, full) = (3 * 1_024 * 1_024, 6 * 1_024 * 1_024);
        assert!(gathering.helps(full, 0, &acks) && gathering.helps(half, 31, &acks));
        assert!(!gathering.helps(half - 1, 0, &acks), "nothing else is waiting");
        assert!(!gathering.helps(full, 32, &acks), "often enough");
        assert!(!gathering.helps(full, 0, &spread(63, 40).0), "few groups");
        assert!(!gathering.helps(full, 0, &spread(5_600, 1).0), "the next invocation would meet others");
        let small: Acks = (0..5_000).map(|n| ((Uuid::from_u128(n), Uuid::from_u128(n)), mask(0..2))).collect();
        assert!(!gathering.helps(full, 0, &small), "small fan-outs have no groups");
    }

    #[test]
    fn what_is_worth_a_write_is_written() {
        let (mut acks, mut groups) = spread(100, 40);
        let name = |n: u128| (FANOUT, Uuid::from_u128(n));
        // Enough items; the last ones; nothing new; beyond the group; no such group; failures that are counted; a small fan-out.
        acks.insert(name(2), mask(0..96));
        groups.get_mut(&name(3).1).unwrap().pending = bits(5..40);
        groups.get_mut(&name(4).1).unwrap().pending = bits(40..90);
        groups.get_mut(&name(5).1).unwrap().size = 30;
        groups.remove(&name(6).1);
        groups.get_mut(&name(7).1).unwrap().counted = true;
        acks.insert(name(7), Mask { failed: bits([3]), ..mask(0..40) });
        groups.get_mut(&name(8).1).unwrap().counted = true;
        acks.insert((FANOUT, FANOUT), mask([1]));
        groups.get_mut(&name(9).1).unwrap().pending = bits(30..90);
        let (now, later) = Gathering::default().split(&acks, &groups);
        let written: Vec<_> = (2..=7).map(name).chain([(FANOUT, FANOUT)]).collect();
        assert_eq!(now.len(), written.len());
        assert!(written.iter().all(|name| now.get(name) == acks.get(name)));
        assert_eq!(later.len(), 94);
        assert_eq!(later[&name(9)], mask(30..40), "what is done is not said again");
        let (now, later) = Gathering { groups: 95, ..Gathering::default() }.split(&acks, &groups);
        assert_eq!((now.len(), later.len()), (101, 0), "too few to be sent on");
    }

    /// The largest that there are, and more than one message takes.
    #[test]
    fn messages_are_as_large_as_they_may_be() {
        let all = bits((0..MASK_BYTES_MAX).map(|byte| 8 * byte + 7));
        let full = Mask { failed: all.clone(), ..mask(all.iter().map(|index| index - 1).chain(all.iter())) };
        let acks: Acks = (0..300).map(|n| ((FANOUT, Uuid::from_u128(n)), full.clone())).collect();
        let requests = gathered_requests(&acks, 1);
        let sizes: Vec<usize> = requests.iter().map(|it| serde_json::to_string(it).unwrap().len()).collect();
        assert!(sizes.iter().all(|bytes| *bytes <= MESSAGE_BYTES_MAX), "{sizes:?}");
        assert!(sizes[..sizes.len() - 1].iter().all(|bytes| *bytes > MESSAGE_BYTES_MAX - 4_000), "{sizes:?}");
        assert!(gathered_requests(&Acks::new(), 1).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_sent_on_is_what_was_acked(
            groups in prop::collection::btree_map(2_u128..9, prop::collection::btree_map(0_usize..7_168, 0_u8..3, 1..40), 0..6),
        ) {
            let mut acks = Acks::new();
            for (group, items) in &groups {
                let of = |said: u8| bits(items.iter().filter(|(_, it)| **it == said).map(|(index, _)| *index));
                let mask = Mask { failed: of(1), duplicates: of(2), ..mask(items.keys().copied()) };
                acks.insert((FANOUT, Uuid::from_u128(*group)), mask);
            }
            let mut again = Acks::new();
            for request in gathered_requests(&acks, 3) {
                prop_assert_eq!(request.gathered, 3);
                collect(&mut again, &request);
            }
            prop_assert_eq!(again, acks);
        }
    }
}
