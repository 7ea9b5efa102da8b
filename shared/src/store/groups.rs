//! Item groups: a bitfield each, one bit an item, changed only by compare-and-set on its old bytes.

mod listed;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{Put, Update};
use uuid::Uuid;

use super::attributes::{Reader, binary, number, text, time};
use super::{Item, StoreError, Table, Write};
use crate::bits::Bits;
use crate::clock::{Timestamp, World};
use crate::limits::RETENTION;

pub(crate) use listed::listed;

/// An item group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
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
    /// How many items its whole add brought: the first group of an add with an idempotency key tells.
    pub added: Option<u32>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Bits to be cleared in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Items that are done, succeeded or failed.
    pub done: Bits,
    /// Those of them that failed.
    pub failed: Bits,
}

impl Mask {
    /// Adds another mask. An item that one says failed and another succeeded counts as failed if they come together.
    pub fn merge(&mut self, other: &Self) {
        self.done.merge(&other.done);
        self.failed.merge(&other.failed);
    }
}

/// A bitfield after a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Items not done now.
    pub pending: Bits,
    /// Items failed now.
    pub failed: Bits,
    /// How many the mask cleared.
    pub newly: u64,
}

/// Clears bits. What was cleared before stays as it was, so that any order and repetition of acks ends the same. Bits
/// beyond the group's size are not pending and change nothing.
#[must_use]
pub fn clear(pending: &Bits, failed: &Bits, mask: &Mask) -> Cleared {
    let newly = pending.and(&mask.done);
    let mut failed = failed.clone();
    failed.merge(&newly.and(&mask.failed));
    Cleared { pending: pending.minus(&mask.done), failed, newly: newly.count() }
}

impl Group {
    pub(crate) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("groups", "id", item);
        Ok(Self {
            id: reader.parsed("id")?,
            fanout: reader.parsed("fanout")?,
            size: reader.small("size")?,
            pending: reader.bits("pending")?,
            failed: reader.bits("failed")?,
            added: if reader.has("added") { Some(reader.small("added")?) } else { None },
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}

/// The item groups.
#[derive(Clone, Debug)]
pub struct Groups {
    pub(crate) table: Table,
    world: World,
}

impl Groups {
    /// The groups in `table`.
    #[must_use]
    pub fn new(table: Table, world: World) -> Self {
        Self { table, world }
    }

    /// Several groups, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table can not be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<Group>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(Group::decode).collect()
    }

    /// The unfinished groups of a fan-out, as the index shows them.
    ///
    /// # Errors
    /// The table can not be read, or a record is corrupt.
    pub async fn open(&self, fanout: Uuid) -> Result<Vec<Group>, StoreError> {
        let items = self.table.query_index("open", &fanout.to_string(), usize::MAX).await?;
        let ids: Vec<Uuid> =
            items.iter().map(|item| Reader::new("groups", "id", item).parsed("id")).collect::<Result<_, _>>()?;
        self.get_many(&ids).await
    }

    /// Clears bits that leave others set. Refused: somebody else changed the group; the group as it stands.
    ///
    /// # Errors
    /// The table can not be written.
    pub async fn write(&self, old: &Group, cleared: &Cleared) -> Result<Write, StoreError> {
        let update = set_bits(self.table.update("id", old.id.to_string()), old, cleared, self.world.now());
        Ok(match self.table.send_update(update).await? {
            Write::Done(_) => Write::Done(()),
            Write::Refused(item) => Write::Refused(item),
        })
    }

    /// The put of a new group with every bit set, for a transaction. `added`: see [`Group::added`].
    pub(crate) fn put(&self, id: Uuid, fanout: Uuid, size: u32, added: Option<u32>) -> Result<Put, StoreError> {
        let pending = Bits::ones(size as usize);
        let mut item = Item::from([
            ("id".to_owned(), text(id)),
            ("fanout".to_owned(), text(fanout)),
            ("open".to_owned(), text(fanout)),
            ("size".to_owned(), number(size)),
            ("pending".to_owned(), binary(pending.as_bytes())),
            ("updated_at".to_owned(), time(self.world.now())),
        ]);
        if let Some(added) = added {
            item.insert("added".to_owned(), number(added));
        }
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item));
        put.condition_expression("attribute_not_exists(id)").build().map_err(|error| self.unbuilt(&error))
    }

    /// The update that clears a group's last bits, for a transaction with the fan-out's header.
    pub(crate) fn end(&self, old: &Group, cleared: &Cleared) -> Result<Update, StoreError> {
        let now = self.world.now();
        let mut set = "SET pending = :pending, updated_at = :now, #ttl = :ttl".to_owned();
        let mut update = Update::builder().table_name(&self.table.name).key("id", text(old.id));
        if !cleared.failed.is_zero() {
            set.push_str(", failed = :failed");
            update = update.expression_attribute_values(":failed", binary(cleared.failed.as_bytes()));
        }
        update
            .update_expression(format!("{set} REMOVE #open"))
            .condition_expression("pending = :old")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_names("#open", "open")
            .expression_attribute_values(":pending", binary(cleared.pending.as_bytes()))
            .expression_attribute_values(":old", binary(old.pending.as_bytes()))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":ttl", number(now.plus(RETENTION).seconds()))
            .build()
            .map_err(|error| self.unbuilt(&error))
    }

    fn unbuilt(&self, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt {
            table: "request",
            id: self.table.name.clone(),
            attribute: "transaction",
            problem: error.to_string(),
        }
    }
}

