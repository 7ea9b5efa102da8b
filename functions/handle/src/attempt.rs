//! One attempt: from its message to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::aws::Write;
use fanfold::grouping::gave_up_waiting;
use fanfold::limits::{DELAY_MIN, LOST_ATTEMPTS_MAX};
use fanfold::messages::HandleMessage;
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, CallError, Cause};

use crate::begin::{Begun, Prepared};
use crate::breaker::Called;
use crate::dev::{Whose, unsent};
use crate::places::{Entry, Pass};
use crate::settle::EndedAttempt;
use crate::step::{Afterwards, note};
use crate::{Handle, HandleError};

/// What became of beginning an attempt that makes no call.
pub(crate) enum Uncalled {
    /// It has begun.
    Begun(Box<Batch>),
    /// Another worker was faster. What may have been left undone of its attempt is done, except for this.
    Overtaken(Afterwards),
}

impl Handle {
    /// Makes one attempt, unless another worker makes it or made it, it is not due yet, its lane is paused, or its kind has no
    /// place free.
    pub(crate) async fn attempt(&self, message: HandleMessage) -> Result<Afterwards, HandleError> {
        self.attempt_at(message, Whose::Session).await
    }

    async fn attempt_at(&self, message: HandleMessage, whose: Whose) -> Result<Afterwards, HandleError> {
        let batch = self.batches.get(message.batch).await?.ok_or(HandleError::UnknownBatch(message.batch))?;
        note(&batch);
        if !batch.may_begin(message.attempt, self.world.now()) {
            return self.continue_from_record(&batch, message.more).await;
        }
        // SQS delays by 15 minutes at most, and by whole seconds.
        match batch.not_before().since(self.world.now()) {
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
        let held = self.policies.hold(&batch.lane).await?.paused;
        if held && !self.nothing_left(&batch).await? {
            // When the lane is resumed, the messages of batches whose time has come are sent again.
            return Ok(Afterwards::Waits);
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
            Begun::Refused(batch) => self.continue_from_record(&batch, message.more).await,
            Begun::Overtaken | Begun::Paused => Ok(Afterwards::Waits),
            Begun::TooLargeForSession => Box::pin(self.attempt_at(message, Whose::Policy)).await,
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
        let Prepared { members, registered, gone, unready } = prepared;
        // There is no call without members, nor for a batch that kills workers.
        if members.is_empty() || lost_too_often(&batch) {
            self.release_place(&batch, pass).await;
            let result = not_called(&batch);
            return self.end(batch, policy, EndedAttempt { result, gone, put_off: None }, more).await;
        }
        let (result, made) = match unready {
            Some(error) => {
                tracing::info!(batch = %batch.id, attempt = batch.attempts, %error, "the batch API cannot be called");
                (Err(error), true)
            }
            None => self.call(&batch, policy, members, &registered).await,
        };
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
            return self.stay_open(batch, policy, later, gone, more).await;
        }
        self.end(batch, policy, EndedAttempt { result, gone, put_off }, more).await
    }

    /// Fails the members of a batch that has waited too long for a batch API that refuses every call.
    async fn give_up(&self, message: HandleMessage, policy: &Policy, answer: &str) -> Result<Afterwards, HandleError> {
        let batch = match self.begin_without_call(message, policy).await? {
            Uncalled::Begun(batch) => *batch,
            Uncalled::Overtaken(then) => return Ok(then),
        };
        let Some(batch) = self.drop_uncalled(batch).await? else { return Ok(Afterwards::Waits) };
        let result = Err(CallError::new(Cause::NotMade, gave_up_waiting(answer)));
        self.end(batch, policy, EndedAttempt { result, gone: BTreeSet::new(), put_off: None }, message.more).await
    }

    /// Begins an attempt that makes no call.
    pub(crate) async fn begin_without_call(
        &self,
        message: HandleMessage,
        policy: &Policy,
    ) -> Result<Uncalled, HandleError> {
        match self.batches.begin(message.batch, message.attempt, policy.batch_api.timeout.0).await? {
            Write::Done(batch) => Ok(Uncalled::Begun(Box::new(batch))),
            Write::Refused(None) => Err(HandleError::UnknownBatch(message.batch)),
            Write::Refused(Some(batch)) => {
                self.continue_from_record(&batch, message.more).await.map(Uncalled::Overtaken)
            }
        }
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
