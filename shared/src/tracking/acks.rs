//! Acks gathered by item group, and those that are refused. No I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;

use uuid::Uuid;

use crate::bits::Bits;
use crate::ids::ItemId;
use crate::limits::{ACKED_TOGETHER_MAX, REFUSED_ITEMS_NAMED_MAX};
use crate::messages::{AckEntry, AckRequest};
use crate::metrics::ITEMS_REFUSED;
use crate::store::batches::{Batch, MemberState};
use crate::store::fanouts::Fanout;
use crate::store::groups::Mask;

/// Acks by fan-out and item group.
pub type Acks = BTreeMap<(Uuid, Uuid), Mask>;

/// The same acks in parts of no more groups than are read together. A part is made when its turn comes.
pub(super) fn parts(acks: &Acks) -> impl Iterator<Item = Cow<'_, Acks>> {
    let whole = acks.len() <= ACKED_TOGETHER_MAX;
    let mut left = acks.iter();
    let parts = if whole { 1 } else { acks.len().div_ceil(ACKED_TOGETHER_MAX) };
    (0..parts).map(move |_| match whole {
        true => Cow::Borrowed(acks),
        false => {
            let part = left.by_ref().take(ACKED_TOGETHER_MAX);
            Cow::Owned(part.map(|(name, mask)| (*name, mask.clone())).collect())
        }
    })
}

/// Why acks of a group were refused. Those of the same group that name items it has are applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckRefusal {
    /// There is no such group. It may have ended so long ago that its record is gone.
    #[error("there is no item group {group} of fan-out {fanout}")]
    UnknownGroup {
        /// The fan-out.
        fanout: Uuid,
        /// The group.
        group: Uuid,
    },
    /// The group has fewer items.
    #[error("item group {group} of fan-out {fanout} has {size} items, there is no item {index}")]
    OutOfRange {
        /// The fan-out.
        fanout: Uuid,
        /// The group.
        group: Uuid,
        /// The highest index that was acked.
        index: usize,
        /// The group's size.
        size: u32,
    },
}

impl AckRefusal {
    /// The same as a problem of the field that names this item.
    #[must_use]
    pub fn of_field(&self, item: &ItemId) -> String {
        match self {
            Self::UnknownGroup { fanout, group } => format!(
                "is `{item}`: fan-out {fanout} has no item group {group}; an item that opening or adding returned is allowed"
            ),
            Self::OutOfRange { group, index, size, .. } => format!(
                "is `{item}`: item group {group} has {size} items, there is no {index}; 0 to {} is allowed",
                size.saturating_sub(1)
            ),
        }
    }
}

/// Acks of a group that were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub problem: AckRefusal,
    /// The items.
    pub items: Bits,
}

/// Acks that were refused, by fan-out and item group.
pub type Refused = BTreeMap<(Uuid, Uuid), Refusal>;

impl Refusal {
    /// The refused part of a mask.
    pub(super) fn of(problem: AckRefusal, mask: &Mask) -> Self {
        let items = match problem {
            AckRefusal::UnknownGroup { .. } => mask.done.clone(),
            AckRefusal::OutOfRange { size, .. } => mask.done.minus(&Bits::ones(size as usize)),
        };
        Self { problem, items }
    }

    /// Logs and counts the refusal: the sender may be gone, or may be one of Fanfold's own steps.
    pub(super) fn report(&self) {
        let count = self.items.count();
        metrics::counter!(ITEMS_REFUSED).increment(count);
        let named: Vec<usize> = self.items.iter().take(REFUSED_ITEMS_NAMED_MAX).collect();
        tracing::warn!(refusal = %self.problem, count, indices = ?named, "acks of items that do not exist were refused");
    }
}

/// Adds what a request acks.
pub fn collect(acks: &mut Acks, request: &AckRequest) {
    for (entries, said) in
        [(&request.items, Said::Succeeded), (&request.failed, Said::Failed), (&request.duplicates, Said::Duplicate)]
    {
        entries.iter().for_each(|entry| add(acks, entry, said));
    }
}

/// Adds items that are duplicates.
pub(crate) fn collect_duplicates(acks: &mut Acks, items: impl IntoIterator<Item = ItemId>) {
    items.into_iter().for_each(|item| add(acks, &AckEntry::Item(item), Said::Duplicate));
}

/// Adds the parent item of a fan-out that ended: it succeeded if the fan-out is complete, and failed at any other end.
pub fn collect_parent(acks: &mut Acks, parent: ItemId, ended: &Fanout) {
    let said = if ended.complete() { Said::Succeeded } else { Said::Failed };
    add(acks, &AckEntry::Item(parent), said);
}

/// Adds what a batch has settled so far.
pub fn collect_batch(acks: &mut Acks, batch: &Batch) {
    for (slot, id) in batch.members.ids().iter().enumerate() {
        let said = match batch.outcome(slot) {
            MemberState::Failed => Said::Failed,
            MemberState::Succeeded => Said::Succeeded,
            MemberState::Dropped => Said::Missing,
            MemberState::Pending => continue,
        };
        if let Some(item) = id.item() {
            add(acks, &AckEntry::Item(item), said);
        }
    }
}

/// What an ack says of its items.
#[derive(Clone, Copy)]
enum Said {
    Succeeded,
    Failed,
    Duplicate,
    Missing,
}

fn add(acks: &mut Acks, entry: &AckEntry, said: Said) {
    if matches!(entry, AckEntry::Mask(mask) if mask.mask.is_zero()) {
        return;
    }
    let group = entry.group();
    let mask = acks.entry((group.fanout, group.group)).or_default();
    entry.add_to(&mut mask.done);
    match said {
        Said::Succeeded => {}
        Said::Failed => entry.add_to(&mut mask.failed),
        Said::Duplicate => entry.add_to(&mut mask.duplicates),
        Said::Missing => entry.add_to(&mut mask.missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_small_and_make_up_the_whole() {
        for groups in [0, 1, ACKED_TOGETHER_MAX, ACKED_TOGETHER_MAX + 1, 3 * ACKED_TOGETHER_MAX] {
            let mask = |n: usize| Mask { done: [n % 9].into_iter().collect(), ..Mask::default() };
            let acks: Acks = (0..groups).map(|n| ((Uuid::nil(), Uuid::from_u128(n as u128)), mask(n))).collect();
            let parts: Vec<Cow<'_, Acks>> = parts(&acks).collect();
            assert!(parts.iter().all(|part| part.len() <= ACKED_TOGETHER_MAX));
            assert_eq!(parts.len(), groups.div_ceil(ACKED_TOGETHER_MAX).max(1));
            assert_eq!(parts.into_iter().flat_map(Cow::into_owned).collect::<Acks>(), acks);
        }
    }
}
