//! Hints: which fields they carry, and why.

use std::time::Duration;

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::grouping::{BatchSize, Linger};
use crate::lane::Lane;
use crate::limits::DELAY_MIN;
use crate::messages::{
    About, AckRequest, ElectMessage, GroupMessage, HandleMessage, LaneBatch, NotifyMessage, ProduceMessage, Undelivered,
};
use crate::store::batches::{Batch, BatchStatus};
use crate::store::locks::Lock;
use crate::waiting::Waiting;

impl ElectMessage {
    /// Whether it is new, or was so a moment ago: its tasks have just come.
    pub(crate) fn is_recent(&self) -> bool {
        self.tries < 2
    }

    /// Tasks that were just stored, or are known to wait. The workflow has not tried yet: its tasks are not looked up before
    /// the lane's first election, as no batch can have claimed them.
    #[must_use]
    pub fn stored(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self { lane, waiting, workflow, tries: 0, flushes: false }
    }

    /// Tasks that a leader knew of and left out of its batch. Its try counts as the first: others may have claimed them since,
    /// so they are looked up before the election.
    #[must_use]
    pub fn left(lane: Lane, waiting: Waiting, workflow: Uuid) -> Self {
        Self::stored(lane, waiting, workflow).tried(1)
    }

    /// Wakes a lane for all that wait there. It names no tasks, so there is nothing to look up, and a loser does not try again.
    #[must_use]
    pub fn wake(lane: Lane, workflow: Uuid) -> Self {
        Self::stored(lane, Waiting::default(), workflow)
    }

    /// The same, where one of the tasks may end the linger of the lane.
    #[must_use]
    pub fn flushing(self, flushes: bool) -> Self {
        Self { flushes, ..self }
    }

    /// The workflow lost, and tries once more.
    #[must_use]
    pub fn again(&self) -> Self {
        self.clone().tried(self.tries.saturating_add(1))
    }

    /// The same after so many tries.
    pub(crate) fn tried(self, tries: u32) -> Self {
        Self { tries, ..self }
    }
}

impl GroupMessage {
    /// To the leader that was just elected, with tasks it may not find in the index yet.
    #[must_use]
    pub fn elected(lock: &Lock, batch: Uuid, waiting: Waiting) -> Self {
        Self::to(lock.lane.clone(), batch, lock.epoch, waiting)
    }

    /// To a leader for which any worker can act. It names no tasks: by now the index shows them. None if there is no
    /// leader.
    #[must_use]
    pub fn again(lock: &Lock) -> Option<Self> {
        Some(Self::elected(lock, lock.holder?, Waiting::default()))
    }

    /// To a leader that may linger, and has done so for this time, beside its own message, with tasks it may not find in the index
    /// yet: it forms its batch now if one of those that wait flushes, or if they are enough. None if there is no leader.
    #[must_use]
    pub fn hurried(lock: &Lock, waiting: Waiting, lingered: Duration) -> Option<Self> {
        Some(Self { hurries: true, lingered_ms: millis(lingered), ..Self::elected(lock, lock.holder?, waiting) })
    }

    /// To the leader that was just elected: the message and its delay. It forms its batch at once, lingers first, or has yet to find
    /// out. `knows`: the tasks it names are all that wait, as far as its sender knows.
    #[must_use]
    pub fn first(self, size: BatchSize, knows: bool) -> (Self, Duration) {
        match size.is_full_of(self.waiting.len()).filter(|_| knows) {
            Some(true) => (self, Duration::ZERO),
            Some(false) => self.after(size.linger().first(), size.linger()),
            None => (self.lingering(), Duration::ZERO),
        }
    }

    /// The leader has yet to find out whether its tasks are to wait for more: only if they are, it lingers.
    #[must_use]
    pub fn lingering(self) -> Self {
        Self { lingers: true, ..self }
    }

    /// The leader lingers for `wait`: the message and its delay, which is whole seconds; its worker waits for the rest. It looks
    /// again unless its time is over by then.
    #[must_use]
    pub fn after(&self, wait: Duration, linger: Linger) -> (Self, Duration) {
        let (delay, rest) = linger.delay(wait);
        let lingered = self.lingered_ms.saturating_add(millis(delay)).saturating_add(millis(rest));
        let lingers = lingered < millis(linger.longest());
        let lingered_ms = if lingers { lingered } else { 0 };
        (Self { lingers, lingered_ms, worker_waits: millis(rest), ..self.clone() }, delay)
    }

    /// For how long the leader has lingered.
    #[must_use]
    pub fn lingered(&self) -> Duration {
        Duration::from_millis(self.lingered_ms)
    }

    /// For how long its worker waits before it looks: less than a second, whatever the message says.
    #[must_use]
    pub fn worker_waits(&self) -> Duration {
        Duration::from_millis(self.worker_waits).min(DELAY_MIN)
    }

    /// To the leader that takes over from the one this message was for.
    #[must_use]
    pub fn next(&self, batch: Uuid, epoch: u64, waiting: Waiting) -> Self {
        Self::to(self.lane.clone(), batch, epoch, waiting)
    }

