//! Batches that no message may be left for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::control::Hold;
use fanfold::limits::{BATCH_REMINDER_PAUSE, HINT_LOST_AFTER, REFUSED_MAX};
use fanfold::messages::{About, HandleMessage, LaneBatch};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::gates::Gate;
use fanfold::store::locks::Lock;
use fanfold::store::places::{Party, Place};
use uuid::Uuid;

use crate::lanes::batches_of;
use crate::{Round, Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Looks at every batch in flight or closing.
    pub(crate) async fn sweep_batches(
        &self,
        locks: &[Lock],
        round: &Round,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let request = round.request;
        let mut lanes = batches_of(locks);
        let ids: Vec<Uuid> = lanes.keys().copied().collect();
        let gates = if ids.is_empty() || request.workers_dead { Vec::new() } else { self.gates_of(locks).await? };
        let (mut messages, mut waiting) = (Vec::new(), BTreeMap::new());
        for batch in self.batches.get_many(&ids).await? {
            lanes.remove(&batch.id);
            if batch.status == BatchStatus::Done && batch.notice.begun() && !batch.notice.over() {
                // Its acks are through; what is left of it is a notice.
                let about = About::Batch(LaneBatch::of(&batch));
                let notices = self.batches.notices();
                let again = self.tell_again(&notices, about, &batch.notice, batch.updated_at, request).await?;
                report.batches += u64::from(again);
                continue;
            }
            let gate = gates.iter().find(|gate| gate.kind == batch.lane.kind);
            let hold = round.switches.hold(&batch.lane);
            self.keep_members(&batch).await?;
            if hold.paused && batch.status != BatchStatus::Done && !request.workers_dead {
                continue;
            }
            if request.workers_dead {
                messages.extend(self.resumed(&batch).await?);
            } else if let Some(stopped) = gate.and_then(|gate| gate.stopped.as_ref()).filter(|_| self.waits(&batch)) {
                if self.world.now().since(batch.waits_since()) > REFUSED_MAX {
                    messages.extend(HandleMessage::awaited(&batch).map(|(message, _)| (message, Duration::ZERO)));
                }
                waiting.entry(batch.lane.kind.clone()).or_insert((stopped, Vec::new())).1.push(batch);
            } else if self.lost(&batch, request, gate, hold).await? {
                messages.extend(HandleMessage::awaited(&batch).map(|(message, _)| (message, Duration::ZERO)));
            }
        }
        // Of each kind that stands still one batch is to probe, any of those that wait.
        for (stopped, batches) in waiting.into_values() {
            report.standing += 1;
            let delay = stopped.probe_at.since(self.world.now());
            let at = usize::try_from(self.world.random.next()).unwrap_or(0) % batches.len();
            if delay < HINT_LOST_AFTER {
                messages.extend(batches.get(at).and_then(HandleMessage::awaited).map(|(message, _)| (message, delay)));
            }
        }
        // Done so long ago that their records are gone.
        for (batch, lane) in lanes {
            self.locks.leave(lane, batch, false).await.map(drop)?;
            self.locks.closed(lane, &[batch]).await?;
        }
        report.batches += messages.len() as u64;
        Ok(self.handle.send_all(messages.iter().map(|(message, delay)| (message, *delay))).await?)
    }

    /// Whether a batch is to be called, and is not only to wait for its time or its worker.
    fn waits(&self, batch: &Batch) -> bool {
        let due = |(_, due): (HandleMessage, Timestamp)| due <= self.world.now();
        batch.status != BatchStatus::Done && HandleMessage::awaited(batch).is_some_and(due)
    }

    /// Keeps the tasks of a batch that has been in flight for very long: a pause may hold it for longer than claimed tasks are kept.
    /// That it waited is noted, too.
    async fn keep_members(&self, batch: &Batch) -> Result<(), SweepError> {
        let Some(keeps) = batch.held(self.world.now()) else { return Ok(()) };
        if keeps {
            self.tasks.keep_claimed(batch.members.ids()).await?;
        }
        Ok(self.batches.note_held(batch).await?)
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
            let place = Place { party: Party::Kind(batch.lane.kind.clone()), holder: batch.id, until };
            self.gates.hold(&place).await?;
        }
        let due = |message: HandleMessage| {
            let due = batch.lease_until.or(batch.retry_at).unwrap_or(now);
            (message, due.since(now))
        };
        Ok(HandleMessage::awaited(batch).map(|(message, _)| due(message)))
    }

    /// Whether the message that a batch waits for should long have come. Of a kind whose places are all taken many wait for
    /// one, and come; of one that stood still, and of a lane that was paused, all were dropped.
    async fn lost(
        &self,
        batch: &Batch,
        request: SweepRequest,
        gate: Option<&Gate>,
        hold: Hold,
    ) -> Result<bool, SweepError> {
        let Some((_, due)) = HandleMessage::awaited(batch) else { return Ok(false) };
        let now = self.world.now();
        let full = gate.is_some_and(|gate| gate.held(now) >= self.share as usize);
        let resumed_at = gate.and_then(|gate| gate.resumed_at).max(hold.resumed_at).unwrap_or_default();
        if due <= resumed_at && batch.status != BatchStatus::Done && batch.reminded_at < Some(resumed_at) {
            return Ok(self.batches.remind(batch).await?);
        }
        let horizon = self.horizon(request);
        let horizon = if full { horizon.min(now.minus(BATCH_REMINDER_PAUSE)) } else { horizon };
        // A message that is only late is not sent every minute.
        let patient = batch.reminded_at.filter(|reminded_at| *reminded_at >= due).is_some_and(|reminded_at| {
            let pause = reminded_at.since(due).min(BATCH_REMINDER_PAUSE);
            now.since(reminded_at) < pause
        });
        Ok(due <= horizon && !patient && self.batches.remind(batch).await?)
    }

    /// The gates of the kinds of these lanes.
    async fn gates_of(&self, locks: &[Lock]) -> Result<Vec<Gate>, SweepError> {
        let kinds: BTreeSet<&str> = locks.iter().map(|lock| lock.lane.kind.as_str()).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        Ok(self.gates.get_many(&kinds).await?)
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
