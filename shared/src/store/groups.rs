//! Item groups: one bitfield each, one bit per item, changed only by compare-and-set on its old bytes.

mod clear;
mod record;

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, flag, id};
use crate::aws::{Change, Item, Range, Section, StoreError, Table, Write};
use crate::ids::ItemGroup;

pub use self::clear::{Cleared, Mask, clear, close};
pub use self::record::GroupRecord;
use self::record::OPEN;
pub(super) use self::record::{CHILDREN, TASKS};

/// The sort key of groups that were added to a fan-out after it was opened, and the index of them.
const LISTED: &str = "listed";

/// Sets a mark of a group, or small fan-out, unless it is set or the record is gone.
pub(super) async fn mark(table: &Table, id: Uuid, mark: &'static str) -> Result<(), StoreError> {
    let change = table.change("id", id).set(mark, flag()).when_present("id").when_absent(mark);
    change.send().await.map(|_| ())
}

/// The item groups.
#[derive(Clone, Debug)]
pub struct Groups {
    table: Table,
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
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<GroupRecord>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(GroupRecord::decode).collect()
    }

    /// The unfinished groups of a fan-out, at most `limit`, strongly consistent. The index that names them may lag, so some
    /// may be left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn open(&self, fanout: Uuid, limit: usize) -> Result<Vec<GroupRecord>, StoreError> {
        let mut groups = self.get_many(&self.open_ids(fanout, limit).await?).await?;
        groups.retain(|group| !group.pending.is_zero());
        Ok(groups)
    }

    /// Their ids.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub(crate) async fn open_ids(&self, fanout: Uuid, limit: usize) -> Result<Vec<Uuid>, StoreError> {
        let items = self.table.query(Section { limit, ..Section::keyed(OPEN, "fanout", id(fanout)) }).await?;
        items.iter().map(|item| Reader::new("groups", "id", item).parsed("id")).collect()
    }

    /// Notes that tasks are registered for items of a group.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn mark(&self, id: Uuid) -> Result<(), StoreError> {
        mark(&self.table, id, TASKS).await
    }

    /// Notes that fan-outs are opened under items of a group.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn mark_parent(&self, id: Uuid) -> Result<(), StoreError> {
        mark(&self.table, id, CHILDREN).await
    }

    /// The groups that were added to a fan-out after it was opened, in the order of their ids, from the one after `after`: at
    /// most `limit`. The index may lag; a group that it shows never goes before its retention is over.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn listed(&self, fanout: Uuid, after: Option<Uuid>, limit: usize) -> Result<Vec<ItemGroup>, StoreError> {
        let range = after.map(|after| (LISTED, Range::After(id(after))));
        let section = Section { range, limit, ..Section::keyed(LISTED, "fanout", id(fanout)) };
        let group = |item: &Item| {
            let reader = Reader::new("groups", "id", item);
            Ok(ItemGroup { id: reader.parsed("id")?, upto: reader.small("size")? })
        };
        self.table.query(section).await?.iter().map(group).collect()
    }

    /// The insertion of a new group, for a transaction. `listed`: it is to be found by its fan-out. The groups that a fan-out
    /// was opened with follow from its header, so nothing is written to find them.
    pub(crate) fn insert_action(&self, group: &GroupRecord, listed: bool) -> Result<TransactWriteItem, StoreError> {
        let mut item = group.encode(self.table.retention);
        if listed {
            item.insert(LISTED.to_owned(), id(group.id));
        }
        self.table.insert_action("id", item)
    }

    /// Clears bits, but not the last ones. Refused: another worker changed the group.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn write(
        &self,
        old: &GroupRecord,
        cleared: &Cleared,
    ) -> Result<Write<(), Option<GroupRecord>>, StoreError> {
        self.clearing(old, cleared).send().await?.decode_refused(GroupRecord::decode)
    }

    /// The same for a group's last bits, for a transaction with the fan-out's header. Items of a group that had no tasks are
    /// missing only as long as it has none.
    pub(crate) fn end_action(&self, old: &GroupRecord, cleared: &Cleared) -> Result<TransactWriteItem, StoreError> {
        let change = self.clearing(old, cleared);
        let change = if old.tasks || cleared.missing.is_zero() { change } else { change.when_absent(TASKS) };
        change.action()
    }

    /// The compare-and-set on the old bytes that every change of a bitfield is.
    fn clearing(&self, old: &GroupRecord, cleared: &Cleared) -> Change<'_> {
        let after = old.after(cleared, self.table.world.now());
        let change = self
            .table
            .change("id", old.id)
            .differences(&old.encode(self.table.retention), &after.encode(self.table.retention));
        change.when_is("pending", binary(old.pending.as_bytes()))
    }
}
