//! What transactions with groups write in the header.

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

use super::estimated::MODE;
use super::record::{REISSUED_AS, TOLERATED};
use super::{Fanout, FanoutState, Fanouts, counting_failures};
use crate::aws::attributes::{count, number, text};
use crate::aws::{RefusedWrite, StoreError, Write};

/// What groups that end add to the header's counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndedGroups {
    /// How many groups.
    pub(crate) groups: u64,
    /// All items of theirs.
    pub(crate) items: u64,
    /// Those that failed.
    pub(crate) failed: u64,
    /// Those that are duplicates.
    pub(crate) duplicates: u64,
    /// Those that are missing.
    pub(crate) missing: u64,
    /// Items that failed just now, in these and other groups in which failures are counted.
    pub(crate) failures: u64,
}

/// Why groups end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupsEnd {
    /// Their items were acked: something happens to their fan-out.
    Acked,
    /// They are closed, as nothing happens to them.
    Closed,
}

impl EndedGroups {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            groups: self.groups + other.groups,
            items: self.items + other.items,
            failed: self.failed + other.failed,
            duplicates: self.duplicates + other.duplicates,
            missing: self.missing + other.missing,
            failures: self.failures + other.failures,
        }
    }
}

impl Fanouts {
    /// Stores a new fan-out, in a transaction with its groups.
    pub(crate) fn insert_action(&self, fanout: &Fanout) -> Result<TransactWriteItem, StoreError> {
        self.table.insert_action("id", fanout.encode(self.table.retention))
    }

    /// Writes headers and groups in one transaction.
    pub(crate) async fn transact(
        &self,
        actions: &[TransactWriteItem],
    ) -> Result<Write<(), Vec<RefusedWrite>>, StoreError> {
        self.table.transact(actions).await
    }

    /// The header's part of adding items, for a transaction with the groups: only while the fan-out is open and has items, and
    /// only if it counts failures as these groups do.
    pub(crate) fn add_action(
        &self,
        id: Uuid,
        items: u64,
        groups: u64,
        counted: bool,
    ) -> Result<TransactWriteItem, StoreError> {
        let change = self.change(id).when_absent(MODE);
        let change = if counted { change.when_present(TOLERATED) } else { change.when_absent(TOLERATED) };
        change
            .add("total", number(items))
            .add("open_groups", number(groups))
            .when_is("state", text(FanoutState::Open.as_str()))
            .when_absent("pending")
            .action()
    }

    /// The header's part of ending groups and of counting failures, for a transaction with those groups.
    pub(crate) fn end_groups_action(
        &self,
        id: Uuid,
        ended: EndedGroups,
        why: GroupsEnd,
    ) -> Result<TransactWriteItem, StoreError> {
        let change = match why {
            GroupsEnd::Acked => self.change(id),
            GroupsEnd::Closed => self.table.change("id", id),
        };
        counting_failures(change, id, ended.failures)
            .subtract("open_groups", number(ended.groups))
            .add_some("done", count(ended.items))
            .add_some("failed", count(ended.failed))
            .add_some("duplicates", count(ended.duplicates))
            .add_some("missing", count(ended.missing))
            .when("open_groups >= :groups", [(":groups", number(ended.groups))])
            .action()
    }

    /// Links a fan-out to one that reissues items of it, for the transaction that opens that one: of several at once, one is opened.
    pub(crate) fn reissue_action(&self, old: &Fanout, new: Uuid) -> Result<TransactWriteItem, StoreError> {
        let change = self.table.change("id", old.id).set(REISSUED_AS, text(new)).when_present("ended_at");
        change.when_same(REISSUED_AS, old.reissued_as.map(text)).action()
    }
}
