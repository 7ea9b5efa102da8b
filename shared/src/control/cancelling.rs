//! Cancelling tasks that no batch has claimed.
//!
//! The tasks are written down first, as a note. Then they are claimed for no batch, their keys are released, and their items
//! acked as failed. Then the note is closed. If the worker dies in between, `sweep` finishes.

use crate::aws::StoreError;
use crate::clock::{Timestamp, World};
use crate::config::{ConfigError, Surroundings};
use crate::grouping::BundleState;
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::{CANCELLED_PER_PAGE, LOOKED_AT_MAX};
use crate::members::Members;
use crate::messages::AckRequest;
use crate::store::tasks::{PendingCursor, PendingPage, PendingRecord, Tasks};
use crate::tracking::{Acks, Tracking, TrackingError, collect};

use uuid::Uuid;

use super::Scope;

/// Cancels tasks.
#[derive(Debug)]
pub struct Cancelling {
    tasks: Tasks,
    tracking: Tracking,
    world: World,
}

/// A page of a scope that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Tasks that are cancelled.
    pub cancelled: u64,
    /// Where the next page begins, if there may be more.
    pub next: Option<PendingCursor>,
}

impl Cancelling {
    /// In the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            tracking: Tracking::from_environment(surroundings)?,
            world: surroundings.world.clone(),
        })
    }

    /// Cancels those of these tasks that no batch has claimed. Returns those that are cancelled, now or before.
    ///
    /// # Errors
    /// Tables or queues cannot be reached. `sweep` or a repetition finishes what was written down.
    pub async fn cancel(&self, tasks: impl IntoIterator<Item = TaskId>) -> Result<Vec<TaskId>, TrackingError> {
        let tasks = Members::new(tasks);
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let id = self.world.uuid();
        let note = self.tasks.note_cancelling(id, &tasks).await?;
        let cancelled = self.carry_out(&tasks).await?;
        self.tasks.close_cancelling(id, &note).await?;
        Ok(cancelled)
    }

    /// Finishes a cancellation that began before a moment. Returns whether it did.
    ///
    /// # Errors
    /// Tables or queues cannot be reached.
    pub async fn finish(&self, id: Uuid, before: Timestamp) -> Result<bool, TrackingError> {
        let Some(note) = self.tasks.cancelling(id).await?.filter(|note| note.created_at <= before) else {
            return Ok(false);
        };
        self.carry_out(&note.tasks).await?;
        self.tasks.close_cancelling(id, &note).await?;
        Ok(true)
    }

    /// All that follows from a note. Doing it again changes nothing.
    async fn carry_out(&self, tasks: &Members) -> Result<Vec<TaskId>, TrackingError> {
        let cancelled = self.tasks.cancel(tasks.ids()).await?;
        // The batch API was not called for them. A user who sees the failure may register the same again at once.
        self.tasks.release_keys(&cancelled).await?;
        let items = cancelled.iter().filter_map(TaskId::item).map(Into::into);
        let mut acks = Acks::new();
        collect(&mut acks, &AckRequest { failed: items.collect(), ..AckRequest::default() });
        if !acks.is_empty() {
            self.tracking.ack(&acks).await?;
        }
        Ok(cancelled)
    }

    /// Cancels what waits in a scope, each lane in its order, page by page.
    ///
    /// # Errors
    /// Tables or queues cannot be reached.
    pub async fn cancel_page(&self, scope: &Scope, after: Option<&PendingCursor>) -> Result<Selected, TrackingError> {
        let page = self.page(scope, after).await?;
        let (mut tasks, mut last, mut more) = (Vec::new(), None, page.more);
        for (at, (pending, lane)) in page.records.iter().enumerate() {
            if tasks.len() >= CANCELLED_PER_PAGE {
                more = true;
                break;
            }
            last = Some(PendingCursor::after(pending, lane));
            if scope.covers(lane) {
                tasks.extend(self.tasks_in(&page.records[at].0.record, lane).await?);
            }
        }
        let cancelled = self.cancel(tasks).await?.len() as u64;
        Ok(Selected { cancelled, next: last.filter(|_| more) })
    }

    /// A page of what waits in a scope, with other lanes among it.
    async fn page(&self, scope: &Scope, after: Option<&PendingCursor>) -> Result<PendingPage, StoreError> {
        // A target may have tasks in lanes that its policy, as it is now, does not name.
        match scope {
            Scope::All | Scope::Kind(_) | Scope::Target { .. } => self.tasks.pending(after, LOOKED_AT_MAX).await,
            // A cursor of another scope begins anew.
            Scope::Lane(lane) => {
                self.tasks.pending_in(lane, after.filter(|after| after.lane() == lane), LOOKED_AT_MAX).await
            }
        }
    }

    /// The tasks of a record that may wait.
    async fn tasks_in(&self, record: &PendingRecord, lane: &Lane) -> Result<Vec<TaskId>, StoreError> {
        let bundle = match record {
            PendingRecord::Task(id) => return Ok(vec![*id]),
            PendingRecord::Bundle(id) => self.tasks.bundles(&[*id], true).await?.remove(id),
        };
        Ok(bundle.filter(|bundle| bundle.lane == *lane).map_or_else(Vec::new, |bundle| match bundle.state {
            BundleState::Waiting => bundle.tasks(&bundle.free).collect(),
            BundleState::Dead => bundle.members.ids().to_vec(),
            BundleState::Filling | BundleState::Taken => Vec::new(),
        }))
    }
}
