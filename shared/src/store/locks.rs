//! Locks: one record per lane. It names the lane's leader and every batch of the lane that is not closed, so it is also
//! where `sweep` finds unfinished batches: a batch is `holder`, then in `in_flight`, then in `closing`, each change one
//! conditional write.

mod record;

use aws_sdk_dynamodb::types::ReturnValue;
use uuid::Uuid;

use crate::aws::attributes::{Reader, binary, id_set, number, text, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::lane::Lane;
use crate::limits::LANE_RETENTION;

pub use self::record::Lock;

/// The locks.
#[derive(Clone, Debug)]
pub struct Locks(Table);

impl Locks {
    /// The locks in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Reads a lane's lock.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, lane: &Lane) -> Result<Lock, StoreError> {
        let item = self.0.get("lane", lane.to_string(), true).await?;
        item.map_or_else(|| Ok(Lock::free(lane.clone())), |item| Lock::decode(&item))
    }

    /// Reads the locks of several lanes; those never used are left out. Not strongly consistent unless asked.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, lanes: &[Lane], consistent: bool) -> Result<Vec<Lock>, StoreError> {
        let keys: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        self.0.get_many("lane", &keys, &[], consistent).await?.iter().map(Lock::decode).collect()
    }

    /// Makes `batch` the lane's leader: nobody else is, the lane is not paused, and fewer than `max_in_flight` batches
    /// are in flight. Repeating it for the batch that already leads changes nothing and succeeds: the leader's messages name
    /// one epoch. `Err` holds the lock that refused.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn acquire(
        &self,
        lane: &Lane,
        batch: Uuid,
        max_in_flight: u32,
        now: Timestamp,
    ) -> Result<Result<Lock, Lock>, StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression(
                "SET holder = :me, acquired_at = :now, epoch = if_not_exists(epoch, :zero) + :one, \
                 active = if_not_exists(active, :shard) REMOVE waiting, #ttl",
            )
            .condition_expression(
                "attribute_not_exists(holder) AND attribute_not_exists(paused) \
                 AND (attribute_not_exists(in_flight) OR size(in_flight) < :max)",
            )
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":me", text(batch))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":zero", number(0_u32))
            .expression_attribute_values(":one", number(1_u32))
            .expression_attribute_values(":shard", text(lane.shard()))
            .expression_attribute_values(":max", number(max_in_flight))
            .return_values(ReturnValue::AllNew);
        match self.0.send_update(update).await? {
            Write::Done(item) => Ok(Ok(decode_or_free(lane, item)?)),
            Write::Refused(item) => {
                let lock = decode_or_free(lane, item)?;
                Ok(if lock.holder == Some(batch) { Ok(lock) } else { Err(lock) })
            }
        }
    }

    /// A sign of life in a silent leader's name, by whoever is about to send its hint again: one of several wins.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn renew(&self, lock: &Lock, now: Timestamp) -> Result<bool, StoreError> {
        let (Some(holder), Some(acquired_at)) = (lock.holder, lock.acquired_at) else { return Ok(false) };
        let update = self
            .0
            .update("lane", lock.lane.to_string())
            .update_expression("SET acquired_at = :now")
            .condition_expression("holder = :holder AND acquired_at = :then")
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":holder", text(holder))
            .expression_attribute_values(":then", time(acquired_at));
        Ok(matches!(self.0.send_update(update).await?, Write::Done(_)))
    }

    /// The leader has dispatched its batch and makes `next` the leader, if the lane may have one more in flight; with
    /// `max_in_flight = 1` it never may.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn hand_over(&self, leader: &Leader<'_>, next: Uuid, max_in_flight: u32) -> Result<Write, StoreError> {
        let room = max_in_flight.saturating_sub(1);
        let update = self
            .0
            .update("lane", leader.lane.to_string())
            .update_expression("SET holder = :next, acquired_at = :now, epoch = epoch + :one ADD in_flight :batch")
            .condition_expression(
                "holder = :me AND epoch = :epoch AND attribute_not_exists(paused) \
                 AND (attribute_not_exists(in_flight) OR size(in_flight) < :room)",
            )
            .expression_attribute_values(":next", text(next))
            .expression_attribute_values(":now", time(leader.now))
            .expression_attribute_values(":one", number(1_u32))
            .expression_attribute_values(":room", number(room))
            .expression_attribute_values(":batch", id_set([&leader.batch]))
            .expression_attribute_values(":me", text(leader.batch))
            .expression_attribute_values(":epoch", number(leader.epoch));
        self.done(update).await
    }

    /// The leader has dispatched its batch and steps down. `waiting`: there is more to group. `Err` holds the lock that
    /// refused: somebody else leads by now.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn step_down(&self, leader: &Leader<'_>, waiting: bool) -> Result<Result<(), Lock>, StoreError> {
        let set = if waiting { "SET waiting = :epoch " } else { "" };
        let update = self
            .0
            .update("lane", leader.lane.to_string())
            .update_expression(format!("{set}REMOVE holder, acquired_at ADD in_flight :batch"))
            .condition_expression("holder = :me AND epoch = :epoch")
            .expression_attribute_values(":batch", id_set([&leader.batch]))
            .expression_attribute_values(":me", text(leader.batch))
            .expression_attribute_values(":epoch", number(leader.epoch));
        Ok(match self.0.send_update(update).await? {
            Write::Done(_) => Ok(()),
            Write::Refused(item) => Err(decode_or_free(leader.lane, item)?),
        })
    }

    /// The leader found nothing to group and steps down.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn resign(&self, leader: &Leader<'_>) -> Result<Write, StoreError> {
        let update = self
            .0
            .update("lane", leader.lane.to_string())
            .update_expression("REMOVE holder, acquired_at")
            .condition_expression("holder = :me AND epoch = :epoch")
            .expression_attribute_values(":me", text(leader.batch))
            .expression_attribute_values(":epoch", number(leader.epoch));
        self.done(update).await
    }

    /// Notes that a workflow waits for room in flight.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn wait(&self, lane: &Lane) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("SET waiting = if_not_exists(epoch, :zero)")
            .condition_expression("attribute_exists(in_flight) AND attribute_not_exists(waiting)")
            .expression_attribute_values(":zero", number(0_u32));
        self.0.send_update(update).await.map(|_| ())
    }

    /// An ended batch leaves `in_flight`; with `closing` it stays known until its acks and notices are through. It may have
    /// left before. Returns the lock as it stands then.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn leave(&self, lane: &Lane, batch: Uuid, closing: bool) -> Result<Lock, StoreError> {
        let add = if closing { " ADD closing :batch" } else { "" };
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression(format!("DELETE in_flight :batch{add}"))
            .condition_expression("contains(in_flight, :id)")
            .expression_attribute_values(":batch", id_set([&batch]))
            .expression_attribute_values(":id", binary(batch.as_bytes()))
            .return_values(ReturnValue::AllNew);
        let (Write::Done(item) | Write::Refused(item)) = self.0.send_update(update).await?;
        decode_or_free(lane, item)
    }

    /// The acks and notices of these batches are through.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn closed(&self, lane: &Lane, batches: &[Uuid]) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("DELETE closing :batches")
            .condition_expression("attribute_exists(closing)")
            .expression_attribute_values(":batches", id_set(batches));
        self.0.send_update(update).await.map(|_| ())
    }

    /// The failures of a batch that was closed are to be reported again: it is closing again, and its lane is busy.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn close_again(&self, lane: &Lane, batch: Uuid) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("SET active = if_not_exists(active, :index) REMOVE #ttl ADD closing :batch")
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":index", text(lane.shard()))
            .expression_attribute_values(":batch", id_set([&batch]));
        self.0.send_update(update).await.map(|_| ())
    }

    /// The lanes of one shard that were busy when last looked at.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn busy(&self, shard: u64) -> Result<Vec<Lane>, StoreError> {
        let items = self.0.query_index("active", &shard.to_string(), usize::MAX).await?;
        items.iter().map(|item| Reader::new("locks", "lane", item).parsed("lane")).collect()
    }

    /// Takes an idle lane out of the index of busy lanes and lets its record expire.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn retire(&self, lane: &Lane, now: Timestamp) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("SET #ttl = :ttl REMOVE active, waiting")
            .condition_expression(
                "attribute_not_exists(holder) AND attribute_not_exists(in_flight) AND attribute_not_exists(closing) \
                 AND attribute_not_exists(paused) AND attribute_exists(active)",
            )
            .expression_attribute_names("#ttl", "ttl")
            .expression_attribute_values(":ttl", number(now.plus(LANE_RETENTION).seconds()));
        self.0.send_update(update).await.map(|_| ())
    }

    async fn done(
        &self,
        update: aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder,
    ) -> Result<Write, StoreError> {
        Ok(match self.0.send_update(update).await? {
            Write::Done(_) => Write::Done(()),
            Write::Refused(item) => Write::Refused(item),
        })
    }
}

/// Who acts for a lane, and when.
#[derive(Clone, Copy, Debug)]
pub struct Leader<'a> {
    /// The lane.
    pub lane: &'a Lane,
    /// The batch whose workflow leads.
    pub batch: Uuid,
    /// The epoch it was elected in: it may only step down from that election.
    pub epoch: u64,
    /// Now.
    pub now: Timestamp,
}

fn decode_or_free(lane: &Lane, item: Option<Item>) -> Result<Lock, StoreError> {
    item.map_or_else(|| Ok(Lock::free(lane.clone())), |item| Lock::decode(&item))
}