    fn to(lane: Lane, batch: Uuid, epoch: u64, waiting: Waiting) -> Self {
        Self { lane, batch, epoch, waiting, lingers: false, lingered_ms: 0, worker_waits: 0, hurries: false }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl HandleMessage {
    /// Asks for a batch's first attempt. `more`: its leader left tasks waiting.
    #[must_use]
    pub fn first(batch: Uuid, more: bool) -> Self {
        Self { batch, attempt: 1, more }
    }

    /// Asks for the first attempt of a batch that its leader has just formed. None: it is not formed, its attempts have begun, or
    /// its lane's lock does not name it: then the batch would be lost with this message. `named`: the lock names it; `left`: its
    /// leader left tasks waiting; `led`: a message to the lane's next leader names these.
    #[must_use]
    pub fn first_of(batch: &Batch, named: bool, left: bool, led: bool) -> Option<Self> {
        (named && batch.status == BatchStatus::Formed).then(|| Self::first(batch.id, left && !led))
    }

    /// The same. `more`: the batch's leader left tasks waiting.
    #[must_use]
    pub fn leaving(self, more: bool) -> Self {
        Self { more, ..self }
    }

    /// The message that a batch waits for as its record stands, and the moment from which on it has an effect. None: its leader
    /// has not formed it yet.
    #[must_use]
    pub fn awaited(batch: &Batch) -> Option<(Self, Timestamp)> {
        let attempt = |attempt| Self { batch: batch.id, attempt, more: false };
        match (batch.status, batch.lease_until) {
            (BatchStatus::Grouping, _) => None,
            (BatchStatus::Formed, _) => Some((attempt(1), batch.turns.at().max(Some(batch.updated_at))?)),
            // An attempt runs. When its lease ends it is taken for lost, and another worker takes over.
            (BatchStatus::InProgress, Some(lease_until)) => {
                let due = lease_until.max(batch.not_before());
                Some((attempt(batch.attempts), batch.turns.at().max(Some(due))?))
            }
            // It is answered later, by its deadline.
            (BatchStatus::InProgress, None) if batch.later.is_some() => {
                Some((attempt(batch.attempts), batch.look_at()?))
            }
            (BatchStatus::InProgress, None) => {
                let due = batch.retry_at.unwrap_or(batch.updated_at).max(batch.not_before());
                Some((attempt(batch.attempts + 1), batch.turns.at().max(Some(due))?))
            }
            // Its acks, notices and the next batch's wake-up are sent again.
            (BatchStatus::Done, _) => Some((attempt(batch.attempts), batch.updated_at)),
        }
    }

    /// The message of a batch that is to be called now: it waits neither for its time nor for its worker.
    #[must_use]
    pub fn due(batch: &Batch, now: Timestamp) -> Option<Self> {
        let (message, due) = Self::awaited(batch)?;
        (batch.status != BatchStatus::Done && due <= now).then_some(message)
    }
}

impl LaneBatch {
    /// Names a batch.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self { batch: batch.id, lane: batch.lane.clone() }
    }
}

impl AckRequest {
    /// The outcomes of a batch's members, as they are in its record when they are applied.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self { batch: Some(LaneBatch::of(batch)), ..Self::default() }
    }
}

impl ProduceMessage {
    /// A partition of a fan-out's producer is to begin, or to continue.
    #[must_use]
    pub fn to(fanout: Uuid, partition: u32) -> Self {
        Self { fanout, partition }
    }

    /// The tasks are to be registered that a fan-out was opened with. It has no producer, so no partition is meant.
    #[must_use]
    pub fn opened_with_tasks(fanout: Uuid) -> Self {
        Self::to(fanout, 0)
    }
}

impl NotifyMessage {
    /// Asks for the first try.
    #[must_use]
    pub fn first(about: About) -> Self {
        Self { about, due: None, waits: 0, undelivered: None }
    }

    /// Asks for the try that is due then.
    #[must_use]
    pub fn due(about: About, due: Option<Timestamp>) -> Self {
        Self { due, ..Self::first(about) }
    }

    /// Asks for the same again, or for what is due then; a dead letter is over.
    #[must_use]
    pub fn again(&self, due: Option<Timestamp>) -> Self {
        Self { due, undelivered: None, ..self.clone() }
    }

    /// The receiver had no place for it once more.
    #[must_use]
    pub fn turned_away(&self) -> Self {
        Self { waits: self.waits.saturating_add(1), ..self.clone() }
    }

    /// The dead letter of a notice that was given up.
    #[must_use]
    pub fn dead(about: About, undelivered: Undelivered) -> Self {
        Self { undelivered: Some(Box::new(undelivered)), ..Self::first(about) }
    }

    /// Asks for the first try of the notice of a batch's failures.
    #[must_use]
    pub fn failures(batch: &Batch) -> Self {
        Self::first(About::Batch(LaneBatch::of(batch)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
