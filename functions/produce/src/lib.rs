//! The step `produce`: reads a partition of a fan-out's source page by page, adds its items, registers its tasks, and moves the
//! partition on.
//!
//! A page is stored before it is used, by a conditional write under the partition's page number: the first stored answer
//! counts, even if other workers read the source again and it answers otherwise. Where it cannot, because the cursor names the
//! version of what is read, no page is stored: it is all of its rows, whenever it is read. All that follows is the same if it is
//! repeated: the items' ids follow from (fan-out, partition, page), a task is stored once under its item, and the partition
//! moves on from a page once.

mod all;
mod aws;
mod files;
mod lambda;
mod move_on;
mod objects;
mod read;
mod reissue;
mod s3;
mod source;
mod url;

use std::sync::Arc;

use fanfold::aws::{QueueError, StoreError};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings};
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::ProduceMessage;
use fanfold::producing::Producing;
use fanfold::registering::{RegisterError, Registrar};
use fanfold::store::batches::Batches;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::{Tracking, TrackingError};
use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::Instrument;

pub use all::{AllSources, LocalSources};
pub use objects::{Bytes, Head, Names, Pages, Store};
pub use source::{Asking, SourceAnswer, SourceError, SourceRequest, Sources};

/// Reads sources.
pub struct Produce {
    producing: Producing,
    tracking: Tracking,
    tasks: Tasks,
    batches: Batches,
    registrar: Registrar,
    sources: Arc<dyn Sources>,
    world: World,
}

impl std::fmt::Debug for Produce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Produce").finish_non_exhaustive()
    }
}

/// A partition could not be moved on; the message is delivered again.
#[derive(Debug, thiserror::Error)]
pub enum ProduceError {
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Items could not be added.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    /// Tasks could not be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The partition or its fan-out does not exist (any more).
    #[error("there is no partition {} of fan-out {}", .0.partition, .0.fanout)]
    Unknown(ProduceMessage),
    /// The source gave no page. The partition notes that, and waits or fails.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl Produce {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings, sources: Arc<dyn Sources>) -> Result<Self, ConfigError> {
        Ok(Self {
            producing: Producing::from_environment(surroundings)?,
            tracking: Tracking::from_environment(surroundings)?,
            tasks: Tasks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            registrar: Registrar::from_environment(surroundings)?,
            sources,
            world: surroundings.world.clone(),
        })
    }
}

impl Step for Produce {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<ProduceMessage>(deliveries);
            for (delivery, message) in messages {
                let span = tracing::error_span!("partition", fanout = %message.fanout, partition = message.partition);
                if let Err(error) = self.move_on(message).instrument(span.clone()).await {
                    span.in_scope(|| tracing::error!(%error, "a partition could not be moved on"));
                    failures.push(delivery.message_id);
                }
            }
            failures
        }
        .boxed()
    }
}
