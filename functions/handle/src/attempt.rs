//! One attempt: from its message to the call of the batch API.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::clock::Timestamp;
use fanfold::grouping::gave_up_waiting;
use fanfold::ids::TaskId;
use fanfold::limits::{CALL_AHEAD, CALL_WITHIN, DELAY_MIN, DEV_CALL_BYTES_MAX, DEV_MEMBER_BYTES, LOST_ATTEMPTS_MAX};
use fanfold::messages::HandleMessage;
use fanfold::policy::{BatchApi, Policy};
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, CallError, CallMember, Cause};
use serde_json::value::RawValue;

use crate::breaker::Called;
use crate::dev::{Terms, Whose, unsent};
use crate::places::{Entry, Pass};
use crate::settle::EndedAttempt;
use crate::step::{Afterwards, note};
use crate::turns::pause;
use crate::{Handle, HandleError};

/// The result of beginning an attempt.
enum Begun {
    /// It runs: the batch API may be called.
    Attempt(Batch, Prepared),
    /// Another worker was faster.
    Refused(Batch),
    /// It took so long that the call would outlast its leases.
    TooLate,
    /// Another worker took it for lost.
    Overtaken,
    /// Its lane was paused meanwhile.
    Paused,
    /// Its call is too large for the queue of a dev session.
    TooLargeForSession,
    /// The members that were to be called were dropped, or have outcomes by now, and others are left.
    Dropped,
}

/// The members of a call.
struct Prepared {
    members: Vec<CallMember>,
    /// When each was registered.
    registered: Vec<Timestamp>,
    /// Slots whose task no longer exists.
    gone: BTreeSet<usize>,
}

impl Prepared {
    /// Bytes of the contents, and of what is around them in a call.
    fn bytes(&self) -> usize {
        self.members.iter().map(|member| member.content.get().len() + DEV_MEMBER_BYTES).sum()
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.gone.is_empty()
    }

    /// The same without members that the batch has dropped, or that have an outcome by now.
    fn without_closed(self, batch: &Batch) -> Self {
        let called = |id: &TaskId| batch.members.slot(id).is_some_and(|slot| batch.is_open(slot));
        let members = self.members.into_iter().zip(self.registered);
        let (members, registered) = members.filter(|(member, _)| called(&member.id)).unzip();
        let gone = self.gone.into_iter().filter(|slot| batch.is_open(*slot)).collect();
        Self { members, registered, gone }
    }
}

impl Handle {
    /// Makes one attempt, unless another worker makes it or made it, it is not due yet, its lane is paused, or its kind has no
    /// place free.
    pub(crate) async fn attempt(&self, message: HandleMessage) -> Result<Afterwards, HandleError> {
        self.attempt_at(message, Whose::Sessions).await
    }

    async fn attempt_at(&self, message: HandleMessage, whose: Whose) -> Result<Afterwards, HandleError> {
        let batch = self.batches.get(message.batch).await?.ok_or(HandleError::UnknownBatch(message.batch))?;
        note(&batch);
        if !batch.may_begin(message.attempt, self.world.now()) {
            return self.go_on(&batch, message.more).await;
        }
        let held = self.policies.hold(&batch.lane).await?.paused;
        if held && !self.nothing_left(&batch).await? {
            // When the lane is resumed, the batch's message is sent again.
            return Ok(Afterwards::Waits);
        }
        // SQS delays by 15 minutes at most, and by whole seconds.
        match batch.retry_at.unwrap_or_default().since(self.world.now()) {
            left if left < DELAY_MIN => tokio::time::sleep(left).await,
            left => return self.come_later(&batch, message, left).await,
        }
        let Some(terms) = self.terms(&batch, whose).await? else { return Ok(Afterwards::Waits) };
        let policy = terms.policy.as_ref();
        if let Some(wait) = self.until_turn(&batch, policy).await {
            return match self.nothing_left(&batch).await? {
                true => self.drop_all(message, policy).await,
                false => self.come_later(&batch, message, wait).await,
            };
        }
        let mut pass = match self.enter(&batch, policy).await? {
            Entry::Pass(pass) => *pass,
            _ if self.nothing_left(&batch).await? => return self.drop_all(message, policy).await,
            Entry::Later(wait) => return self.come_later(&batch, message, wait).await,
            Entry::NotYet(_) => return self.come_later(&batch, message, DELAY_MIN).await,
            Entry::Turn(turns, wait) => return self.wait_for_turn(message, &batch, turns, wait).await,
            Entry::StandsStill => return Ok(Afterwards::Waits),
            Entry::GivesUp(answer) => return self.give_up(message, policy, &answer).await,
        };
        let begun = self.begin(message, &batch, &terms, &mut pass).await;
        if let Ok(Begun::Attempt(batch, prepared)) = begun {
            return self.run(&pass, batch, policy, prepared, message.more).await;
        }
        self.release_place(&batch, &pass).await;
        match begun? {
            Begun::Refused(batch) => self.go_on(&batch, message.more).await,
            Begun::Overtaken | Begun::Paused => Ok(Afterwards::Waits),
            Begun::TooLargeForSession => Box::pin(self.attempt_at(message, Whose::Policys)).await,
            Begun::Attempt(..) | Begun::TooLate | Begun::Dropped => {
                self.come_later(&batch, message, Duration::ZERO).await
            }
        }
    }

