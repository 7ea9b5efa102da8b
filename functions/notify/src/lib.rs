//! The step `notify`: does what follows from the end of a fan-out, and delivers notices of ends, of failures, and of how kinds
//! stand, each by one chain of tries.

mod destinations;
mod follow;
mod look;
mod receivers;
mod sign;
mod tries;
mod webhooks;

use std::sync::Arc;

use aws_sdk_sqs::Client as Sqs;
use fanfold::aws::{Queue, QueueError, StoreError};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::limits::RECEIVER_SHARE;
use fanfold::messages::{NotifyMessage, RegisterMessage};
use fanfold::notice::Notice;
use fanfold::store::batches::Batches;
use fanfold::store::gates::Gates;
use fanfold::store::locks::Locks;
use fanfold::store::places::Places;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::{Tracking, TrackingError};
use fanfold_http_client::aws::Aws;
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

pub use webhooks::{DeliveryError, HttpWebhooks, Webhooks};

/// Does what follows from ends, and delivers notices.
pub struct Notify {
    batches: Batches,
    locks: Locks,
    gates: Gates,
    tracking: Tracking,
    places: Places,
    policies: Policies,
    tasks: Tasks,
    register: Queue<RegisterMessage>,
    notify: Queue<NotifyMessage>,
    dead: Queue<NotifyMessage>,
    notices: Queue<Notice>,
    webhooks: Arc<dyn Webhooks>,
    sqs: Sqs,
    aws: Aws,
    /// Invocations that one receiver may hold at once.
    places_max: u32,
    world: World,
}

impl std::fmt::Debug for Notify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notify").finish_non_exhaustive()
    }
}

/// A notice's record could not be read or written; the message is delivered again.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    #[error("there is no {0}")]
    Unknown(String),
    #[error("batch {0} is not done; its failures are reported together, once it is")]
    NotDone(Uuid),
}

impl Notify {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing or cannot be used.
    pub fn from_environment(surroundings: &Surroundings, webhooks: Arc<dyn Webhooks>) -> Result<Self, ConfigError> {
        Ok(Self {
            batches: Batches::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            gates: Gates::from_environment(surroundings)?,
            tracking: Tracking::from_environment(surroundings)?,
            places: Places::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            tasks: Tasks::from_environment(surroundings)?,
            register: surroundings.queue(variables::REGISTER_QUEUE_URL)?,
            notify: surroundings.queue(variables::NOTIFY_QUEUE_URL)?,
            dead: surroundings.queue(variables::NOTIFY_DEAD_LETTER_QUEUE_URL)?,
            notices: surroundings.queue(variables::NOTICES_QUEUE_URL)?,
            webhooks,
            sqs: surroundings.sqs.clone(),
            aws: Aws::from_environment(surroundings),
            places_max: (surroundings.number(variables::NOTIFY_CONCURRENCY)? / RECEIVER_SHARE).max(1),
            world: surroundings.world.clone(),
        })
    }
}

impl Step for Notify {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<NotifyMessage>(deliveries);
            for (delivery, message, result) in self.process(messages).await {
                if let Err(error) = result {
                    message
                        .about
                        .span()
                        .in_scope(|| tracing::error!(%error, "a notice's message could not be processed"));
                    failures.push(delivery.message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
