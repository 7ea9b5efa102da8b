//! The step `handle`: calls the batch API, retries, and records outcomes.

mod breaker;
mod pace;
mod places;
mod release;
mod settle;
mod step;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::aws::{Queue, QueueError, StoreError, Write};
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::grouping::{First, Follows};
use fanfold::ids::TaskId;
use fanfold::limits::{CALL_WITHIN, DELAY_MIN, LOST_ATTEMPTS_MAX, REFUSED_MAX};
use fanfold::messages::{AckRequest, ElectMessage, HandleMessage, NotifyMessage};
use fanfold::metrics::{CALLS, MEMBERS_FAILED, MEMBERS_SUCCEEDED, RETRIES};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::gates::{Gates, share};
use fanfold::store::locks::Locks;
use fanfold::store::places::Place;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Caller, Cause};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::places::Entry;
use crate::settle::Ended;

/// Calls batch APIs and records what became of the members.
pub struct Handle {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    gates: Gates,
    /// Calls that one kind may have at once.
    share: u32,
    policies: Policies,
    handle: Queue<HandleMessage>,
    ack: Queue<AckRequest>,
    notify: Queue<NotifyMessage>,
    elect: Queue<ElectMessage>,
    api: Arc<dyn Caller>,
    world: World,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// A batch could not be handled; its message comes again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("there is no batch {0}")]
    UnknownBatch(Uuid),
    #[error("batch {0} is not dispatched yet")]
    NotDispatched(Uuid),
    #[error("there is no policy of kind `{0}`")]
    NoPolicy(String),
}

/// What became of the beginning of an attempt.
enum Begun {
    /// It runs: the batch API may be called.
    Attempt(Batch, Prepared),
    /// Somebody else was faster.
    Refused(Batch),
    /// It took so long that the call would outlast its leases.
    TooLate,
}

/// The members of a call.
struct Prepared {
    members: Vec<CallMember>,
    /// Slots whose task no longer exists.
    gone: BTreeSet<usize>,
}

