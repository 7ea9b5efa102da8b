//! The end of an attempt: its outcomes are written, then what follows from them is sent.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::bits::Bits;
use fanfold::grouping::{First, Follows};
use fanfold::lane::Lane;
use fanfold::limits::{CONTENTION_TRIES_MAX, DELAY_MIN};
use fanfold::messages::{AckRequest, HandleMessage, NotifyMessage};
use fanfold::metrics::{CALLS_SPLIT, MEMBERS_FAILED, MEMBERS_SUCCEEDED, RETRIES};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, BatchStatus};

use crate::settle::{EndedAttempt, Moment, settle_call};
use crate::step::{Afterwards, NextPart};
use crate::{Handle, HandleError};

/// The end of an attempt as it was written.
struct Recorded {
    /// The batch before.
    batch: Batch,
    settled: Batch,
    split: bool,
}

impl Handle {
    /// Writes down how an attempt ended, and sends what follows. `more`: see [`HandleMessage::more`].
    pub(crate) async fn end(
        &self,
        batch: Batch,
        policy: &Policy,
        ended: EndedAttempt,
        more: bool,
    ) -> Result<Afterwards, HandleError> {
        let Some(Recorded { batch, settled, split }) = self.record(batch, policy, ended).await? else {
            return Ok(Afterwards::Waits);
        };
        count(&batch, &settled, split);
        if let Some(next) = self.next_part(&settled, policy, more) {
            self.release(&settled, Some(policy), &batch.failed).await?;
            return Ok(Afterwards::NextPart(Box::new(next)));
        }
        self.conclude(&settled, Some(policy), more).await
    }

    /// Writes down how an attempt ended. If outcomes were posted meanwhile, they count. None: a later attempt overtook this one.
    async fn record(
        &self,
        batch: Batch,
        policy: &Policy,
        ended: EndedAttempt,
    ) -> Result<Option<Recorded>, HandleError> {
        let asked = batch.asked();
        let (mut batch, mut ended) = (batch, ended);
        for _ in 0..CONTENTION_TRIES_MAX {
            // Outcomes are posted for calls with a token only.
            let kept = batch.secret.is_some().then(|| ended.clone());
            let moment = Moment { now: self.world.now(), random: self.world.random.next() };
            let settlement = settle_call(&batch, &asked, ended, policy, moment);
            let split = settlement.split;
            match (self.batches.settle(&batch, settlement).await?, kept) {
                (Write::Done(settled), _) => return Ok(Some(Recorded { batch, settled, split })),
                (Write::Refused(Some(stands)), Some(kept)) if stands.is_same_attempt(&batch) => {
                    (batch, ended) = (stands, kept);
                }
                (Write::Refused(_), _) => {
                    tracing::warn!(batch = %batch.id, attempt = batch.attempts, "a later attempt overtook this one");
                    return Ok(None);
                }
            }
        }
        Err(StoreError::Contended { what: format!("ending an attempt of batch {}", batch.id) }.into())
    }

    /// Does what comes next for a batch by its record, without beginning an attempt: its call is answered later, or another worker
    /// began the attempt, and may have left something undone.
    pub(crate) async fn continue_from_record(&self, batch: &Batch, more: bool) -> Result<Afterwards, HandleError> {
        let (message, from) = HandleMessage::awaited(batch).ok_or(HandleError::NotFormed(batch.id))?;
        let message = message.leaving(more);
        match (batch.status, batch.lease_until) {
            // An attempt runs, or its worker died. This message may be the only one left, so it waits for the lease to end.
            (BatchStatus::InProgress, Some(_)) => {
                self.come_later(batch, message, from.since(self.world.now()) + DELAY_MIN).await
            }
            // Its call is answered later.
            (BatchStatus::InProgress, None) if batch.later.is_some() => self.look_after(batch, message, from).await,
            (BatchStatus::Grouping | BatchStatus::Formed, _) => self.come_later(batch, message, Duration::ZERO).await,
            (BatchStatus::InProgress, None) => self.conclude(batch, None, more).await,
            (BatchStatus::Done, _) => match self.left_behind(batch).await? {
                Some(lock) => self.wake_again(batch, &lock).await.map(|()| Afterwards::Done),
                None => self.conclude(batch, None, more).await,
            },
        }
    }