    /// Makes the call of an attempt that has begun.
    async fn run(
        &self,
        pass: &Pass,
        batch: Batch,
        policy: &Policy,
        prepared: Prepared,
        more: bool,
    ) -> Result<Afterwards, HandleError> {
        let Prepared { members, registered, gone } = prepared;
        // There is no call without members, nor for a batch that kills workers.
        if members.is_empty() || lost_too_often(&batch) {
            self.release_place(&batch, pass).await;
            let result = not_called(&batch);
            return self.end(batch, policy, EndedAttempt { result, gone, put_off: None }, more).await;
        }
        let (result, made) = self.call(&batch, policy, members, &registered).await;
        let result = if batch.dev_session.is_some() { result.map_err(|error| unsent(&error)) } else { result };
        // The call is over, even if its outcome cannot be recorded. One that was not made, or not sent to a dev session, shows nothing
        // of the batch API, so it is no probe either.
        let put_off = if made && (batch.dev_session.is_none() || result.is_ok()) {
            self.leave(&Called { pass, batch: &batch, policy, result: &result }).await
        } else {
            self.release_place(&batch, pass).await;
            self.handed_back(&batch, &result).await?
        };
        if let Ok(Answer::Later(later)) = result {
            return self.stay_open(batch, policy, (later, gone), more).await;
        }
        self.end(batch, policy, EndedAttempt { result, gone, put_off }, more).await
    }

    /// Fails the members of a batch that has waited too long for a batch API that refuses every call.
    async fn give_up(&self, message: HandleMessage, policy: &Policy, answer: &str) -> Result<Afterwards, HandleError> {
        let batch = match self.begin_without_call(message, policy).await? {
            Ok(batch) => batch,
            Err(then) => return Ok(then),
        };
        let result = Err(CallError::new(Cause::NotMade, gave_up_waiting(answer)));
        self.end(batch, policy, EndedAttempt { result, gone: BTreeSet::new(), put_off: None }, message.more).await
    }

    /// Begins an attempt that makes no call. `Err`: another worker was faster, and what follows from its attempt is done, but
    /// for this.
    pub(crate) async fn begin_without_call(
        &self,
        message: HandleMessage,
        policy: &Policy,
    ) -> Result<Result<Batch, Afterwards>, HandleError> {
        match self.batches.begin(message.batch, message.attempt, policy.batch_api.timeout.0).await? {
            Write::Done(batch) => Ok(Ok(batch)),
            Write::Refused(None) => Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => self.go_on(&batch, message.more).await.map(Err),
        }
    }

    /// Reads the members and begins the attempt. Contents stay as they are. Members that were dropped are not called, nor those
    /// whose outcome was posted meanwhile for an earlier call.
    async fn begin(
        &self,
        message: HandleMessage,
        batch: &Batch,
        terms: &Terms,
        pass: &mut Pass,
    ) -> Result<Begun, HandleError> {
        let prepared = self.prepare(batch).await?;
        if terms.lease.is_some() && prepared.bytes() > DEV_CALL_BYTES_MAX {
            let limit = DEV_CALL_BYTES_MAX;
            tracing::warn!(batch = %batch.id, limit, "too large for a dev session: the policy's own batch API is called");
            return Ok(Begun::TooLargeForSession);
        }
        pause(pass.times.ahead(self.world.now()).saturating_sub(CALL_AHEAD)).await;
        let timeout = terms.policy.batch_api.timeout.0;
        let began = self.world.now();
        let begun = self.begin_attempt(message, terms).await?;
        let batch = match begun {
            Write::Done(batch) => batch,
            Write::Refused(None) => return Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => return Ok(Begun::Refused(batch)),
        };
        let batch = match self.drop_some(batch.clone()).await {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(Begun::Overtaken),
            Err(error) => {
                self.batches.take_back(&batch).await?;
                return Err(error.into());
            }
        };
        let prepared = prepared.without_closed(&batch);
        // Nobody is left of the part that was to be called, but there are others.
        if prepared.is_empty() && !batch.unsettled().is_empty() {
            self.batches.take_back(&batch).await?;
            return Ok(Begun::Dropped);
        }
        // The switches are read once more after the beginning, so that a call begins soon after they were read, or not at all.
        if !prepared.members.is_empty() {
            match self.hindrance(&batch, terms).await {
                Ok(None) => {}
                hindered => {
                    self.batches.take_back(&batch).await?;
                    return Ok(hindered.map(|hindrance| hindrance.unwrap_or(Begun::TooLate))?);
                }
            }
        }
        let in_time = self.in_time(&batch, &mut pass.times).await;
        // Other workers rely on the call to end before its leases do.
        let now = self.world.now();
        if now.since(began) > CALL_WITHIN || now.plus(timeout) > pass.place.until || !in_time {
            self.batches.take_back(&batch).await?;
            return Ok(Begun::TooLate);
        }
        Ok(Begun::Attempt(batch, prepared))
    }

