//! Locks: one record per lane. It names the lane's leader and every batch of the lane that is not closed, so it is also
//! where `sweep` finds unfinished batches: a batch is `holder`, then in `in_flight`, then in `closing`, each change one
//! conditional write.

mod busy;
mod pace;
mod record;

use uuid::Uuid;

use self::record::{ACQUIRED_AT, ACTIVE, CLOSING, ELECTED_AT, EPOCH, HOLDER, IN_FLIGHT, TTL, WAITING};
use super::findings;
use super::places::{self, ID};
use super::shards::shard;
use crate::aws::attributes::{binary, id_set, number, text, time};
use crate::aws::{Change, StoreError, Table, Write};
use crate::lane::Lane;
use crate::messages::GroupMessage;

pub use self::record::Lock;

/// Whether a key of their table is that of a lane. Other records are kept beside the locks.
#[must_use]
pub fn is_lane(key: &str) -> bool {
    !key.starts_with(places::PREFIX) && key != findings::KEY
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
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, lane: &Lane) -> Result<Lock, StoreError> {
        let item = self.0.get(ID, lane.to_string(), true).await?;
        item.map_or_else(|| Ok(Lock::free(lane.clone())), |item| Lock::decode(&item))
    }

    /// Reads the locks of several lanes; those never used are left out. Not strongly consistent unless asked.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, lanes: &[Lane], consistent: bool) -> Result<Vec<Lock>, StoreError> {
        let keys: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        self.0.get_many(ID, &keys, &[], consistent).await?.iter().map(Lock::decode).collect()
    }

    /// Makes `batch` the lane's leader, if there is no other one, and fewer than `max_in_flight` batches are in flight.
    /// Repeating it for the batch that already leads changes nothing and succeeds: the leader's messages name one epoch.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn acquire(&self, lane: &Lane, batch: Uuid, max_in_flight: u32) -> Result<Write<Lock, Lock>, StoreError> {
        let acquired = self
            .lead(self.change(lane), batch)
            .set_first(ACTIVE, shard(lane))
            .remove([TTL])
            .when_absent(HOLDER)
            .when("attribute_not_exists(in_flight) OR size(in_flight) < :max", [(":max", number(max_in_flight))])
            .send_for_new()
            .await?
            .decode(Lock::decode)?;
        Ok(acquired.or_mine(|lock| lock.holder == Some(batch)).or_absent(|| Lock::free(lane.clone())))
    }

    /// The same for a lane whose lock was seen, if that one is open to the batch.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn acquire_if_open(
        &self,
        seen: Lock,
        batch: Uuid,
        max_in_flight: u32,
    ) -> Result<Write<Lock, Lock>, StoreError> {
        if !seen.open_to(batch, max_in_flight) {
            return Ok(Write::Refused(seen));
        }
        self.acquire(&seen.lane, batch, max_in_flight).await
    }

    /// Renews the lock in the name of a leader that was silent. Returns the message to it, which is to be sent then: of several
    /// senders, one renews the lock.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn renewed(&self, lock: &Lock, message: GroupMessage) -> Result<Option<GroupMessage>, StoreError> {
        let (Some(holder), Some(acquired_at)) = (lock.holder, lock.acquired_at) else { return Ok(None) };
        let change = self
            .change(&lock.lane)
            .when("holder = :silent AND acquired_at = :then", [(":silent", text(holder)), (":then", time(acquired_at))])
            .set(ACQUIRED_AT, time(self.0.world.now()));
        let change = change.set_first(ELECTED_AT, time(acquired_at));
        Ok(change.send().await?.is_done().then_some(message))
    }

    /// The leader has formed its batch and makes `next` the leader, if the lane may have one more in flight; with
    /// `max_in_flight = 1` it never may. Returns the epoch of the next leader, if it did.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn hand_over(
        &self,
        leader: &Leader<'_>,
        next: Uuid,
        max_in_flight: u32,
    ) -> Result<Option<u64>, StoreError> {
        let room = number(max_in_flight.saturating_sub(1));
        let change = self
            .lead(self.led_by(leader), next)
            .add(IN_FLIGHT, id_set([&leader.batch]))
            .when("attribute_not_exists(in_flight) OR size(in_flight) < :room", [(":room", room)]);
        // The write was made in the leader's own epoch, and added one.
        Ok(change.send().await?.is_done().then(|| leader.epoch.saturating_add(1)))
    }

    /// The leader has formed its batch and steps down. `waiting`: more tasks wait. Refused: another batch leads by now.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn step_down(&self, leader: &Leader<'_>, waiting: bool) -> Result<Write<(), Lock>, StoreError> {
        let change = self
            .led_by(leader)
            .set_some(WAITING, waiting.then(|| number(leader.epoch)))
            .remove([HOLDER, ACQUIRED_AT])
            .add(IN_FLIGHT, id_set([&leader.batch]));
        let stepped_down = change.send().await?.decode_refused(Lock::decode)?;
        Ok(match stepped_down {
            Write::Done(()) => Write::Done(()),
            Write::Refused(lock) => Write::Refused(lock.unwrap_or_else(|| Lock::free(leader.lane.clone()))),
        })
    }

    /// The leader found nothing to group and steps down, unless another batch leads by now.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn resign(&self, leader: &Leader<'_>) -> Result<(), StoreError> {
        self.led_by(leader).remove([HOLDER, ACQUIRED_AT]).send().await.map(|_| ())
    }

    /// Notes that tasks wait: for room in flight, or behind a leader that may not have seen them.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn wait(&self, lane: &Lane) -> Result<(), StoreError> {
        let change = self
            .change(lane)
            .set(WAITING, number(0_u32))
            .when_absent(WAITING)
            .when("attribute_exists(in_flight) OR attribute_exists(holder)", []);
        change.send().await.map(|_| ())
    }

    /// An ended batch leaves `in_flight`; with `closing` it stays known until its acks and notices are through. Refused: it has
    /// left before.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn leave(&self, lane: &Lane, batch: Uuid, closing: bool) -> Result<Write<Lock, Lock>, StoreError> {
        let left = self.out_of_flight(lane, batch, closing).send_for_new().await?.decode(Lock::decode)?;
        Ok(left.or_absent(|| Lock::free(lane.clone())))
    }

    /// The same, and the same write makes `next` the lane's leader, if tasks wait, there is no leader, and fewer than
    /// `max_in_flight` other batches are in flight.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn lead_on(
        &self,
        lane: &Lane,
        batch: Uuid,
        closing: bool,
        next: Uuid,
        max_in_flight: u32,
    ) -> Result<Write<Lock, Lock>, StoreError> {
        let left = self
            .lead(self.out_of_flight(lane, batch, closing), next)
            .when_present(WAITING)
            .when_absent(HOLDER)
            .when("size(in_flight) <= :max", [(":max", number(max_in_flight))])
            .send_for_new()
            .await?
            .decode(Lock::decode)?;
        Ok(left.or_absent(|| Lock::free(lane.clone())))
    }

    /// The acks and notices of these batches are through.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn closed(&self, lane: &Lane, batches: &[Uuid]) -> Result<(), StoreError> {
        let change = self.change(lane).delete(CLOSING, id_set(batches)).when_present(CLOSING);
        change.send().await.map(|_| ())
    }

    /// The failures of a batch that was closed are to be reported again: it is closing again, and its lane is busy.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn close_again(&self, lane: &Lane, batch: Uuid) -> Result<(), StoreError> {
        let change = self.change(lane).set_first(ACTIVE, shard(lane)).add(CLOSING, id_set([&batch])).remove([TTL]);
        change.send().await.map(|_| ())
    }

    fn change(&self, lane: &Lane) -> Change<'_> {
        self.0.change(ID, lane)
    }

    /// `batch` leads from now on, in an epoch of its own. It finds whatever waits.
    fn lead<'a>(&self, change: Change<'a>, batch: Uuid) -> Change<'a> {
        let change = change.set(HOLDER, text(batch)).set(ACQUIRED_AT, time(self.0.world.now()));
        change.add(EPOCH, number(1_u32)).remove([WAITING, ELECTED_AT])
    }

    /// A batch in flight is so no more.
    fn out_of_flight(&self, lane: &Lane, batch: Uuid, closing: bool) -> Change<'_> {
        self.change(lane)
            .delete(IN_FLIGHT, id_set([&batch]))
            .add_some(CLOSING, closing.then(|| id_set([&batch])))
            .when("contains(in_flight, :id)", [(":id", binary(batch.as_bytes()))])
    }

    /// Begins a change that only the leader may make, in the epoch it was elected in.
    fn led_by(&self, leader: &Leader<'_>) -> Change<'_> {
        let (me, epoch) = (text(leader.batch), number(leader.epoch));
        self.change(leader.lane).when("holder = :me AND epoch = :epoch", [(":me", me), (":epoch", epoch)])
    }
}

/// Who acts for a lane.
#[derive(Clone, Copy, Debug)]
pub struct Leader<'a> {
    /// The lane.
    pub lane: &'a Lane,
    /// The batch whose workflow leads.
    pub batch: Uuid,
    /// The epoch it was elected in: it may only step down from that election.
    pub epoch: u64,
}