    /// The call for the next part of a batch, if it may be made at once. Until then only the keys of those that failed now are
    /// released: everything else follows when the worker has called its parts, or from its message if it dies.
    fn next_part(&self, settled: &Batch, policy: &Policy, more: bool) -> Option<NextPart> {
        let (message, from) = HandleMessage::awaited(settled).filter(|_| !settled.parts.is_empty())?;
        let at_once = from.since(self.world.now()).is_zero();
        let (message, timeout) = (message.leaving(more), policy.batch_api.timeout.0);
        at_once.then(|| NextPart { settled: settled.clone(), message, timeout })
    }

    /// Sends the acks of the outcomes so far of a batch whose next part waits.
    pub(crate) async fn ack_so_far(&self, batch: &Batch) -> Result<(), HandleError> {
        match Follows::of(batch, None).first() {
            Some(First::Acks) => Ok(self.ack.send(&AckRequest::of(batch)).await?),
            Some(First::Notice) | None => Ok(()),
        }
    }

    /// Sends what follows from an attempt whose end is written; repeating it does no harm. A batch leaves the lane's flight before
    /// its acks are sent, and stays known as closing until they are applied. `attempted`: the policy that the attempt followed,
    /// which counts if it was deleted meanwhile.
    async fn conclude(&self, batch: &Batch, attempted: Option<&Policy>, more: bool) -> Result<Afterwards, HandleError> {
        let policy = self.policies.get(&batch.lane.kind).await?;
        let policy = policy.as_deref().or(attempted);
        let follows = Follows::of(batch, policy);
        self.release(batch, policy, &Bits::default()).await?;
        if follows.done {
            let lock = self.leave_flight(batch, policy, follows.closing(), more).await?;
            // A notice was due once, but the policy no longer names a destination.
            if !follows.closing() && lock.closing.contains(&batch.id) {
                self.locks.closed(&batch.lane, &[batch.id]).await?;
            }
        }
        match follows.first() {
            Some(First::Acks) => self.ack.send(&AckRequest::of(batch)).await?,
            Some(First::Notice) => self.notify.send(&NotifyMessage::failures(batch)).await?,
            None => {}
        }
        if !follows.done
            && let Some((message, from)) = HandleMessage::awaited(batch)
        {
            let wait = from.since(self.world.now());
            self.later(&batch.lane, message.leaving(more), if wait < DELAY_MIN { Duration::ZERO } else { wait })
                .await?;
        }
        Ok(Afterwards::Done)
    }

    /// The same as [`Self::later`], for a batch that is not called now.
    pub(crate) async fn come_later(
        &self,
        batch: &Batch,
        message: HandleMessage,
        wait: Duration,
    ) -> Result<Afterwards, HandleError> {
        self.later(&batch.lane, message, wait).await.map(|()| Afterwards::Waits)
    }

    /// Sends a message about a batch of `lane` to arrive after `wait`, or as late as a message can.
    pub(crate) async fn later(&self, lane: &Lane, message: HandleMessage, wait: Duration) -> Result<(), HandleError> {
        Ok(self.handle.send_for([(&message, wait, lane)]).await?)
    }
}

/// Counts the outcomes that a write has added.
pub(crate) fn count_outcomes(before: &Batch, after: &Batch) {
    metrics::counter!(MEMBERS_SUCCEEDED).increment(after.succeeded.minus(&before.succeeded).count());
    metrics::counter!(MEMBERS_FAILED).increment(after.failed.minus(&before.failed).count());
}

fn count(batch: &Batch, settled: &Batch, split: bool) {
    count_outcomes(batch, settled);
    if settled.retry_at.is_some() {
        metrics::counter!(RETRIES).increment(1);
    }
    if split {
        metrics::counter!(CALLS_SPLIT).increment(1);
    }
}
