//! Wakes what the outstanding items of a fan-out wait for: `sweep` does the same for everything, a little later.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::{Control, ControlError};
use crate::ids::{ItemId, TaskId};
use crate::lane::Lane;
use crate::limits::KEYS_PER_READ_MAX;
use crate::messages::ElectMessage;
use crate::store::batches::BatchStatus;
use crate::store::tasks::TaskStatus;
use crate::tracking::{Acks, Tracking, collect_duplicates};

/// What items of a fan-out that are not done wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Woken {
    /// Tasks that no batch has claimed. Their lanes hold elections, unless they are paused.
    pub waiting: u64,
    /// Tasks in batches that have not ended. A batch whose call is due is called.
    pub in_flight: u64,
    /// Tasks that have their outcome, or were cancelled: their acks are on their way.
    pub settled: u64,
    /// Items whose tasks are duplicates. They are acked now.
    pub duplicates: u64,
    /// Items without a task: only your own workers can ack them.
    pub without_task: u64,
}

impl Woken {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            in_flight: self.in_flight + other.in_flight,
            settled: self.settled + other.settled,
            duplicates: self.duplicates + other.duplicates,
            without_task: self.without_task + other.without_task,
        }
    }
}

impl Control {
    /// Wakes what these items, which are not done, wait for. It sends messages and decides nothing: what is in flight stays so, and
    /// doing it again does no harm.
    ///
    /// # Errors
    /// Tables or queues cannot be reached.
    pub async fn wake_items(&self, tracking: &Tracking, items: &[ItemId]) -> Result<Woken, ControlError> {
        let mut woken = Woken::default();
        for items in items.chunks(KEYS_PER_READ_MAX) {
            woken = woken.plus(self.wake_some(tracking, items).await?);
        }
        Ok(woken)
    }

    async fn wake_some(&self, tracking: &Tracking, items: &[ItemId]) -> Result<Woken, ControlError> {
        let ids: Vec<TaskId> = items.iter().map(|item| TaskId::Item(*item)).collect();
        let tasks = self.tasks.get_many(&ids).await?;
        let mut woken = Woken { without_task: (items.len() - tasks.len()) as u64, ..Woken::default() };
        let (mut lanes, mut duplicates) = (BTreeSet::new(), Vec::new());
        let batches = self.batches.of_tasks(tasks.values()).await?;
        for task in tasks.values() {
            let batch = task.batch.and_then(|id| batches.get(&id));
            match (task.status(batch), &task.id) {
                (TaskStatus::Created, _) => {
                    woken.waiting += 1;
                    lanes.insert(task.lane.clone());
                }
                (TaskStatus::Batched | TaskStatus::InProgress, _) => {
                    woken.in_flight += 1;
                    // Its leader may be gone before it formed the batch.
                    if batch.is_none_or(|batch| batch.status == BatchStatus::Grouping) {
                        lanes.insert(task.lane.clone());
                    }
                }
                (TaskStatus::Duplicate, TaskId::Item(item)) => {
                    woken.duplicates += 1;
                    duplicates.push(*item);
                }
                (TaskStatus::Duplicate, TaskId::Single(_)) => {}
                (TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Dropped | TaskStatus::Cancelled, _) => {
                    woken.settled += 1;
                }
            }
        }
        self.wake_lanes(lanes.into_iter().collect()).await?;
        self.wake_due(batches.values()).await?;
        if !duplicates.is_empty() {
            let mut acks = Acks::new();
            collect_duplicates(&mut acks, duplicates);
            tracking.ack(&acks).await?;
        }
        Ok(woken)
    }

    /// Lanes hold elections, except paused ones.
    async fn wake_lanes(&self, lanes: Vec<Lane>) -> Result<(), ControlError> {
        let running = self.policies.not_paused(lanes, |lane| lane).await?.into_iter();
        let wakes: Vec<ElectMessage> = running.map(|(lane, _)| ElectMessage::wake(lane, self.world.uuid())).collect();
        Ok(self.elect.send_all(wakes.iter().map(|message| (message, Duration::ZERO))).await?)
    }
}