/// The compare-and-set on the old bytes that every change of a bitfield is.
fn set_bits(
    update: UpdateItemFluentBuilder,
    old: &Group,
    cleared: &Cleared,
    now: Timestamp,
) -> UpdateItemFluentBuilder {
    let mut set = "SET pending = :pending, updated_at = :now".to_owned();
    let mut update = update;
    if !cleared.failed.is_zero() {
        set.push_str(", failed = :failed");
        update = update.expression_attribute_values(":failed", binary(cleared.failed.as_bytes()));
    }
    update
        .update_expression(set)
        .condition_expression("pending = :old")
        .expression_attribute_values(":pending", binary(cleared.pending.as_bytes()))
        .expression_attribute_values(":old", binary(old.pending.as_bytes()))
        .expression_attribute_values(":now", time(now))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn bits(indices: &[usize]) -> Bits {
        indices.iter().copied().collect()
    }

    #[test]
    fn a_cleared_bit_keeps_its_first_outcome() {
        let first = clear(&Bits::ones(8), &Bits::default(), &Mask { done: bits(&[1, 2]), failed: bits(&[2]) });
        assert_eq!((first.newly, first.failed.count()), (2, 1));
        let again = clear(&first.pending, &first.failed, &Mask { done: bits(&[1, 2]), failed: bits(&[1]) });
        assert_eq!((again.newly, again.failed.clone()), (0, first.failed));
        assert_eq!(again.pending.count(), 6);
    }

    #[test]
    fn a_failure_that_is_not_done_does_not_count() {
        let cleared = clear(&Bits::ones(8), &Bits::default(), &Mask { done: bits(&[1]), failed: bits(&[5]) });
        assert!(cleared.failed.is_zero());
    }

    proptest! {
        #[test]
        fn any_order_and_repetition_ends_the_same(
            size in 1_usize..200,
            items in prop::collection::vec((0_usize..220, any::<bool>()), 0..60),
            repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            order in any::<u64>(),
        ) {
            // An item has one outcome, whoever tells it how often.
            let outcomes: BTreeMap<usize, bool> = items.iter().copied().collect();
            let mut acks: Vec<(usize, bool)> = outcomes.iter().map(|(item, fails)| (*item, *fails)).collect();
            if !acks.is_empty() {
                acks.extend(repeats.iter().map(|at| acks[at.index(outcomes.len())]).collect::<Vec<_>>());
            }
            fastrand::Rng::with_seed(order).shuffle(&mut acks);
            let mut state = (Bits::ones(size), Bits::default());
            let mut newly = 0;
            for chunk in acks.chunks(3) {
                let of = |fails: bool| chunk.iter().filter(|ack| !fails || ack.1).map(|ack| ack.0).collect();
                let cleared = clear(&state.0, &state.1, &Mask { done: of(false), failed: of(true) });
                newly += cleared.newly;
                state = (cleared.pending, cleared.failed);
            }
            let within = |item: &&usize| **item < size;
            prop_assert_eq!(newly as usize, outcomes.keys().filter(within).count());
            for item in 0..size {
                prop_assert_eq!(state.0.get(item), !outcomes.contains_key(&item));
                prop_assert_eq!(state.1.get(item), outcomes.get(&item) == Some(&true));
            }
        }
    }
}
