//! One invocation reads pages of a partition until its time is up.

use std::num::NonZeroU16;

use fanfold::aws::Write;
use fanfold::limits::{PRODUCE_TIME_MAX, SOURCE_PAUSES, SOURCE_TRIES_MAX};
use fanfold::messages::ProduceMessage;
use fanfold::metrics::{PARTITIONS_FAILED, ROWS_DROPPED, ROWS_READ, SOURCE_TRIES_FAILED};
use fanfold::producing::{Producer, Source};
use fanfold::registering::{CheckedTasks, RegisterError, Registered, Registration};
use fanfold::store::fanouts::{Fanout, FanoutState};
use fanfold::store::producers::{KeptPage, Page, Partition, PartitionState};
use fanfold::tracking::TrackingError;
use uuid::Uuid;

use crate::read::{items, with_items};
use crate::{Produce, ProduceError, SourceError};

/// Why a page cannot be registered whose items were added before.
const OTHER_ROWS: &str = "the page has another number of rows than when it was read first: the source was changed";

impl Produce {
    /// Goes on with a partition from where its record says, until its end, or for a while.
    ///
    /// # Errors
    /// Tables or queues cannot be reached. Doing it again is safe.
    pub async fn move_on(&self, message: ProduceMessage) -> Result<(), ProduceError> {
        let until = self.world.now().plus(PRODUCE_TIME_MAX);
        let unknown = || ProduceError::Unknown(message);
        let fanout = self.tracking.fanouts.get(message.fanout).await?.ok_or_else(unknown)?;
        // Tasks that it was opened with take the place of a producer.
        if fanout.tasks.is_some() {
            return Ok(self.registrar.register_opened(&[fanout]).await?);
        }
        let found = self.producing.producers.get(message.fanout, message.partition).await?;
        let mut at = found.ok_or_else(unknown)?;
        let producer = fanout.producer.as_ref().ok_or_else(unknown)?;
        let (worker, mut known) = (self.world.uuid(), true);
        while at.state == PartitionState::Running {
            if !at.wait(self.world.now()).is_zero() {
                return Ok(self.producing.send(&at).await?);
            }
            if fanout.state != FanoutState::Open {
                return self.give_up(&at, &not_open(&fanout)).await;
            }
            match self.next(producer, &at, known, worker).await {
                Ok(Write::Done(behind)) => at = behind,
                // Another worker moved it on.
                Ok(Write::Refused(_)) => return Ok(()),
                Err(error) => return self.failed(&at, error).await,
            }
            known = false;
            if at.state == PartitionState::Running && self.world.now() >= until {
                return Ok(self.producing.send(&at).await?);
            }
        }
        if at.state == PartitionState::Done {
            self.producing.close(&self.tracking, &fanout, &at).await?;
        }
        Ok(())
    }

    /// Registers the page that a partition is at, and moves the partition on.
    async fn next(
        &self,
        producer: &Producer,
        at: &Partition,
        known: bool,
        worker: Uuid,
    ) -> Result<Write<Partition, Option<Partition>>, ProduceError> {
        let (page, duplicates) = match producer.keeps_pages() {
            true => self.bring_kept(producer, self.kept(producer, at, known).await?, at).await?,
            false => self.bring_whole(self.whole(producer, at).await?, at).await?,
        };
        let moved = self.producing.producers.advance(at, &page, duplicates, worker).await?;
        if moved.is_done() {
            metrics::counter!(ROWS_READ).increment(page.rows);
            metrics::counter!(ROWS_DROPPED).increment(page.dropped);
        }
        Ok(moved)
    }

    /// Adds the items of a page and registers its tasks. Returns how many are duplicates, too.
    async fn bring_kept(
        &self,
        producer: &Producer,
        kept: KeptPage,
        at: &Partition,
    ) -> Result<(Page, u64), ProduceError> {
        let KeptPage { page, tasks, .. } = kept;
        if tasks.is_empty() {
            return Ok((page, 0));
        }
        let groups = self.tracking.add_page(at, items(&tasks)).await?;
        let tasks = with_items(tasks, at.fanout, &groups);
        // Tasks are known by their items, so the request needs no id of its own.
        let checked = self.registrar.check(tasks, "").await?.at_most(most(producer));
        let registered = self.registrar.register_checked(checked).await?;
        Ok((page, duplicates(&registered)))
    }

    /// The same for a page that is not kept. As its rows are the same whenever it is read, so are their number, their items, and
    /// the task of each.
    async fn bring_whole(
        &self,
        (page, tasks): (Page, Option<CheckedTasks>),
        at: &Partition,
    ) -> Result<(Page, u64), ProduceError> {
        let Some(tasks) = tasks else { return Ok((page, 0)) };
        self.tracking.add_page(at, u32::try_from(page.rows).unwrap_or(u32::MAX)).await?;
        let registered = self.registrar.register_checked(tasks).await?;
        Ok((page, duplicates(&registered)))
    }

    /// Handles a page that could not be registered: the source is asked again later, or the partition fails.
    async fn failed(&self, at: &Partition, error: ProduceError) -> Result<(), ProduceError> {
        let error = match error {
            ProduceError::Source(error) => error,
            // Policies changed since it was read.
            ProduceError::Register(error @ RegisterError::Refused(_)) => SourceError::again(error),
            ProduceError::Tracking(error @ TrackingError::NotOpen { .. }) => SourceError::for_good(error),
            // Its version says that it is the same, but it is not.
            ProduceError::Tracking(TrackingError::KeyReused(_)) => SourceError::for_good(OTHER_ROWS),
            error => return Err(error),
        };
        metrics::counter!(SOURCE_TRIES_FAILED).increment(1);
        let tries = at.tries + 1;
        if error.for_good || tries >= SOURCE_TRIES_MAX {
            return self.give_up(at, &error.message).await;
        }
        let wait = SOURCE_PAUSES.after(tries, self.world.random.next()).max(error.retry_after);
        let due = self.world.now().plus(wait);
        tracing::warn!(%error, fanout = %at.fanout, partition = at.number, tries, "a source failed and is asked again");
        match self.producing.producers.failed(at, &error.message, Some(due)).await? {
            Write::Done(waits) => Ok(self.producing.send(&waits).await?),
            Write::Refused(_) => Ok(()),
        }
    }

    /// Fails a partition, until a user resumes it.
    async fn give_up(&self, at: &Partition, error: &str) -> Result<(), ProduceError> {
        tracing::error!(error, fanout = %at.fanout, partition = at.number, "a partition of a producer fails");
        if self.producing.producers.failed(at, error, None).await?.is_done() {
            metrics::counter!(PARTITIONS_FAILED).increment(1);
        }
        Ok(())
    }
}

/// How many members a batch of its tasks may have, if the producer says so.
fn most(producer: &Producer) -> Option<NonZeroU16> {
    match &producer.source {
        Source::Reissue(reissue) => reissue.max_batch,
        _ => None,
    }
}

fn duplicates(registered: &[Registered]) -> u64 {
    registered.iter().filter(|task| matches!(task.outcome, Registration::Duplicate { .. })).count() as u64
}

fn not_open(fanout: &Fanout) -> String {
    TrackingError::NotOpen { id: fanout.id, state: fanout.state }.to_string()
}
