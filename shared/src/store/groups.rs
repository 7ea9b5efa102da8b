//! Item groups: one bitfield each, one bit per item, changed only by compare-and-set on its old bytes.

mod listed;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{Put, Update};
use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::bits::Bits;
use crate::clock::Timestamp;
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
    /// Items that were dropped as duplicates.
    pub duplicates: Bits,
    /// How many items its whole add brought: known of the first group of an add with an idempotency key.
    pub added: Option<u32>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Bits to be cleared in one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Items that are done: succeeded, failed or duplicates.
    pub done: Bits,
    /// Those of them that failed.
    pub failed: Bits,
    /// Those of them that are duplicates. What is said to have failed, too, did.
    pub duplicates: Bits,
}

impl Mask {
    /// Adds another mask. An item that one says failed and another succeeded counts as failed if they come together.
    pub fn merge(&mut self, other: &Self) {
        self.done.merge(&other.done);
        self.failed.merge(&other.failed);
        self.duplicates.merge(&other.duplicates);
    }
}

/// A bitfield after a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Items not done now.
    pub pending: Bits,
    /// Items failed now.
    pub failed: Bits,
    /// Items that are duplicates now.
    pub duplicates: Bits,
    /// How many the mask cleared.
    pub newly: u64,
}

/// Clears bits. What was cleared before stays as it was, so that any order and repetition of acks ends the same. Bits
/// beyond the group's size are not pending and change nothing.
#[must_use]
pub fn clear(group: &Group, mask: &Mask) -> Cleared {
    let newly = group.pending.and(&mask.done);
    let (mut failed, mut duplicates) = (group.failed.clone(), group.duplicates.clone());
    failed.merge(&newly.and(&mask.failed));
    duplicates.merge(&newly.and(&mask.duplicates).minus(&mask.failed));
    Cleared { pending: group.pending.minus(&mask.done), failed, duplicates, newly: newly.count() }
}

impl Cleared {
    /// What is written besides `pending`: a record without failures and duplicates stays small.
    fn present(&self) -> impl Iterator<Item = (&'static str, &'static str, &Bits)> {
        let all = [
            (", failed = :failed", ":failed", &self.failed),
            (", duplicates = :duplicates", ":duplicates", &self.duplicates),
        ];
        all.into_iter().filter(|(.., bits)| !bits.is_zero())
    }
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
            duplicates: reader.bits("duplicates")?,
            added: if reader.has("added") { Some(reader.small("added")?) } else { None },
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}

/// The item groups.
#[derive(Clone, Debug)]
pub struct Groups {
    pub(crate) table: Table,
}

