//! The end of a batch leads its lane on: no election is held for tasks that wait for room in flight.

use fanfold::aws::Write;
use fanfold::ids::derived;
use fanfold::messages::{ElectMessage, GroupMessage};
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold::store::locks::Lock;
use fanfold::waiting::Waiting;
use uuid::Uuid;

use crate::{Handle, HandleError};

impl Handle {
    /// Takes an ended batch out of its lane's flight. If tasks wait there, and may be grouped, the lane's next batch leads from
    /// then on, unless the lane is paused. `more`: that is likely. Returns the lock after that.
    pub(crate) async fn leave_flight(
        &self,
        batch: &Batch,
        policy: Option<&Policy>,
        closing: bool,
        more: bool,
    ) -> Result<Lock, HandleError> {
        let next = derived::led_on(batch.id);
        let paused = self.policies.hold(&batch.lane).await?.paused;
        let max_in_flight = policy.map(|policy| policy.max_in_flight).filter(|_| !paused);
        let lock = self.led_on(batch, max_in_flight, closing, more).await?;
        self.wake_next(&lock, next, paused).await?;
        Ok(lock)
    }

    /// The lock of a batch that is done and that it does not name any more: all that follows from its end is written. One read
    /// instead of repeating every write.
    pub(crate) async fn left_behind(&self, batch: &Batch) -> Result<Option<Lock>, HandleError> {
        let lock = self.locks.get(&batch.lane).await?;
        // A leader that is still to step down names its batch then, and somebody must take that out again.
        let named = lock.names(batch.id) || lock.holder == Some(batch.id);
        Ok((!named).then_some(lock))
    }

    /// Sends the message again that a batch which has left this lock may not have sent.
    pub(crate) async fn wake_again(&self, batch: &Batch, lock: &Lock) -> Result<(), HandleError> {
        let paused = lock.waiting && self.policies.hold(&batch.lane).await?.paused;
        self.wake_next(lock, derived::led_on(batch.id), paused).await
    }

    /// Sends the message of `next`, if it leads. Also in a repetition: the first worker may have died before it sent the message.
    async fn wake_next(&self, lock: &Lock, next: Uuid, paused: bool) -> Result<(), HandleError> {
        if lock.holder == Some(next) {
            self.group.send(&GroupMessage::finding_out(lock, next, Waiting::default())).await?;
        } else if lock.waiting && lock.holder.is_none() && !paused {
            self.elect.send(&ElectMessage::wake(lock.lane.clone(), self.world.uuid())).await?;
        }
        Ok(())
    }

    async fn led_on(
        &self,
        batch: &Batch,
        max_in_flight: Option<u32>,
        closing: bool,
        more: bool,
    ) -> Result<Lock, HandleError> {
        let (lane, next) = (&batch.lane, derived::led_on(batch.id));
        // One write does both, but it would be wasted if nothing waits.
        if let Some(max_in_flight) = max_in_flight.filter(|_| more) {
            match self.locks.lead_on(lane, batch.id, closing, next, max_in_flight).await? {
                Write::Done(lock) => return Ok(lock),
                Write::Refused(lock) if !lock.in_flight.contains(&batch.id) => return Ok(lock),
                Write::Refused(_) => {}
            }
        }
        // Only the worker that takes the batch out may make the next one the leader: in a repetition the next one may have
        // ended long ago.
        Ok(match (self.locks.leave(lane, batch.id, closing).await?, max_in_flight) {
            (Write::Done(lock), Some(max_in_flight)) if lock.waiting && lock.open_to(next, max_in_flight) => {
                match self.locks.acquire(lane, next, max_in_flight).await? {
                    Write::Done(lock) | Write::Refused(lock) => lock,
                }
            }
            (Write::Done(lock) | Write::Refused(lock), _) => lock,
        })
    }
}
