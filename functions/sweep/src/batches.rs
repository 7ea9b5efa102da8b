//! Batches that no message may be left for.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::REMINDER_PAUSE;
use fanfold::messages::{About, HandleMessage, Settles};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::gates::Place;
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
        let full =
            if ids.is_empty() || request.workers_dead { BTreeSet::new() } else { self.full_kinds(locks).await? };
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
            if request.workers_dead {
                messages.extend(self.resumed(&batch).await?);
            } else if self.lost(&batch, request, full.contains(&batch.lane.kind)).await? {
                messages.extend(next(&batch).map(|(message, _)| (message, Duration::ZERO)));
            }
        }
        // Done so long ago that their records are gone.
        for (batch, lane) in lanes {
            self.locks.leave(lane, batch, false).await?;
            self.locks.settled(lane, &[batch]).await?;
        }
        report.batches += messages.len() as u64;
        Ok(self.handle.send_all(messages.iter().map(|(message, delay)| (message, *delay))).await?)
    }

    /// The message of a batch whose worker is known to be dead. A call of it may go on at the batch API until its `timeout` is
    /// over: until then it keeps its lease, and its place.
    async fn resumed(&self, batch: &Batch) -> Result<Option<(HandleMessage, Duration)>, SweepError> {
        let mut stands = None;
        if batch.status == BatchStatus::InProgress && batch.lease_until.is_some() {
            stands = self.batches.shorten_lease(batch).await?;
        }
        let batch = stands.as_ref().unwrap_or(batch);
        let now = self.world.now();
        if let Some(until) = batch.lease_until.filter(|until| *until > now) {
            self.gates.hold(&Place { kind: batch.lane.kind.clone(), holder: batch.id, until }).await?;
        }
        let due = |message: HandleMessage| {
            let due = batch.lease_until.or(batch.retry_at).unwrap_or(now);
            (message, due.since(now))
        };
        Ok(next(batch).map(|(message, _)| due(message)))
    }

    /// Whether the message that a batch waits for should long have come. Of a `full` kind many wait for a place, and come.
    async fn lost(&self, batch: &Batch, request: SweepRequest, full: bool) -> Result<bool, SweepError> {
        let Some((_, due)) = next(batch) else { return Ok(false) };
        let now = self.world.now();
        let horizon = self.horizon(request);
        let horizon = if full { horizon.min(now.minus(REMINDER_PAUSE)) } else { horizon };
        // A message that is only late is not sent every minute.
        let patient = batch.reminded_at.filter(|reminded_at| *reminded_at >= due).is_some_and(|reminded_at| {
            let pause = reminded_at.since(due).min(REMINDER_PAUSE);
            now.since(reminded_at) < pause
        });
        Ok(due <= horizon && !patient && self.batches.remind(batch).await?)
    }

    /// The kinds of these lanes whose places are all taken.
    async fn full_kinds(&self, locks: &[Lock]) -> Result<BTreeSet<String>, SweepError> {
        let kinds: BTreeSet<&str> = locks.iter().map(|lock| lock.lane.kind.as_str()).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let gates = self.gates.get_many(&kinds).await?;
        let full = gates.into_iter().filter(|gate| gate.held(self.world.now()) >= self.share as usize);
        Ok(full.map(|gate| gate.kind).collect())
    }

    /// Frees all places of the kinds of these lanes, once.
    pub(crate) async fn clear_gates(&self, locks: &[Lock], cleared: &mut BTreeSet<String>) -> Result<(), SweepError> {
        for lock in locks {
            if cleared.insert(lock.lane.kind.clone()) {
                self.gates.clear(&lock.lane.kind).await?;
            }
        }
        Ok(())
    }
}

/// The message that a batch waits for, and since when or until when.
fn next(batch: &Batch) -> Option<(HandleMessage, Timestamp)> {
    let message = |attempt| HandleMessage { batch: batch.id, attempt };
    match (batch.status, batch.lease_until) {
        // It is the leader's to finish; a lock names it in flight only after it was dispatched.
        (BatchStatus::Grouping, _) => None,
        (BatchStatus::Dispatched, _) => Some((message(1), batch.updated_at)),
        (BatchStatus::InProgress, Some(lease_until)) => Some((message(batch.attempts), lease_until)),
        (BatchStatus::InProgress, None) => {
            Some((message(batch.attempts + 1), batch.retry_at.unwrap_or(batch.updated_at)))
        }
        // What it left behind is sent again: acks, notices, the next batch's wake-up.
        (BatchStatus::Done, _) => Some((message(batch.attempts), batch.updated_at)),
    }
}