impl Groups {
    /// The groups in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// Several groups, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<Group>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(Group::decode).collect()
    }

    /// The unfinished groups of a fan-out, as the index shows them.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn open(&self, fanout: Uuid) -> Result<Vec<Group>, StoreError> {
        let items = self.table.query_index("open", &fanout.to_string(), usize::MAX).await?;
        let ids: Vec<Uuid> =
            items.iter().map(|item| Reader::new("groups", "id", item).parsed("id")).collect::<Result<_, _>>()?;
        self.get_many(&ids).await
    }

    /// Clears bits that leave others set. Refused: somebody else changed the group; the group as it stands.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn write(&self, old: &Group, cleared: &Cleared) -> Result<Write, StoreError> {
        let update = set_bits(self.table.update("id", old.id.to_string()), old, cleared, self.table.world.now());
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
            ("updated_at".to_owned(), time(self.table.world.now())),
        ]);
        if let Some(added) = added {
            item.insert("added".to_owned(), number(added));
        }
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item));
        put.condition_expression("attribute_not_exists(id)").build().map_err(|error| self.table.unbuilt(&error))
    }

    /// The update that clears a group's last bits, for a transaction with the fan-out's header.
    pub(crate) fn end(&self, old: &Group, cleared: &Cleared) -> Result<Update, StoreError> {
        let now = self.table.world.now();
        let mut set = "SET pending = :pending, updated_at = :now, #ttl = :ttl".to_owned();
        let mut update = Update::builder().table_name(&self.table.name).key("id", text(old.id));
        for (clause, name, bits) in cleared.present() {
            set.push_str(clause);
            update = update.expression_attribute_values(name, binary(bits.as_bytes()));
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
            .map_err(|error| self.table.unbuilt(&error))
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
    for (clause, name, bits) in cleared.present() {
        set.push_str(clause);
        update = update.expression_attribute_values(name, binary(bits.as_bytes()));
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

    fn group(size: usize) -> Group {
        Group {
            id: Uuid::nil(),
            fanout: Uuid::nil(),
            size: size as u32,
            pending: Bits::ones(size),
            failed: Bits::default(),
            duplicates: Bits::default(),
            added: None,
            updated_at: Timestamp(0),
        }
    }

    fn mask(done: &[usize], failed: &[usize], duplicates: &[usize]) -> Mask {
        Mask { done: bits(done), failed: bits(failed), duplicates: bits(duplicates) }
    }

    fn after(group: &Group, cleared: &Cleared) -> Group {
        let Cleared { pending, failed, duplicates, .. } = cleared.clone();
        Group { pending, failed, duplicates, ..group.clone() }
    }

    #[test]
    fn a_cleared_bit_keeps_its_first_outcome() {
        let first = clear(&group(8), &mask(&[1, 2, 3], &[2], &[3]));
        assert_eq!((first.newly, first.failed.count(), first.duplicates.count()), (3, 1, 1));
        let again = clear(&after(&group(8), &first), &mask(&[1, 2, 3], &[1, 3], &[1, 2]));
        assert_eq!((again.newly, &again.failed, &again.duplicates), (0, &first.failed, &first.duplicates));
        assert_eq!(again.pending.count(), 5);
    }

    #[test]
    fn what_is_not_done_does_not_count() {
        let cleared = clear(&group(8), &mask(&[1], &[5], &[6]));
        assert!(cleared.failed.is_zero() && cleared.duplicates.is_zero());
    }

    #[test]
    fn an_item_counts_once() {
        let cleared = clear(&group(8), &mask(&[1, 2], &[1], &[1, 2]));
        assert_eq!((cleared.failed, cleared.duplicates), (bits(&[1]), bits(&[2])));
    }

    proptest! {
        #[test]
        fn any_order_and_repetition_ends_the_same(
            size in 1_usize..200,
            items in prop::collection::vec((0_usize..220, 0_u8..3), 0..60),
            repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            order in any::<u64>(),
        ) {
            // An item has one outcome, whoever acks it how often.
            let outcomes: BTreeMap<usize, u8> = items.iter().copied().collect();
            let mut acks: Vec<(usize, u8)> = outcomes.iter().map(|(item, outcome)| (*item, *outcome)).collect();
            if !acks.is_empty() {
                acks.extend(repeats.iter().map(|at| acks[at.index(outcomes.len())]).collect::<Vec<_>>());
            }
            fastrand::Rng::with_seed(order).shuffle(&mut acks);
            let mut state = group(size);
            let mut newly = 0;
            for chunk in acks.chunks(3) {
                let of = |outcome: u8| chunk.iter().filter(|ack| ack.1 == outcome).map(|ack| ack.0).collect();
                let done = chunk.iter().map(|ack| ack.0).collect();
                let cleared = clear(&state, &Mask { done, failed: of(1), duplicates: of(2) });
                newly += cleared.newly;
                state = after(&state, &cleared);
            }
            let within = |item: &&usize| **item < size;
            prop_assert_eq!(newly as usize, outcomes.keys().filter(within).count());
            for item in 0..size {
                prop_assert_eq!(state.pending.get(item), !outcomes.contains_key(&item));
                prop_assert_eq!(state.failed.get(item), outcomes.get(&item) == Some(&1));
                prop_assert_eq!(state.duplicates.get(item), outcomes.get(&item) == Some(&2));
            }
        }
    }
}
