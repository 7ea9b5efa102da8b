//! Batches whose message may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fanfold::grouping::{Circumstances, batch_overdue, only_notice_left, waited_in_vain};
use fanfold::lane::Lane;
use fanfold::limits::HINT_LOST_AFTER;
use fanfold::messages::{About, HandleMessage, LaneBatch};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::gates::Gate;
use fanfold::store::locks::Lock;
use fanfold::store::places::{Party, Place};
use uuid::Uuid;

use crate::lanes::batches_of;
use crate::seen::Seen;
use crate::{Round, Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Looks at every batch in flight or closing. A batch that is still to be called waits as long as its kind has no policy.
    pub(crate) async fn sweep_batches(
        &self,
        locks: &[Lock],
        round: &Round,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let request = round.request;
        let mut lanes = batches_of(locks);
        let ids: Vec<Uuid> = lanes.keys().copied().collect();
        let gates = if ids.is_empty() || request.workers_dead { Vec::new() } else { self.gates_of(locks).await? };
        let (mut messages, mut waiting) = (Vec::new(), BTreeMap::new());
        for batch in self.batches.get_many(&ids).await? {
            lanes.remove(&batch.id);
            if only_notice_left(&batch) {
                seen.not_notified(&batch);
                report.batches += u64::from(self.wake_notice(&batch, request).await?);
                continue;
            }
            let gate = gates.iter().find(|gate| gate.kind == batch.lane.kind);
            let stays = batch.status != BatchStatus::Done && self.stays(&batch, round).await?;
            seen.batch(&batch, stays, gate);
            if stays && !request.workers_dead {
                continue;
            }
            let batch = self.without_void_turns(batch).await;
            if request.workers_dead {
                messages.extend(
                    self.of_dead_worker(&batch).await?.map(|(message, delay)| (message, delay, batch.lane.clone())),
                );
            } else if let Some((gate, stopped)) = gate
                .and_then(|gate| gate.stopped.as_ref().map(|stopped| (gate, stopped)))
                .filter(|_| batch.later.is_none() && HandleMessage::due(&batch, self.world.now()).is_some())
            {
                if waited_in_vain(&batch, Some(stopped.since), self.world.now()) {
                    messages.extend(at_once(&batch));
                }
                waiting.entry(batch.lane.kind.clone()).or_insert((gate, Vec::new())).1.push(batch);
            } else if self.lost(&batch, round, gate).await? {
                messages.extend(at_once(&batch));
            }
        }
        report.standing += waiting.len() as u64;
        for (gate, batches) in waiting.into_values() {
            messages.extend(self.probe(gate, &batches).await);
        }
        self.forget(lanes).await?;
        report.batches += messages.len() as u64;
        Ok(self.handle.send_for(messages.iter().map(|(message, delay, lane)| (message, *delay, lane))).await?)
    }

    /// The message of the batch that probes for its kind, which stands still: any of those that wait. None if the probe is
    /// not due before the next sweeps. Under another version of the policy, it comes at once: the kind resumes by it.
    async fn probe(&self, gate: &Gate, batches: &[Batch]) -> Option<(HandleMessage, Duration, Lane)> {
        let due = gate.stopped.as_ref()?.probe_at.since(self.world.now());
        let changed = self.policy(&gate.kind).await.is_some_and(|policy| gate.version != Some(policy.version()));
        let delay = if changed { Duration::ZERO } else { due };
        let at = usize::try_from(self.world.random.next()).unwrap_or(0) % batches.len();
        let (message, _, lane) = batches.get(at).and_then(at_once)?;
        (delay < HINT_LOST_AFTER).then_some((message, delay, lane))
    }

    /// Has the notice of a batch's failures delivered, if its message is overdue. Returns whether it was.
    async fn wake_notice(&self, batch: &Batch, request: SweepRequest) -> Result<bool, SweepError> {
        let about = About::Batch(LaneBatch::of(batch));
        self.wake_overdue(&self.batches.notices(), about, &batch.notice, batch.updated_at, request).await
    }

    /// Takes batches out of their locks that were done so long ago that their records are gone.
    async fn forget(&self, gone: BTreeMap<Uuid, &Lane>) -> Result<(), SweepError> {
        for (batch, lane) in gone {
            self.locks.leave(lane, batch, false).await.map(drop)?;
            self.locks.closed(lane, &[batch]).await?;
        }
        Ok(())
    }

    /// Looks after a batch that is not done. Returns whether it stays where it is: it is paused, or its kind has no policy.
    async fn stays(&self, batch: &Batch, round: &Round) -> Result<bool, SweepError> {
        self.keep(batch).await?;
        let stays = round.rests(&batch.lane);
        if stays && batch.is_to_be_noted(self.world.now()) {
            self.batches.note_held(batch).await?;
        }
        Ok(stays)
    }

    /// Keeps the tasks of a batch, and its results, that waits for longer than claimed tasks are kept.
    async fn keep(&self, batch: &Batch) -> Result<(), SweepError> {
        if !batch.is_to_be_kept(self.world.now()) {
            return Ok(());
        }
        self.tasks.keep_claimed(batch.members.ids()).await?;
        self.batches.keep_results(batch).await?;
        Ok(self.batches.note_kept(batch).await?)
    }

    /// The message of a batch whose worker is known to be dead. Its call may go on at the batch API until its `timeout` is
    /// over: until then it keeps its lease, and its place.
    async fn of_dead_worker(&self, batch: &Batch) -> Result<Option<(HandleMessage, Duration)>, SweepError> {
        let mut stands = None;
        if batch.status == BatchStatus::InProgress && batch.lease_until.is_some() {
            stands = self.batches.shorten_lease(batch).await?;
        }
        let batch = stands.as_ref().unwrap_or(batch);
        let now = self.world.now();
        if let Some(until) = batch.lease_until.filter(|until| *until > now) {
            let kind = batch.lane.kind.clone();
            let places_max = self.calls_at_once(&kind).await;
            let place = Place { party: Party::Kind(kind), record: 0, holder: batch.id, until };
            self.gates.keep_place(&place, places_max).await?;
        }
        Ok(HandleMessage::awaited(batch).map(|(message, due)| (message, due.since(now))))
    }

    /// The batch as it is to be judged: nobody waits for a turn by a rate that the policy does not have any more.
    async fn without_void_turns(&self, batch: Batch) -> Batch {
        if batch.turns.at().is_none() {
            return batch;
        }
        match self.policy(&batch.lane.kind).await {
            Some(policy) => Batch { turns: batch.turns_under(&policy), ..batch },
            None => batch,
        }
    }

    /// Whether the message that a batch waits for is to be sent again by this sweep: it is overdue, and no other sweep sends
    /// it.
    async fn lost(&self, batch: &Batch, round: &Round, gate: Option<&Gate>) -> Result<bool, SweepError> {
        let places_max = match gate {
            Some(gate) => self.calls_at_once(&gate.kind).await,
            None => self.places_max,
        };
        let room = self.gates.spread().room(0, places_max);
        let around = Circumstances { gate, hold: round.switches.hold(&batch.lane), room };
        let overdue = |horizon| batch_overdue(batch, around, horizon, self.world.now());
        if !overdue(self.horizon(round.request)) {
            return Ok(false);
        }
        // One that is done waits for its acks or its notice, which come by other queues.
        let may_be_late = batch.status != BatchStatus::Done && !overdue(self.late_horizon(round.request));
        let late = may_be_late && round.late.batches.holds_one().await;
        Ok(!late && self.batches.note_woken(batch).await?)
    }

    /// How many calls of a kind may run at once.
    async fn calls_at_once(&self, kind: &str) -> u32 {
        self.policy(kind).await.map_or(self.places_max, |policy| policy.calls_at_once(self.places_max))
    }

    /// The policy of a kind, if there is one and it can be read.
    async fn policy(&self, kind: &str) -> Option<Arc<Policy>> {
        self.policies.get(kind).await.unwrap_or_else(|error| {
            tracing::error!(%error, kind, "the policy cannot be read");
            None
        })
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
                self.gates.clear(&lock.lane.kind, self.places_max).await?;
            }
        }
        Ok(())
    }
}

/// The message that a batch waits for, sent at once, with its lane.
fn at_once(batch: &Batch) -> Option<(HandleMessage, Duration, Lane)> {
    HandleMessage::awaited(batch).map(|(message, _)| (message, Duration::ZERO, batch.lane.clone()))
}