    /// The write that begins an attempt.
    async fn begin_attempt(
        &self,
        message: HandleMessage,
        terms: &Terms,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let HandleMessage { batch, attempt, .. } = message;
        let BatchApi { timeout, answers_within, .. } = &terms.policy.batch_api;
        match (&terms.lease, answers_within) {
            (Some(lease), _) => self.batches.begin_for_session(batch, attempt, timeout.0, lease.session).await,
            (None, Some(_)) => self.batches.begin_with_token(batch, attempt, timeout.0).await,
            (None, None) => self.batches.begin(batch, attempt, timeout.0).await,
        }
    }

    /// What came between the beginning of an attempt and its call: its lane was paused, or its dev session ended.
    async fn hindrance(&self, batch: &Batch, terms: &Terms) -> Result<Option<Begun>, StoreError> {
        if self.policies.hold(&batch.lane).await?.paused {
            return Ok(Some(Begun::Paused));
        }
        Ok((!self.still_holds(batch, terms).await?).then_some(Begun::TooLate))
    }

    /// Reads the members that are to be called.
    async fn prepare(&self, batch: &Batch) -> Result<Prepared, HandleError> {
        self.prepare_slots(batch, batch.called()).await
    }

    /// Reads the members of the call that an open attempt is for.
    pub(crate) async fn members_asked(&self, batch: &Batch) -> Result<Vec<CallMember>, HandleError> {
        Ok(self.members_at(batch, batch.asked()).await?.0)
    }

    /// Reads the members in these slots. Also returns the slots whose task no longer exists.
    pub(crate) async fn members_at(
        &self,
        batch: &Batch,
        slots: Vec<usize>,
    ) -> Result<(Vec<CallMember>, BTreeSet<usize>), HandleError> {
        let Prepared { members, gone, .. } = self.prepare_slots(batch, slots).await?;
        Ok((members, gone))
    }

    async fn prepare_slots(&self, batch: &Batch, slots: Vec<usize>) -> Result<Prepared, HandleError> {
        let ids: Vec<TaskId> = slots.iter().filter_map(|slot| batch.members.ids().get(*slot)).copied().collect();
        let mut contents = self.tasks.contents(&ids).await?;
        let mut gone = BTreeSet::new();
        let mut members = Vec::with_capacity(ids.len());
        let mut registered = Vec::with_capacity(ids.len());
        for (slot, id) in slots.into_iter().zip(ids) {
            match contents.remove(&id).map(|content| (RawValue::from_string(content.json), content.created_at)) {
                Some((Ok(content), created_at)) => {
                    members.push(CallMember { id, content });
                    registered.push(created_at);
                }
                _ => {
                    gone.insert(slot);
                }
            }
        }
        Ok(Prepared { members, registered, gone })
    }
}

/// Whether so many workers in a row died while they called the same members that these may be the cause.
fn lost_too_often(batch: &Batch) -> bool {
    batch.lost_in_a_row() >= LOST_ATTEMPTS_MAX
}

/// The result of an attempt without a call.
fn not_called(batch: &Batch) -> Result<Answer, CallError> {
    if !lost_too_often(batch) {
        return Ok(Answer::AllSucceeded);
    }
    let message = format!("{LOST_ATTEMPTS_MAX} workers were lost while they called the batch API");
    Err(CallError { retriable: false, ..CallError::new(Cause::Silence, message) })
}
