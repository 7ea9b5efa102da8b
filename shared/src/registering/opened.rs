//! The tasks that fan-outs are opened with.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::items::items;
use super::{RegisterError, Registrar};
use crate::limits::ACKS_AT_ONCE_MAX;
use crate::store::fanouts::Fanout;

impl Registrar {
    /// Registers the tasks that fan-outs were opened with, together, and then notes so in each header. A worker that dies meanwhile
    /// leaves the others in the headers, and a sweep has them registered. A task that its policy does not accept any more leaves its
    /// fan-out's tasks there, too, until it does. Doing it again is safe: each task is stored once, under its item.
    ///
    /// # Errors
    /// Tables or queues cannot be reached, or a record is corrupt.
    pub async fn register_opened(&self, fanouts: &[Fanout]) -> Result<(), RegisterError> {
        let due: Vec<&Fanout> = fanouts.iter().filter(|fanout| fanout.to_register()).collect();
        let (mut tasks, mut fanout_of) = (Vec::new(), Vec::new());
        for fanout in &due {
            let unregistered = fanout.unregistered()?;
            fanout_of.extend(std::iter::repeat_n(fanout.id, unregistered.len()));
            tasks.extend(unregistered);
        }
        let (mut assigned, mut left) = (Vec::with_capacity(tasks.len()), BTreeSet::new());
        for task in self.assign_each(tasks.into_iter().enumerate().collect(), "", true).await? {
            match task {
                Ok((_, task)) => assigned.push(task),
                Err(fault) => {
                    let fanout = fanout_of.get(fault.index).copied().unwrap_or_default();
                    tracing::error!(%fanout, %fault, "a task that a fan-out was opened with cannot be registered now");
                    left.insert(fanout);
                }
            }
        }
        if !assigned.is_empty() {
            let groups = self.tracking.groups_with(&items(&assigned)).await?;
            self.store(&assigned, &groups).await?;
        }
        let done: Vec<Uuid> = due.iter().map(|fanout| fanout.id).filter(|id| !left.contains(id)).collect();
        let note = |id: Uuid| async move { self.tracking.fanouts.registered(id).await };
        stream::iter(done.into_iter().map(note)).buffer_unordered(ACKS_AT_ONCE_MAX).try_collect::<()>().await?;
        Ok(())
    }
}
