//! An item group, and how it is stored.

use uuid::Uuid;

use super::Cleared;
use crate::aws::attributes::{Reader, binary, bits, expiry, flag, id, item, number, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::limits::GROUP_RETENTION;
use crate::retention::Retention;

/// The mark of a group, or small fan-out, that has tasks. It is set before the first of them is stored, and stays.
pub(in crate::store) const TASKS: &str = "tasks";

/// The mark of a group, or small fan-out, under whose items fan-outs were opened, or of whose items one is the task that follows
/// another fan-out. It is set before the first of them is opened, and stays.
pub(in crate::store) const CHILDREN: &str = "children";

/// The mark of a group that has pending items, and the index of those groups of a fan-out: a sort key, as short as can be.
pub(super) const OPEN: &str = "open";
const OPEN_MARK: &str = "1";

/// An item group. With [`GROUP_ITEMS_MAX`](crate::limits::GROUP_ITEMS_MAX) items its record takes one write unit (1 KiB), as
/// long as no item failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// Its id.
    pub id: Uuid,
    /// The fan-out it belongs to.
    pub fanout: Uuid,
    /// How many items it has.
    pub size: u32,
    /// Items that are not done.
    pub pending: Bits,
    /// Items that failed.
    pub failed: Bits,
    /// Items that are duplicates.
    pub duplicates: Bits,
    /// Items that were not done when the fan-out ended.
    pub missing: Bits,
    /// Whether tasks were registered for items of it: some may be in progress.
    pub tasks: bool,
    /// Whether fan-outs were opened under items of it, or are followed by them: their work may take long.
    pub children: bool,
    /// Whether each of its failures is counted in the fan-out's header by the write that clears its bit.
    pub counted: bool,
    /// The number of items that the whole call added: noted in the first group of a call with an idempotency key.
    pub added: Option<u32>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl GroupRecord {
    /// A new group with every bit set.
    #[must_use]
    pub fn new(id: Uuid, fanout: Uuid, size: u32, now: Timestamp) -> Self {
        Self {
            id,
            fanout,
            size,
            pending: Bits::ones(size as usize),
            failed: Bits::default(),
            duplicates: Bits::default(),
            missing: Bits::default(),
            tasks: false,
            children: false,
            counted: false,
            added: None,
            updated_at: now,
        }
    }

    /// The group with these bits.
    #[must_use]
    pub fn after(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let Cleared { pending, failed, duplicates, missing, .. } = cleared.clone();
        Self { pending, failed, duplicates, missing, updated_at: now, ..*self }
    }

    pub(super) fn encode(&self, kept: Retention) -> Item {
        let ended = self.pending.is_zero();
        item([
            ("id", Some(text(self.id))),
            ("fanout", Some(id(self.fanout))),
            (OPEN, (!ended).then(|| text(OPEN_MARK))),
            ("size", Some(number(self.size))),
            ("pending", Some(binary(self.pending.as_bytes()))),
            ("failed", bits(&self.failed)),
            ("duplicates", bits(&self.duplicates)),
            ("missing", bits(&self.missing)),
            (TASKS, self.tasks.then(flag)),
            (CHILDREN, self.children.then(flag)),
            ("counted", self.counted.then(flag)),
            ("added", self.added.map(number)),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", ended.then(|| expiry(kept.until(self.updated_at, GROUP_RETENTION)))),
        ])
    }

    pub(crate) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("groups", "id", item);
        Ok(Self {
            id: reader.parsed("id")?,
            fanout: reader.id("fanout")?,
            size: reader.small("size")?,
            pending: reader.bits("pending")?,
            failed: reader.bits("failed")?,
            duplicates: reader.bits("duplicates")?,
            missing: reader.bits("missing")?,
            tasks: reader.has(TASKS),
            children: reader.has(CHILDREN),
            counted: reader.has("counted"),
            added: if reader.has("added") { Some(reader.small("added")?) } else { None },
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_bits, any_id, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(
            id in any_id(),
            fanout in any_id(),
            size: u32,
            [pending, failed, duplicates, missing] in prop::array::uniform4(any_bits()),
            [tasks, children, counted]: [bool; 3],
            added: Option<u32>,
            updated_at in any_time(),
        ) {
            let group = GroupRecord { id, fanout, size, pending, failed, duplicates, missing, tasks, children, counted, added, updated_at };
            prop_assert_eq!(GroupRecord::decode(&group.encode(Retention::default())).unwrap(), group);
        }
    }
}
