//! The step `notify`: delivers completion and failure notices.

mod deliver;

use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::{NotifyMessage, Settles};
use fanfold::metrics::NOTICES_DELIVERED;
use fanfold::notice::Notice;
use fanfold::policy::Destination;
use fanfold::queue::Queue;
use fanfold::store::StoreError;
use fanfold::store::batches::{BatchStatus, Batches};
use fanfold::store::fanouts::Fanouts;
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use uuid::Uuid;

pub use deliver::{DeliveryError, Http};

/// Notices delivered at once by one invocation.
const CONCURRENT_NOTICES: usize = 10;

/// Delivers notices.
#[derive(Debug)]
pub struct Notify {
    fanouts: Fanouts,
    batches: Batches,
    locks: Locks,
    policies: Policies,
    notices: Queue<Notice>,
    http: Http,
}

/// A notice was not delivered; its message comes again.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error("there is no {0}")]
    Unknown(String),
    #[error("batch {0} is not done; its failures are told together, when it is")]
    NotDone(Uuid),
}

impl Notify {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn new(surroundings: &Surroundings, http: Http) -> Result<Self, ConfigError> {
        let world = surroundings.world.clone();
        Ok(Self {
            fanouts: Fanouts::new(surroundings.table(variables::FANOUTS_TABLE)?, world.clone()),
            batches: Batches::new(surroundings.table(variables::BATCHES_TABLE)?, world.clone()),
            locks: Locks::new(surroundings.table(variables::LOCKS_TABLE)?),
            policies: Policies::new(surroundings.table(variables::POLICIES_TABLE)?, world),
            notices: surroundings.queue(variables::NOTICES_QUEUE_URL)?,
            http,
        })
    }

    async fn tell(&self, message: &NotifyMessage) -> Result<(), NotifyError> {
        match message {
            NotifyMessage::Fanout(id) => self.tell_end(*id).await,
            NotifyMessage::Batch(settles) => self.tell_failures(settles).await,
        }
    }

    /// Tells a fan-out's end, then marks it told. A crash in between tells it again, under the same id.
    async fn tell_end(&self, id: Uuid) -> Result<(), NotifyError> {
        let fanout = self.fanouts.get(id).await?.ok_or_else(|| NotifyError::Unknown(format!("fan-out {id}")))?;
        if !fanout.to_notify() {
            return Ok(());
        }
        if let Some(destination) = &fanout.notify {
            self.deliver(destination, &Notice::completed(&fanout)).await?;
        }
        Ok(self.fanouts.mark_notified(id).await?)
    }

    /// Tells a batch's failures; with that the batch is settled.
    async fn tell_failures(&self, settles: &Settles) -> Result<(), NotifyError> {
        let batch = self.batches.get(settles.batch).await?;
        let batch = batch.ok_or_else(|| NotifyError::Unknown(format!("batch {}", settles.batch)))?;
        // Told too early, the notice would keep its id and change its failures.
        if batch.status != BatchStatus::Done {
            return Err(NotifyError::NotDone(batch.id));
        }
        let policy = self.policies.get(&batch.lane.kind).await?;
        let destination = policy.as_ref().and_then(|policy| policy.notify.as_ref());
        if let Some(destination) = destination {
            for notice in Notice::failed(&batch) {
                self.deliver(destination, &notice).await?;
            }
        }
        Ok(self.locks.settled(&batch.lane, &[batch.id]).await?)
    }

    async fn deliver(&self, destination: &Destination, notice: &Notice) -> Result<(), NotifyError> {
        match destination {
            Destination::Queue(_) => self.notices.send(notice).await.map_err(DeliveryError::from)?,
            Destination::Url(url) => self.http.post(url, notice).await?,
        }
        metrics::counter!(NOTICES_DELIVERED).increment(1);
        Ok(())
    }
}

impl Step for Notify {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<NotifyMessage>(deliveries);
            let told = messages.into_iter().map(|(delivery, message)| async move {
                let result = self.tell(&message).await;
                (delivery.message_id, message, result)
            });
            let mut told = stream::iter(told).buffer_unordered(CONCURRENT_NOTICES);
            while let Some((message_id, message, result)) = told.next().await {
                if let Err(error) = result {
                    tracing::error!(%error, ?message, "a notice was not delivered");
                    failures.push(message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
