//! Fan-outs: one header record each. A small fan-out keeps its bitfield in the header itself.

mod record;

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

use super::groups::{Cleared, GroupRecord};
use super::notices::Notices;
use super::shards::shard;
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Change, Refusal, Segment, StoreError, Table, Write};

pub(super) use self::record::ENDING;
pub use self::record::{Fanout, FanoutState, Inline};

/// What became of the items of groups that end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Those that failed.
    pub(crate) failed: u64,
    /// Those that are duplicates.
    pub(crate) duplicates: u64,
}

/// The fan-outs.
#[derive(Clone, Debug)]
pub struct Fanouts {
    table: Table,
}

impl Fanouts {
    /// The fan-outs in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// One fan-out, strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, id: Uuid) -> Result<Option<Fanout>, StoreError> {
        self.table.get("id", id.to_string(), true).await?.as_ref().map(Fanout::decode).transpose()
    }

    /// Several fan-outs, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<Fanout>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(Fanout::decode).collect()
    }

    /// Stores a new fan-out. Refused: there is one with its id already.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn insert(&self, fanout: &Fanout) -> Result<Write<(), Option<Fanout>>, StoreError> {
        self.table.insert("id", fanout.encode()).await?.decode_refused(Fanout::decode)
    }

    /// The same for a transaction with its groups.
    pub(crate) fn insert_action(&self, fanout: &Fanout) -> Result<TransactWriteItem, StoreError> {
        self.table.insert_action("id", fanout.encode())
    }

    /// Writes headers and groups in one transaction.
    pub(crate) async fn transact(&self, actions: &[TransactWriteItem]) -> Result<Write<(), Vec<Refusal>>, StoreError> {
        self.table.transact(actions).await
    }

    /// The header's part of adding items, for a transaction with the groups: only while the fan-out is open.
    pub(crate) fn add_action(&self, id: Uuid, items: u64, groups: u64) -> Result<TransactWriteItem, StoreError> {
        self.change(id)
            .add("total", number(items))
            .add("open_groups", number(groups))
            .when_is("state", text(FanoutState::Open.as_str()))
            .when_absent("pending")
            .action()
    }

    /// The header's part of ending groups, for a transaction with those groups.
    pub(crate) fn end_groups_action(
        &self,
        id: Uuid,
        groups: u64,
        ended: Ended,
    ) -> Result<TransactWriteItem, StoreError> {
        self.change(id)
            .subtract("open_groups", number(groups))
            .add("failed", number(ended.failed))
            .add("duplicates", number(ended.duplicates))
            .when("open_groups >= :groups", [(":groups", number(groups))])
            .action()
    }

    /// Clears bits of a small fan-out; with the last bit it is completed, in the same write. Returns the fan-out it leaves.
    /// Refused: somebody else changed it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub(crate) async fn clear_inline(
        &self,
        old: &Fanout,
        group: &GroupRecord,
        cleared: &Cleared,
    ) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let after = old.after(cleared, self.table.world.now());
        let change = self.table.change("id", old.id).differences(&old.encode(), &after.encode());
        let change = change.when_is("pending", binary(group.pending.as_bytes()));
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// No more items come. Returns the fan-out as it stands then, or none if it does not exist.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn seal(&self, id: Uuid) -> Result<Option<Fanout>, StoreError> {
        let change = self
            .change(id)
            .set("state", text(FanoutState::Sealed.as_str()))
            .set(ENDING, shard(id))
            .when_is("state", text(FanoutState::Open.as_str()));
        Ok(change.send_for_new().await?.decode(Fanout::decode)?.stands())
    }

    /// Completes a drained fan-out: of all who try, one write is applied. Returns the fan-out it leaves. Refused: somebody
    /// else completed it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn complete(&self, drained: &Fanout) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let after = Fanout { state: FanoutState::Completed, updated_at: self.table.world.now(), ..drained.clone() };
        let change = self
            .table
            .change("id", drained.id)
            .differences(&drained.encode(), &after.encode())
            .when_is("state", text(FanoutState::Sealed.as_str()))
            .when_is("open_groups", number(0_u32));
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// The notices of their ends.
    #[must_use]
    pub fn notices(&self) -> Notices {
        Notices::new(self.table.clone(), "id", true)
    }

    /// Rows of a producer up to here are registered.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn advance(&self, id: Uuid, cursor: u64) -> Result<(), StoreError> {
        let change = self.table.change("id", id).set("cursor", number(cursor)).when_present("id");
        change.send().await.map(|_| ())
    }

    /// Ids of the fan-outs of a segment that a sweep looks at: see [`Fanout::ending`].
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn ending(&self, segment: Segment) -> Result<Vec<Uuid>, StoreError> {
        let mut ids = Vec::new();
        let visit = |item| {
            ids.push(Reader::new("fanouts", "id", &item).parsed("id")?);
            Ok(())
        };
        self.table.scan(Some(ENDING), segment, visit).await?;
        Ok(ids)
    }

    /// Begins a change of a header.
    fn change(&self, id: Uuid) -> Change<'_> {
        self.table.change("id", id).set("updated_at", time(self.table.world.now()))
    }
}
