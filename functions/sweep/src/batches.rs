//! Batches that no message may be left for.

use std::time::Duration;

use fanfold::limits::REMINDER_PAUSE;
use fanfold::messages::{About, HandleMessage, Settles};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::locks::Lock;
use uuid::Uuid;

use crate::lanes::batches_of;
use crate::{Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Looks at every batch in flight or settling.
    pub(crate) async fn sweep_batches(
        &self,
        locks: &[Lock],
        request: SweepRequest,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let mut lanes = batches_of(locks);
        let ids: Vec<Uuid> = lanes.keys().copied().collect();
        let mut messages = Vec::new();
        for batch in self.batches.get_many(&ids).await? {
            lanes.remove(&batch.id);
            if batch.status == BatchStatus::Done && batch.telling.begun() && !batch.telling.over() {
                // Its acks are through; what is left of it is a notice.
                let about = About::Batch(Settles { batch: batch.id, lane: batch.lane.clone() });
                let tellings = self.batches.tellings();
                let again = self.tell_again(&tellings, about, &batch.telling, batch.updated_at, request).await?;
                report.batches += u64::from(again);
                continue;
            }
            messages.extend(self.lost(&batch, request).await?);
        }
        // Done so long ago that their records are gone.
        for (batch, lane) in lanes {
            self.locks.leave(lane, batch, false).await?;
            self.locks.settled(lane, &[batch]).await?;
        }
        report.batches += messages.len() as u64;
        Ok(self.handle.send_all(messages.iter().map(|(message, delay)| (message, *delay))).await?)
    }

    /// The message a batch waits for, if it should long have come.
    async fn lost(
        &self,
        batch: &Batch,
        request: SweepRequest,
    ) -> Result<Option<(HandleMessage, Duration)>, SweepError> {
        let horizon = self.horizon(request);
        let message = |attempt| HandleMessage { batch: batch.id, attempt };
        let due = match (batch.status, batch.lease_until) {
            // It is the leader's to finish; a lock names it in flight only after it was dispatched.
            (BatchStatus::Grouping, _) => return Ok(None),
            (BatchStatus::Dispatched, _) => (message(1), batch.updated_at),
            (BatchStatus::InProgress, Some(lease_until)) => {
                if request.workers_dead {
                    self.batches.end_lease(batch).await?;
                }
                (message(batch.attempts), lease_until)
            }
            (BatchStatus::InProgress, None) => {
                let retry_at = batch.retry_at.unwrap_or(batch.updated_at);
                if request.workers_dead {
                    return Ok(Some((message(batch.attempts + 1), retry_at.since(self.world.now()))));
                }
                (message(batch.attempts + 1), retry_at)
            }
            // What it left behind is sent again: acks, notices, the next batch's wake-up.
            (BatchStatus::Done, _) => (message(batch.attempts), batch.updated_at),
        };
        let (message, due) = due;
        if request.workers_dead {
            return Ok(Some((message, Duration::ZERO)));
        }
        // A message that is only late is not sent every minute.
        let patient = batch.reminded_at.filter(|reminded_at| *reminded_at >= due).is_some_and(|reminded_at| {
            let pause = reminded_at.since(due).min(REMINDER_PAUSE);
            self.world.now().since(reminded_at) < pause
        });
        let remind = due <= horizon && !patient && self.batches.remind(batch).await?;
        Ok(remind.then_some((message, Duration::ZERO)))
    }
}
