//! Messages to a leader that leads no more.

use std::time::Duration;

use fanfold::control::Hold;
use fanfold::grouping::Rest;
use fanfold::ids::derived;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::store::locks::Lock;

use crate::{Group, GroupError, Outbox, lead};

impl Group {
    /// What is to be sent if another batch leads the lane, or none. The leader has formed its batch, or never led. Whoever formed
    /// it may have died before it sent anything. `lock`: as it stands.
    pub(crate) async fn led(&self, message: &GroupMessage, lock: &Lock, hold: Hold) -> Result<Outbox, GroupError> {
        let batch = self.batches.get(message.batch).await?;
        let left = self.left(&message.own(message.waiting.clone()), message, hold).await?;
        let next = derived::next_batch(message.batch);
        let mut outbox = if batch.is_some() && lock.holder == Some(next) {
            let named = Rest { named: left.clone(), ..Rest::default() }.to_name();
            lead((GroupMessage::finding_out(lock, next, named), Duration::ZERO))
        } else {
            self.wake(message, left.clone())
        };
        let Some(batch) = batch else { return Ok(outbox) };
        let led = !outbox.group.is_empty();
        match HandleMessage::first_of(&batch, lock.names(batch.id), !left.is_empty(), led) {
            Some(first) => outbox.handle.push((first, batch.lane)),
            // It won none of its intent. No other message names what waits beside it.
            None if batch.members.is_empty() && !hold.paused => {
                outbox.elect.push(ElectMessage::wake(batch.lane, self.world.uuid()));
            }
            None => {}
        }
        Ok(outbox)
    }
}
