//! Locks: one record a lane. It names the lane's leader and every batch of the lane that is not settled, so it is also
//! where `sweep` finds unfinished batches: a batch is `holder`, then in `in_flight`, then in `settling`, each change one
//! conditional write.

use aws_sdk_dynamodb::types::ReturnValue;
use uuid::Uuid;

use super::attributes::{Reader, id_set, number, text, time};
use super::{Item, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::lane::Lane;
use crate::limits::LANE_RETENTION;

/// A lane's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lane.
    pub lane: Lane,
    /// The leader: the batch that is being formed.
    pub holder: Option<Uuid>,
    /// When the leader last gave a sign of life.
    pub acquired_at: Option<Timestamp>,
    /// Counts the leaders of this lane.
    pub epoch: u64,
    /// Batches dispatched and not ended.
    pub in_flight: Vec<Uuid>,
    /// Batches ended whose acks and notices are on their way.
    pub settling: Vec<Uuid>,
    /// An operator stopped the lane.
    pub paused: bool,
    /// A leader found more tasks than it may put in flight; whoever ends a batch wakes the lane.
    pub waiting: bool,
}

impl Lock {
    /// The lock of a lane that nobody has used yet.
    #[must_use]
    pub fn free(lane: Lane) -> Self {
        Self {
            lane,
            holder: None,
            acquired_at: None,
            epoch: 0,
            in_flight: Vec::new(),
            settling: Vec::new(),
            paused: false,
            waiting: false,
        }
    }

    /// Whether `batch` could become the leader now. Only the conditional write decides.
    #[must_use]
    pub fn open_to(&self, batch: Uuid, max_in_flight: u32) -> bool {
        self.holder.is_none_or(|holder| holder == batch) && !self.paused && !self.full(max_in_flight)
    }

    /// Whether as many batches are in flight as may be.
    #[must_use]
    pub fn full(&self, max_in_flight: u32) -> bool {
        self.in_flight.len() >= max_in_flight as usize
    }

    /// Whether a batch is known to be in flight or settling.
    #[must_use]
    pub fn names(&self, batch: Uuid) -> bool {
        self.in_flight.contains(&batch) || self.settling.contains(&batch)
    }

    /// Whether there is nothing left to do for the lane.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.holder.is_none() && self.in_flight.is_empty() && self.settling.is_empty()
    }

    fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("locks", "lane", item);
        let holder = reader.optional_text("holder")?;
        Ok(Self {
            lane: reader.parsed("lane")?,
            holder: holder.map(|id| id.parse().map_err(|error| reader.corrupt("holder", error))).transpose()?,
            acquired_at: reader.time("acquired_at")?,
            epoch: reader.number("epoch")?,
            in_flight: reader.ids("in_flight")?,
            settling: reader.ids("settling")?,
            paused: reader.has("paused"),
            waiting: reader.has("waiting"),
        })
    }
}

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
    /// The table can not be read, or the record is corrupt.
    pub async fn get(&self, lane: &Lane) -> Result<Lock, StoreError> {
        let item = self.0.get("lane", lane.to_string(), true).await?;
        item.map_or_else(|| Ok(Lock::free(lane.clone())), |item| Lock::decode(&item))
    }

    /// Reads the locks of several lanes; those never used are left out. Not strongly consistent unless asked.
    ///
    /// # Errors
    /// The table can not be read, or a record is corrupt.
    pub async fn get_many(&self, lanes: &[Lane], consistent: bool) -> Result<Vec<Lock>, StoreError> {
        let keys: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        self.0.get_many("lane", &keys, &[], consistent).await?.iter().map(Lock::decode).collect()
    }

    /// Makes `batch` the lane's leader: nobody else is, the lane is not paused, and fewer than `max_in_flight` batches
    /// are in flight. Repeating it for the batch that already leads changes nothing and succeeds: the leader's messages name
    /// one epoch. `Err` holds the lock that refused.
    ///
    /// # Errors
    /// The table can not be written.
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
    /// The table can not be written.
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
    /// The table can not be written.
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
    /// The table can not be written, or the record is corrupt.
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
    /// The table can not be written.
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
    /// The table can not be written.
    pub async fn wait(&self, lane: &Lane) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("SET waiting = if_not_exists(epoch, :zero)")
            .condition_expression("attribute_exists(in_flight) AND attribute_not_exists(waiting)")
            .expression_attribute_values(":zero", number(0_u32));
        self.0.send_update(update).await.map(|_| ())
    }

    /// An ended batch leaves `in_flight`; with `settling` it stays known until its acks and notices are through. It may have
    /// left before. Answers the lock as it stands then.
    ///
    /// # Errors
    /// The table can not be written, or the record is corrupt.
    pub async fn leave(&self, lane: &Lane, batch: Uuid, settling: bool) -> Result<Lock, StoreError> {
        let add = if settling { " ADD settling :batch" } else { "" };
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression(format!("DELETE in_flight :batch{add}"))
            .condition_expression("contains(in_flight, :id)")
            .expression_attribute_values(":batch", id_set([&batch]))
            .expression_attribute_values(":id", super::attributes::binary(batch.as_bytes()))
            .return_values(ReturnValue::AllNew);
        let (Write::Done(item) | Write::Refused(item)) = self.0.send_update(update).await?;
        decode_or_free(lane, item)
    }

    /// The acks and notices of these batches are through.
    ///
    /// # Errors
    /// The table can not be written.
    pub async fn settled(&self, lane: &Lane, batches: &[Uuid]) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("DELETE settling :batches")
            .condition_expression("attribute_exists(settling)")
            .expression_attribute_values(":batches", id_set(batches));
        self.0.send_update(update).await.map(|_| ())
    }

    /// The lanes of one shard that were busy when last looked at.
    ///
    /// # Errors
    /// The table can not be read, or a record is corrupt.
    pub async fn busy(&self, shard: u64) -> Result<Vec<Lane>, StoreError> {
        let items = self.0.query_index("active", &shard.to_string(), usize::MAX).await?;
        items.iter().map(|item| Reader::new("locks", "lane", item).parsed("lane")).collect()
    }

    /// Takes an idle lane out of the index of busy lanes and lets its record expire.
    ///
    /// # Errors
    /// The table can not be written.
    pub async fn retire(&self, lane: &Lane, now: Timestamp) -> Result<(), StoreError> {
        let update = self
            .0
            .update("lane", lane.to_string())
            .update_expression("SET #ttl = :ttl REMOVE active, waiting")
            .condition_expression(
                "attribute_not_exists(holder) AND attribute_not_exists(in_flight) AND attribute_not_exists(settling) \
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
