//! The step `ack`: clears bits, counts, and completes fan-outs.

mod counts;
mod routes;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use fanfold::aws::{Queue, QueueError, StoreError};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::grouping::{FailureNotice, Follows};
use fanfold::messages::{AckRequest, LaneBatch, NotifyMessage};
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use fanfold::tracking::{Acks, Gathering, Tracking, TrackingError, collect_batch};
use uuid::Uuid;

pub use counts::{CountAnswer, CountedFanout, RefusedCount};
#[cfg(feature = "openapi")]
pub use routes::describe;
pub use routes::{AckAnswer, FanoutAnswer, RefusedItems, router};

/// Clears bits, counts, and completes fan-outs.
#[derive(Debug)]
pub struct Ack {
    tracking: Tracking,
    batches: Batches,
    locks: Locks,
    policies: Policies,
    notify: Queue<NotifyMessage>,
    own: Queue<AckRequest>,
    gathering: Gathering,
    world: World,
}

/// The batches named by messages.
pub(crate) struct Named {
    /// Those that are done.
    pub(crate) done: Vec<Batch>,
    /// Those that do not exist.
    pub(crate) unknown: BTreeSet<Uuid>,
}

/// Acks could not be applied; the message is delivered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AckError {
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Ack {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tracking: Tracking::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            notify: surroundings.queue(variables::NOTIFY_QUEUE_URL)?,
            own: surroundings.queue(variables::ACK_QUEUE_URL)?,
            gathering: Gathering::default(),
            world: surroundings.world.clone(),
        })
    }

    /// The same step, which sends acks on otherwise.
    #[must_use]
    pub fn gathering(self, gathering: Gathering) -> Self {
        Self { gathering, ..self }
    }

    /// Adds what the batches of these messages have settled so far.
    pub(crate) async fn collect_batches(&self, named: &[&LaneBatch], acks: &mut Acks) -> Result<Named, AckError> {
        let mut unknown: BTreeSet<Uuid> = named.iter().map(|named| named.batch).collect();
        let ids: Vec<Uuid> = unknown.iter().copied().collect();
        let batches = self.batches.get_many(&ids).await?;
        for batch in &batches {
            unknown.remove(&batch.id);
            collect_batch(acks, batch);
        }
        Ok(Named { done: batches.into_iter().filter(|batch| batch.status == BatchStatus::Done).collect(), unknown })
    }

    /// Closes batches whose acks are applied, one write per lane. `notify` closes those with a notice of failures, once that is
    /// delivered or given up.
    pub(crate) async fn close(&self, batches: &[Batch]) -> Result<(), AckError> {
        let mut closed: BTreeMap<&fanfold::lane::Lane, Vec<Uuid>> = BTreeMap::new();
        let mut notices = Vec::new();
        for batch in batches.iter().filter(|batch| batch.has_items()) {
            let policy = match self.policies.get(&batch.lane.kind).await {
                Ok(policy) => policy,
                Err(error) => {
                    // It stays known as closing, so that `sweep` comes back to it.
                    tracing::error!(%error, batch = %batch.id, "the batch is not closed");
                    continue;
                }
            };
            match Follows::of(batch, policy.as_deref()).failures {
                FailureNotice::Due => notices.push(NotifyMessage::failures(batch)),
                FailureNotice::Begun => {}
                FailureNotice::None => closed.entry(&batch.lane).or_default().push(batch.id),
            }
        }
        self.notify.send_all(notices.iter().map(|notice| (notice, std::time::Duration::ZERO))).await?;
        for (lane, batches) in closed {
            self.locks.closed(lane, &batches).await?;
        }
        Ok(())
    }
}