impl Handle {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings, api: Arc<dyn Caller>) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::new(surroundings.table(variables::TASKS_TABLE)?),
            locks: Locks::new(surroundings.table(variables::LOCKS_TABLE)?),
            batches: Batches::new(surroundings.table(variables::BATCHES_TABLE)?),
            gates: Gates::new(surroundings.table(variables::LOCKS_TABLE)?),
            share: share(surroundings.number(variables::BATCH_API_CONCURRENCY)?),
            policies: Policies::new(surroundings.table(variables::POLICIES_TABLE)?),
            handle: surroundings.queue(variables::HANDLE_QUEUE_URL)?,
            ack: surroundings.queue(variables::ACK_QUEUE_URL)?,
            notify: surroundings.queue(variables::NOTIFY_QUEUE_URL)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            api,
            world: surroundings.world.clone(),
        })
    }

    /// Makes one attempt, unless another worker makes it or made it, it is not due yet, or its kind has no place free.
    pub(crate) async fn attempt(&self, message: HandleMessage) -> Result<(), HandleError> {
        let batch = self.batches.get(message.batch).await?.ok_or(HandleError::UnknownBatch(message.batch))?;
        if !batch.may_begin(message.attempt, self.world.now()) {
            return self.go_on(batch).await;
        }
        // SQS delays by 15 minutes at most, and by whole seconds.
        match batch.retry_at.unwrap_or_default().since(self.world.now()) {
            left if left < DELAY_MIN => tokio::time::sleep(left).await,
            left => return Ok(self.handle.send_all([(&message, left)]).await?),
        }
        let kind = &batch.lane.kind;
        let policy = self.policies.get(kind).await?.ok_or_else(|| HandleError::NoPolicy(kind.clone()))?;
        let pass = match self.enter(&batch, &policy).await? {
            Entry::Pass(pass) => *pass,
            Entry::Later(wait) => return Ok(self.handle.send_all([(&message, wait)]).await?),
            Entry::StandsStill => return Ok(()),
            Entry::GivesUp(answer) => return self.give_up(message, &policy, &answer).await,
        };
        let begun = self.begin(message, &batch, &policy, &pass.place).await;
        let Ok(Begun::Attempt(batch, prepared)) = begun else {
            self.give_back(&pass).await;
            return match begun? {
                Begun::Refused(batch) => self.go_on(batch).await,
                _ => Ok(self.handle.send(&message).await?),
            };
        };
        let Prepared { members, gone } = prepared;
        let called = self.call(&batch, &policy, members).await;
        // The call is over, whatever becomes of its outcome.
        let put_off = match &called {
            Some(result) => self.leave(&pass, &batch, &policy, result).await,
            None => {
                self.give_back(&pass).await;
                None
            }
        };
        let result = called.unwrap_or_else(|| not_called(&batch));
        self.end(batch, &policy, Ended { result, gone, put_off }).await
    }

    /// Writes down how an attempt ended, and sends what follows.
    async fn end(&self, batch: Batch, policy: &Policy, ended: Ended) -> Result<(), HandleError> {
        let settlement = settle::settle(&batch, ended, policy, self.world.now(), self.world.random.next());
        let Write::Done(settled) = self.batches.settle(&batch, settlement).await? else {
            tracing::warn!(batch = %batch.id, attempt = batch.attempts, "a later attempt overtook this one");
            return Ok(());
        };
        count(&batch, &settled);
        self.conclude(&settled).await
    }

    /// Fails the members of a batch that has waited too long for a batch API which lets nobody in.
    async fn give_up(&self, message: HandleMessage, policy: &Policy, answer: &str) -> Result<(), HandleError> {
        let batch = match self.batches.begin(message.batch, message.attempt, policy.batch_api.timeout.0).await? {
            Write::Done(batch) => batch,
            Write::Refused(None) => return Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => return self.go_on(batch).await,
        };
        let days = REFUSED_MAX.as_secs() / 86_400;
        let result = Err(CallError::new(Cause::NotMade, format!("gave up after {days} days: {answer}")));
        self.end(batch, policy, Ended { result, gone: BTreeSet::new(), put_off: None }).await
    }

    /// Reads the members and begins the attempt. What is read stays as it is: members get outcomes only in an attempt, and
    /// none can have run in between.
    async fn begin(
        &self,
        message: HandleMessage,
        batch: &Batch,
        policy: &Policy,
        place: &Place,
    ) -> Result<Begun, HandleError> {
        let prepared = self.prepare(batch).await?;
        let timeout = policy.batch_api.timeout.0;
        let began = self.world.now();
        let batch = match self.batches.begin(message.batch, message.attempt, timeout).await? {
            Write::Done(batch) => batch,
            Write::Refused(None) => return Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => return Ok(Begun::Refused(batch)),
        };
        // Others count on it that the call ends before its leases do.
        let now = self.world.now();
        if now.since(began) > CALL_WITHIN || now.plus(timeout) > place.until {
            self.batches.take_back(&batch).await?;
            return Ok(Begun::TooLate);
        }
        Ok(Begun::Attempt(batch, prepared))
    }

    /// The attempt could not begin. Whatever the worker that began it may have left undone is done now.
    async fn go_on(&self, batch: Batch) -> Result<(), HandleError> {
        match (batch.status, batch.lease_until) {
            (BatchStatus::Grouping, _) => Err(HandleError::NotDispatched(batch.id)),
            // It runs, or its worker died: this message may be the only one left, so it waits for the lease to end.
            (BatchStatus::InProgress, Some(lease_until)) => {
                let wait = lease_until.since(self.world.now()) + Duration::from_secs(1);
                Ok(self.handle.send_all([(&HandleMessage::again(&batch), wait)]).await?)
            }
            (BatchStatus::Dispatched, _) => Ok(self.handle.send(&HandleMessage::first(batch.id)).await?),
            (BatchStatus::InProgress, None) | (BatchStatus::Done, _) => self.conclude(&batch).await,
        }
    }

    /// Reads the members that have no outcome.
    async fn prepare(&self, batch: &Batch) -> Result<Prepared, HandleError> {
        let slots = batch.unsettled();
        let ids: Vec<TaskId> = slots.iter().filter_map(|slot| batch.members.ids().get(*slot)).copied().collect();
        let mut contents = self.tasks.contents(&ids).await?;
        let mut gone = BTreeSet::new();
        let mut members = Vec::with_capacity(ids.len());
        for (slot, id) in slots.into_iter().zip(ids) {
            match contents.remove(&id).map(RawValue::from_string) {
                Some(Ok(content)) => members.push(CallMember { id, content }),
                _ => {
                    gone.insert(slot);
                }
            }
        }
        Ok(Prepared { members, gone })
    }

    /// Calls the batch API, unless there is nothing to call it for, or this batch kills workers.
    async fn call(
        &self,
        batch: &Batch,
        policy: &Policy,
        members: Vec<CallMember>,
    ) -> Option<Result<Answer, CallError>> {
        if members.is_empty() || lost_too_often(batch) {
            return None;
        }
        let call = Call {
            batch_id: batch.id,
            kind: batch.lane.kind.clone(),
            attempt: batch.attempts,
            target: batch.lane.target.clone(),
            members,
        };
        metrics::counter!(CALLS).increment(1);
        let result = self.api.call(&policy.batch_api, &idempotency_key(batch), &call).await;
        match &result {
            Err(error) => {
                tracing::info!(batch = %batch.id, attempt = batch.attempts, %error, "the batch API did not do the batch");
            }
            Ok(Answer::Unclear { problem, .. }) => {
                tracing::warn!(batch = %batch.id, attempt = batch.attempts, %problem, "the answer is not clear");
            }
            Ok(_) => {}
        }
        Some(result)
    }

    /// Sends what follows from an attempt that is written down; repeating it does no harm. A batch leaves the lane's
    /// flight before its acks are sent, and stays known as closing until they are applied.
    async fn conclude(&self, batch: &Batch) -> Result<(), HandleError> {
        let policy = self.policies.get(&batch.lane.kind).await?;
        let follows = Follows::of(batch, policy.as_deref());
        self.release(batch, policy.as_deref()).await?;
        if follows.done {
            let lock = self.locks.leave(&batch.lane, batch.id, follows.closing()).await?;
            if lock.waiting {
                self.elect.send(&ElectMessage::wake(batch.lane.clone(), self.world.uuid())).await?;
            }
            // It was to be told once, but the policy says so no longer.
            if !follows.closing() && lock.closing.contains(&batch.id) {
                self.locks.closed(&batch.lane, &[batch.id]).await?;
            }
        }
        match follows.first() {
            Some(First::Acks) => self.ack.send(&AckRequest::of(batch)).await?,
            Some(First::Notice) => self.notify.send(&NotifyMessage::failures(batch)).await?,
            None => {}
        }
        if !follows.done {
            let wait = batch.retry_at.unwrap_or_default().since(self.world.now());
            let wait = if wait < DELAY_MIN { Duration::ZERO } else { wait };
            self.handle.send_all([(&HandleMessage::next(batch), wait)]).await?;
        }
        Ok(())
    }
}

/// Whether so many workers died over a batch that it may be the one that kills them.
fn lost_too_often(batch: &Batch) -> bool {
    batch.attempts - batch.ended > LOST_ATTEMPTS_MAX
}

/// What an attempt without a call leads to.
fn not_called(batch: &Batch) -> Result<Answer, CallError> {
    if !lost_too_often(batch) {
        return Ok(Answer::AllSucceeded);
    }
    let message = format!("{LOST_ATTEMPTS_MAX} workers were lost while they called the batch API");
    Err(CallError { retriable: false, ..CallError::new(Cause::Silence, message) })
}

/// Calls with one key have the same members: once a call settled some of them, the next has another key.
fn idempotency_key(batch: &Batch) -> String {
    match batch.rounds {
        0 => batch.id.to_string(),
        rounds => format!("{}-{rounds}", batch.id),
    }
}

fn count(batch: &Batch, settled: &Batch) {
    metrics::counter!(MEMBERS_SUCCEEDED).increment(settled.succeeded.count() - batch.succeeded.count());
    metrics::counter!(MEMBERS_FAILED).increment(settled.failed.count() - batch.failed.count());
    if settled.retry_at.is_some() {
        metrics::counter!(RETRIES).increment(1);
    }
}
