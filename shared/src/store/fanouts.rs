//! Fan-outs: one header record each. A small fan-out keeps its bitfield in the header itself.

mod record;

use aws_sdk_dynamodb::types::{Put, ReturnValue, Update};
use uuid::Uuid;

use super::groups::{Cleared, Group};
use super::telling::Tellings;
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::limits::RETENTION;

pub(super) use self::record::NOTIFYING;
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
    pub(crate) table: Table,
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

    /// Stores a new fan-out. Returns what stands under the id, if there is one already.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn put(&self, fanout: &Fanout) -> Result<Option<Fanout>, StoreError> {
        match self.table.send_put(self.table.put_new("id", fanout.encode())).await? {
            Write::Done(()) => Ok(None),
            Write::Refused(item) => item.as_ref().map(Fanout::decode).transpose(),
        }
    }

    /// The put of a new fan-out, for a transaction with its groups.
    pub(crate) fn put_action(&self, fanout: &Fanout) -> Result<Put, StoreError> {
        let put = Put::builder().table_name(&self.table.name).set_item(Some(fanout.encode()));
        put.condition_expression("attribute_not_exists(id)").build().map_err(|error| self.table.unbuilt(&error))
    }

    /// The header's part of adding items, for a transaction with the groups: only while the fan-out is open.
    pub(crate) fn add_action(&self, id: Uuid, items: u64, groups: u64) -> Result<Update, StoreError> {
        Update::builder()
            .table_name(&self.table.name)
            .key("id", text(id))
            .update_expression("SET updated_at = :now ADD #total :items, open_groups :groups")
            .condition_expression("#state = :open AND attribute_not_exists(pending)")
            .expression_attribute_names("#total", "total")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":now", time(self.table.world.now()))
            .expression_attribute_values(":items", number(items))
            .expression_attribute_values(":groups", number(groups))
            .expression_attribute_values(":open", text(FanoutState::Open.as_str()))
            .build()
            .map_err(|error| self.table.unbuilt(&error))
    }

    /// The header's part of ending groups, for a transaction with those groups.
    pub(crate) fn end_groups_action(&self, id: Uuid, groups: u64, ended: Ended) -> Result<Update, StoreError> {
        Update::builder()
            .table_name(&self.table.name)
            .key("id", text(id))
            .update_expression(
                "SET updated_at = :now, open_groups = open_groups - :groups ADD failed :failed, duplicates :duplicates",
            )
            .condition_expression("open_groups >= :groups")
            .expression_attribute_values(":now", time(self.table.world.now()))
            .expression_attribute_values(":groups", number(groups))
            .expression_attribute_values(":failed", number(ended.failed))
            .expression_attribute_values(":duplicates", number(ended.duplicates))
            .build()
            .map_err(|error| self.table.unbuilt(&error))
    }

    /// Clears bits of a small fan-out; with the last bit it is completed, in the same write. Refused: somebody else
    /// changed it; the fan-out as it stands.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn write_inline(&self, old: &Fanout, group: &Group, cleared: &Cleared) -> Result<Write, StoreError> {
        let now = self.table.world.now();
        let mut set = "SET pending = :pending, updated_at = :now".to_owned();
        let mut update = self.table.update("id", old.id.to_string());
        if !cleared.failed.is_zero() {
            set.push_str(", failed_items = :failed_items, failed = :failed");
            update = update
                .expression_attribute_values(":failed_items", binary(cleared.failed.as_bytes()))
                .expression_attribute_values(":failed", number(cleared.failed.count()));
        }
        if !cleared.duplicates.is_zero() {
            set.push_str(", duplicate_items = :duplicate_items, duplicates = :duplicates");
            update = update
                .expression_attribute_values(":duplicate_items", binary(cleared.duplicates.as_bytes()))
                .expression_attribute_values(":duplicates", number(cleared.duplicates.count()));
        }
        if cleared.pending.is_zero() {
            set.push_str(", #state = :completed, #ttl = :ttl");
            update = update
                .expression_attribute_names("#state", "state")
                .expression_attribute_names("#ttl", "ttl")
                .expression_attribute_values(":completed", text(FanoutState::Completed.as_str()))
                .expression_attribute_values(":ttl", number(now.plus(RETENTION).seconds()));
            if old.notify.is_some() {
                set.push_str(", notifying = :notifying");
                update = update.expression_attribute_values(":notifying", text(NOTIFYING));
            }
        }
        let update = update
            .update_expression(set)
            .condition_expression("pending = :old")
            .expression_attribute_values(":pending", binary(cleared.pending.as_bytes()))
            .expression_attribute_values(":old", binary(group.pending.as_bytes()))
            .expression_attribute_values(":now", time(now));
        Ok(match self.table.send_update(update).await? {
            Write::Done(_) => Write::Done(()),
            Write::Refused(item) => Write::Refused(item),
        })
    }

    /// No more items come. Returns the fan-out as it stands then, or none if it does not exist.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn seal(&self, id: Uuid) -> Result<Option<Fanout>, StoreError> {
        let update = self
            .table
            .update("id", id.to_string())
            .update_expression("SET #state = :sealed, updated_at = :now")
            .condition_expression("#state = :open")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":sealed", text(FanoutState::Sealed.as_str()))
            .expression_attribute_values(":open", text(FanoutState::Open.as_str()))
            .expression_attribute_values(":now", time(self.table.world.now()))
            .return_values(ReturnValue::AllNew);
        self.stands(update).await
    }

    /// Completes a drained fan-out: of all who try, one write is applied. `Err` holds the fan-out that refused, if it exists:
    /// somebody else completed it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn complete(&self, drained: &Fanout) -> Result<Result<Fanout, Option<Fanout>>, StoreError> {
        let now = self.table.world.now();
        let mut set = "SET #state = :completed, updated_at = :now, #ttl = :ttl".to_owned();
        let mut update = self.table.update("id", drained.id.to_string());
        if drained.notify.is_some() {
            set.push_str(", notifying = :notifying");
            update = update.expression_attribute_values(":notifying", text(NOTIFYING));
        }
        let update = update
            .update_expression(set)
            .condition_expression("#state = :sealed AND open_groups = :zero")
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":completed", text(FanoutState::Completed.as_str()))
            .expression_attribute_values(":sealed", text(FanoutState::Sealed.as_str()))
            .expression_attribute_values(":zero", number(0_u32))
            .expression_attribute_values(":ttl", number(now.plus(RETENTION).seconds()))
            .expression_attribute_values(":now", time(now))
            .return_values(ReturnValue::AllNew);
        let decoded = |item: Option<Item>| item.as_ref().map(Fanout::decode).transpose();
        Ok(match self.table.send_update(update).await? {
            Write::Done(item) => decoded(item)?.ok_or(None),
            Write::Refused(item) => Err(decoded(item)?),
        })
    }

    /// The notices of their ends.
    #[must_use]
    pub fn tellings(&self) -> Tellings {
        Tellings::new(self.table.clone(), "id", true)
    }

    /// Rows of a producer up to here are registered.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn advance(&self, id: Uuid, cursor: u64) -> Result<(), StoreError> {
        let update = self
            .table
            .update("id", id.to_string())
            .update_expression("SET #cursor = :cursor")
            .condition_expression("attribute_exists(id)")
            .expression_attribute_names("#cursor", "cursor")
            .expression_attribute_values(":cursor", number(cursor));
        self.table.send_update(update).await.map(|_| ())
    }

    /// Ids of the fan-outs in a state, oldest first.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn in_state(&self, state: FanoutState) -> Result<Vec<Uuid>, StoreError> {
        self.ids("state", state.as_str()).await
    }

    /// Ids of the completed fan-outs whose end is still to be reported.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn notifying(&self) -> Result<Vec<Uuid>, StoreError> {
        self.ids("notifying", NOTIFYING).await
    }

    async fn ids(&self, index: &'static str, partition: &str) -> Result<Vec<Uuid>, StoreError> {
        let items = self.table.query_index(index, partition, usize::MAX).await?;
        items.iter().map(|item| Reader::new("fanouts", "id", item).parsed("id")).collect()
    }

    /// Sends an update; the fan-out as it stands, whether the update was applied or refused.
    async fn stands(
        &self,
        update: aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder,
    ) -> Result<Option<Fanout>, StoreError> {
        let (Write::Done(item) | Write::Refused(item)) = self.table.send_update(update).await?;
        item.as_ref().map(Fanout::decode).transpose()
    }
}
