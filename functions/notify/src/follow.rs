//! What follows from the end of a fan-out, before its notice if it can be done by then: its parent item is acked, and its task is registered. Both can be
//! repeated: a bit is cleared once, and a task is stored once under its id, with the content that came first.

use fanfold::clock::Timestamp;
use fanfold::ids::{ItemId, TaskId};
use fanfold::item_results::ItemResultsReader;
use fanfold::messages::RegisterMessage;
use fanfold::notice::FanoutEnded;
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::{Acks, collect_parent};

use crate::{Notify, NotifyError};

impl Notify {
    /// Does what follows from the end of a fan-out. Returns whether all of it is done, as the tables show. A task that was sent
    /// may still be lost: `sweep` has its message sent again until it is found stored.
    pub(crate) async fn follow(&self, fanout: &Fanout) -> Result<bool, NotifyError> {
        if !fanout.to_follow() {
            return Ok(true);
        }
        if let Some(parent) = fanout.parent {
            self.ack_parent(fanout, parent).await?;
        }
        if !self.registered(fanout).await? {
            return Ok(false);
        }
        self.tracking.fanouts.followed(fanout).await?;
        Ok(true)
    }

    /// Acks the parent item at once: no record would show that a message with the ack was lost.
    async fn ack_parent(&self, fanout: &Fanout, parent: ItemId) -> Result<(), NotifyError> {
        let mut acks = Acks::new();
        collect_parent(&mut acks, parent, fanout);
        for refusal in self.tracking.ack(&acks).await?.values() {
            tracing::warn!(fanout = %fanout.id, refusal = %refusal.problem, "the parent item of a fan-out is gone");
        }
        Ok(())
    }

    fn results(&self) -> ItemResultsReader<'_> {
        let (tracking, tasks, batches) = (&self.tracking, &self.tasks, &self.batches);
        ItemResultsReader { tracking, tasks, batches, now: self.world.now() }
    }

    /// Whether a task is an item that was done so long ago that the task is not stored again.
    async fn is_forgotten(&self, task: TaskId) -> Result<bool, NotifyError> {
        let Some(item) = task.item() else { return Ok(false) };
        let groups = self.tracking.groups_with(&[item]).await?;
        Ok(!self.tracking.done_long_ago(&groups, &[item]).await?.is_empty())
    }

    /// Whether the task that follows is stored, or there is none. If not, sends it, unless it was sent a short while ago.
    async fn registered(&self, fanout: &Fanout) -> Result<bool, NotifyError> {
        let Some(then) = &fanout.then else { return Ok(true) };
        let task = then.task(fanout.id);
        if self.tasks.is_stored(&task).await? || self.is_forgotten(task).await? {
            return Ok(true);
        }
        let now: Timestamp = self.world.now();
        if fanout.then_due.is_none_or(|due| due <= now) {
            let results = if then.results { Some(self.results().of(fanout).await?) } else { None };
            let task = then.request(&FanoutEnded::of(fanout), results);
            self.register.send(&RegisterMessage::Task(task)).await?;
            self.tracking.fanouts.then_sent(fanout).await?;
        }
        Ok(false)
    }
}
