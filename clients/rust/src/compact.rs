//! Packs acks into messages, as item ids, ranges or masks, whichever is shortest.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::ids::{GroupName, Item};

/// The outcome of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
}

/// An entry of an ack: the items that it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// An item, or a range of items of one group.
    Text(String),
    /// Items of one group as a bitfield: item i is bit i % 8 of byte i / 8.
    Mask {
        /// `<fanout>:<group>`.
        group: String,
        /// Standard base64.
        mask: String,
    },
}

impl From<Item> for Entry {
    fn from(item: Item) -> Self {
        Self::Text(item.to_string())
    }
}

impl Entry {
    /// Bytes of the entry in a message, with the comma after it.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 3,
            Self::Mask { mask, .. } => MASK_BYTES + mask.len(),
        }
    }
}

/// A group as text, twice a UUID of 36 characters.
const GROUP_BYTES: usize = 73;
const ID_BYTES: usize = GROUP_BYTES + ":7167".len() + "\"\",".len();
const MASK_BYTES: usize = GROUP_BYTES + r#"{"group":"","mask":""},"#.len();
const FRAME_BYTES: usize = r#"{"items":[],"failed":[]}"#.len();

/// Acks by group and index.
pub(crate) type Acks = BTreeMap<GroupName, BTreeMap<u16, Outcome>>;

/// A message with its acks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AckMessage {
    /// Items that succeeded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Entry>,
    /// Items that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Entry>,
    #[serde(skip)]
    pub(crate) acks: Vec<(GroupName, Outcome, Vec<u16>)>,
    #[serde(skip)]
    pub(crate) bytes: usize,
}

impl AckMessage {
    fn new() -> Self {
        Self { items: Vec::new(), failed: Vec::new(), acks: Vec::new(), bytes: FRAME_BYTES }
    }
}

/// Returns the most bytes that this many items of one group and outcome take.
pub(crate) fn estimate(items: usize) -> usize {
    (items * ID_BYTES).min(MASK_BYTES + 1_196)
}

/// Packs all acks into messages of at most `limit` bytes.
pub(crate) fn messages(acks: &Acks, limit: usize) -> Vec<AckMessage> {
    let mut made = Vec::new();
    let mut message = AckMessage::new();
    for (group, outcomes) in acks {
        for outcome in [Outcome::Succeeded, Outcome::Failed] {
            let indexes: Vec<u16> =
                outcomes.iter().filter(|(_, of)| **of == outcome).map(|(index, _)| *index).collect();
            for (entry, covered) in entries(*group, indexes) {
                if !message.acks.is_empty() && message.bytes + entry.bytes() > limit {
                    made.push(std::mem::replace(&mut message, AckMessage::new()));
                }
                message.bytes += entry.bytes();
                message.acks.push((*group, outcome, covered));
                match outcome {
                    Outcome::Succeeded => message.items.push(entry),
                    Outcome::Failed => message.failed.push(entry),
                }
            }
        }
    }
    if !message.acks.is_empty() {
        made.push(message);
    }
    made
}

/// Returns entries for items of one group and outcome, each with the indexes it names.
fn entries(group: GroupName, indexes: Vec<u16>) -> Vec<(Entry, Vec<u16>)> {
    let Some(last) = indexes.last() else { return Vec::new() };
    let mut bits = vec![0_u8; usize::from(last / 8) + 1];
    let runs: Vec<&[u16]> = indexes.chunk_by(|one, next| one + 1 == *next).collect();
    let ranges = runs.into_iter().map(|run| {
        let text = match run {
            [first, .., last] => format!("{group}:{first}-{last}"),
            _ => format!("{group}:{}", run[0]),
        };
        (Entry::Text(text), run.to_vec())
    });
    let ranges: Vec<(Entry, Vec<u16>)> = ranges.collect();
    if ranges.iter().map(|(entry, _)| entry.bytes()).sum::<usize>() <= MASK_BYTES + bits.len().div_ceil(3) * 4 {
        return ranges;
    }
    for index in &indexes {
        bits[usize::from(index / 8)] |= 1 << (index % 8);
    }
    vec![(Entry::Mask { group: group.to_string(), mask: STANDARD.encode(bits) }, indexes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const GROUP: GroupName = GroupName { fanout: Uuid::from_u128(1), group: Uuid::from_u128(2) };

    fn acks(indexes: impl Iterator<Item = u16>, outcome: Outcome) -> Acks {
        Acks::from([(GROUP, indexes.map(|index| (index, outcome)).collect())])
    }

    #[test]
    fn what_lies_together_is_a_range() {
        let made = messages(&acks((100..7_168).chain([3]), Outcome::Succeeded), 10_000);
        assert_eq!(made.len(), 1);
        let expected = [format!("{GROUP}:3"), format!("{GROUP}:100-7167")].map(Entry::Text);
        assert_eq!((&made[0].items[..], made[0].failed.len()), (&expected[..], 0));
    }

    #[test]
    fn what_is_scattered_is_a_mask() {
        let made = messages(&acks((0..100).step_by(2), Outcome::Failed), 10_000);
        let mut bits = vec![0b0101_0101; 12];
        bits.push(0b0000_0101);
        assert_eq!(made[0].failed, [Entry::Mask { group: GROUP.to_string(), mask: STANDARD.encode(bits) }]);
    }

    #[test]
    fn any_acks_are_said_once_each_in_messages_below_the_limit() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..40 {
            let mut acks = Acks::new();
            for number in 0..random.u128(1..30) {
                let group = GroupName { fanout: Uuid::from_u128(1), group: Uuid::from_u128(number) };
                let (items, share) =
                    ([1, 2, 20, 1_000, 7_168][random.usize(..5)], [0.01, 0.5, 0.99, 1.0][random.usize(..4)]);
                let outcome =
                    |random: &mut fastrand::Rng| if random.bool() { Outcome::Succeeded } else { Outcome::Failed };
                let some = (0..items).filter(|_| random.f64() < share).collect::<Vec<u16>>();
                acks.insert(group, some.into_iter().map(|index| (index, outcome(&mut random))).collect());
            }
            let made = messages(&acks, 4_096);
            let mut said = Acks::new();
            for message in &made {
                let text = serde_json::to_string(message).unwrap_or_default();
                assert!(text.len() <= message.bytes && message.bytes <= 4_096, "{} {}", text.len(), message.bytes);
                for (group, outcome, indexes) in &message.acks {
                    for index in indexes {
                        assert_eq!(said.entry(*group).or_default().insert(*index, *outcome), None);
                    }
                }
            }
            acks.retain(|_, of| !of.is_empty());
            assert_eq!(said, acks);
        }
    }
}
