//! Producing: fan-outs whose tasks come from a source, read page by page in disjoint partitions.

mod page;
mod reissue;
mod source;
mod spec;

use uuid::Uuid;

pub use self::page::{BadRow, Given, Position, Sieve, Sifted, Whole};
pub use self::reissue::{Corrected, ReissueError, ReissuePlace, ReissueRequest, ReissuedItems};
pub(crate) use self::source::check_function;
#[cfg(feature = "openapi")]
pub(crate) use self::source::{BUCKET, FUNCTION};
pub use self::source::{Format, LocalFile, Objects, Reissue, RunRows, Source, TakenOn};
pub use self::spec::Producer;
use crate::aws::{Queue, QueueError, StoreError, Write};
use crate::clock::World;
use crate::config::{ConfigError, Surroundings, variables};
use crate::messages::ProduceMessage;
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::producers::{Partition, PartitionState, Producers};
use crate::tracking::{NewFanout, OpenRequest, Opened, Tracking, TrackingError};

/// The protocols of producers, except reading their sources.
#[derive(Clone, Debug)]
pub struct Producing {
    /// Partitions and pages.
    pub producers: Producers,
    queue: Queue<ProduceMessage>,
    world: World,
}

/// A fan-out's producer could not be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The fan-out has none.
    #[error("fan-out {0} has no producer")]
    NoProducer(Uuid),
    /// Nothing can be added to the fan-out any more.
    #[error("fan-out {id} is {}; a producer can be resumed only while its fan-out is open", state.as_str())]
    NotOpen {
        /// The fan-out.
        id: Uuid,
        /// Its state.
        state: FanoutState,
    },
    /// The table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent. It is made again by a sweep.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl Producing {
    /// In the table and queue that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            producers: Producers::from_environment(surroundings)?,
            queue: surroundings.queue(variables::PRODUCE_QUEUE_URL)?,
            world: surroundings.world.clone(),
        })
    }

    /// Opens a fan-out, with the partitions of its producer if it has one, in one transaction. Then sends a message for each
    /// partition; `sweep` sends lost ones again.
    ///
    /// # Errors
    /// The request cannot be fulfilled, or tables and queues cannot be written.
    pub async fn open(
        &self,
        tracking: &Tracking,
        request: OpenRequest,
        key: Option<&str>,
    ) -> Result<Opened, TrackingError> {
        let new = tracking.new_fanout(key);
        tracking.check_open(&request, new).await?;
        self.open_checked(tracking, request, new).await
    }

    /// The same for a request that [`Tracking::check_open`] has checked.
    ///
    /// # Errors
    /// The id was used for another request, or tables and queues cannot be written.
    pub async fn open_checked(
        &self,
        tracking: &Tracking,
        request: OpenRequest,
        new: NewFanout,
    ) -> Result<Opened, TrackingError> {
        let of = request.producer.as_ref().map_or(0, |producer| producer.partitions);
        let partitions = |fanout| self.producers.insert_actions(fanout, of);
        let opened = tracking.open_checked(request, new, partitions).await?;
        if opened.new {
            let message = |partition| ProduceMessage::to(opened.fanout.id, partition);
            self.send_all((0..of).map(message)).await?;
        }
        Ok(opened)
    }

    /// Sends the message by which the tasks are registered that a fan-out was opened with.
    ///
    /// # Errors
    /// The message cannot be sent.
    pub async fn register_again(&self, fanout: Uuid) -> Result<(), QueueError> {
        self.send_all([ProduceMessage::opened_with_tasks(fanout)]).await
    }

    /// The partitions of a fan-out's producer; none if it has none.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn partitions(&self, fanout: &Fanout) -> Result<Vec<Partition>, StoreError> {
        match &fanout.producer {
            Some(producer) => self.producers.all(fanout.id, producer.partitions).await,
            None => Ok(Vec::new()),
        }
    }

    /// Resumes the failed partitions of a fan-out's producer. Returns all partitions as they stand then.
    ///
    /// # Errors
    /// It has no producer, or is not open, or tables and queues cannot be reached.
    pub async fn resume(&self, fanout: &Fanout) -> Result<Vec<Partition>, ResumeError> {
        if fanout.producer.is_none() {
            return Err(ResumeError::NoProducer(fanout.id));
        }
        if fanout.state != FanoutState::Open {
            return Err(ResumeError::NotOpen { id: fanout.id, state: fanout.state });
        }
        let mut resumed = Vec::new();
        for partition in self.partitions(fanout).await? {
            if partition.state == PartitionState::Failed
                && let Write::Done(partition) = self.producers.resume(&partition).await?
            {
                resumed.push(partition.message());
            }
        }
        self.send_all(resumed).await?;
        Ok(self.partitions(fanout).await?)
    }

    /// Seals the fan-out if all its partitions are done, then forgets this one, which is. Each partition is marked as done
    /// before the others are read, so the last one sees all. If the record of one has expired, its rows may not have been
    /// read: the fan-out stays open. Doing it again does no harm.
    ///
    /// # Errors
    /// Tables and queues cannot be reached.
    pub async fn close(&self, tracking: &Tracking, fanout: &Fanout, done: &Partition) -> Result<(), TrackingError> {
        let all = self.partitions(fanout).await?;
        let of = fanout.producer.as_ref().map_or(0, |producer| producer.partitions as usize);
        if all.len() == of && all.iter().all(|partition| partition.state == PartitionState::Done) {
            tracking.seal_produced(fanout.id).await?;
        }
        Ok(self.producers.close(done).await?)
    }

    /// Sends a partition's message, for the moment its source may be asked again.
    ///
    /// # Errors
    /// The message cannot be sent.
    pub async fn send(&self, partition: &Partition) -> Result<(), QueueError> {
        self.queue.send_all([(&partition.message(), partition.wait(self.world.now()))]).await
    }

    async fn send_all(&self, messages: impl IntoIterator<Item = ProduceMessage>) -> Result<(), QueueError> {
        let messages: Vec<ProduceMessage> = messages.into_iter().collect();
        self.queue.send_all(messages.iter().map(|message| (message, std::time::Duration::ZERO))).await
    }
}
