//! The step `handle`: calls the batch API, retries, and records outcomes, those too that come later.

mod attempt;
mod begin;
mod breaker;
mod call;
mod conclude;
mod dev;
mod drop;
mod later;
mod lead_on;
mod outcomes;
mod pace;
mod places;
mod posted;
mod posts;
mod release;
mod routes;
mod settle;
mod step;
mod times;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use fanfold::aws::{Queue, QueueError, StoreError};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::control::DevQueues;
use fanfold::ids::no_batch;
use fanfold::limits::PARTS_WITHIN;
use fanfold::messages::{AckRequest, ElectMessage, GroupMessage, HandleMessage, NotifyMessage};
use fanfold::store::batches::Batches;
use fanfold::store::fanouts::Fanouts;
use fanfold::store::gates::{Gates, places_max};
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold_batch_api::Caller;
use uuid::Uuid;

#[cfg(feature = "openapi")]
pub use routes::describe;
pub use routes::router;

/// Calls batch APIs and records the outcomes of members.
pub struct Handle {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    fanouts: Fanouts,
    gates: Gates,
    /// Calls that one kind may have at once.
    places_max: u32,
    policies: Policies,
    /// The queues that dev sessions may have, if the stack allows these.
    dev_queues: Option<DevQueues>,
    handle: Queue<HandleMessage>,
    ack: Queue<AckRequest>,
    notify: Queue<NotifyMessage>,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    caller: Arc<dyn Caller>,
    /// How long after its beginning an invocation may begin calls for further parts of a batch.
    parts_within: Duration,
    world: World,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// A batch could not be handled; its message is delivered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("{}", no_batch(*.0))]
    UnknownBatch(Uuid),
    #[error("batch {0} is not formed yet")]
    NotFormed(Uuid),
}

impl Handle {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings, caller: Arc<dyn Caller>) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            fanouts: Fanouts::from_environment(surroundings)?,
            gates: Gates::from_environment(surroundings)?,
            places_max: places_max(surroundings.number(variables::BATCH_API_CONCURRENCY)?),
            policies: Policies::from_environment(surroundings)?,
            dev_queues: surroundings.optional(variables::DEV_QUEUES).map(DevQueues::new),
            handle: surroundings.handle_queue()?,
            ack: surroundings.queue(variables::ACK_QUEUE_URL)?,
            notify: surroundings.queue(variables::NOTIFY_QUEUE_URL)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            caller,
            parts_within: PARTS_WITHIN,
            world: surroundings.world.clone(),
        })
    }

    /// The same, but each call has a message of its own. A runner that stops taking messages then also stops between two parts of a
    /// batch.
    #[must_use]
    pub fn call_by_call(self) -> Self {
        Self { parts_within: Duration::ZERO, ..self }
    }
}
