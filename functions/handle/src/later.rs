//! Attempts whose call is answered later: they stay open until every outcome has come, or their time is over.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::bits::Bits;
use fanfold::clock::Timestamp;
use fanfold::limits::{CONTENTION_TRIES_MAX, DELAY_MIN, ERROR_BYTES_MAX, POLL_PAUSES};
use fanfold::messages::HandleMessage;
use fanfold::policy::{Policy, no_policy};
use fanfold::store::batches::{Batch, Later, Poll};
use fanfold::text::shorten;
use fanfold_batch_api::{Accepted, Answer, CallError, Cause, Request};

use crate::call::call_of;
use crate::conclude::count_outcomes;
use crate::dev::silent_session;
use crate::outcomes::Outcomes;
use crate::settle::EndedAttempt;
use crate::step::Afterwards;
use crate::{Handle, HandleError};

/// What asking for an answer brought.
enum Asked {
    /// The outcomes.
    Answered(Answer),
    /// None yet: ask again after this time, if it says so. And why, if that was not the batch API's answer.
    NotYet(Accepted),
    /// There will be none.
    Never(CallError),
}

/// What came of an open attempt whose time is over.
enum Deadline {
    /// The outcomes.
    Answered(Answer),
    /// Nothing.
    Silent,
    /// Its lane is paused, so nobody asks.
    Paused,
}

impl Handle {
    /// The batch API has accepted a call, and answers later. `gone`: slots whose task no longer exists.
    pub(crate) async fn stay_open(
        &self,
        batch: Batch,
        policy: &Policy,
        accepted: Accepted,
        gone: BTreeSet<usize>,
        more: bool,
    ) -> Result<Afterwards, HandleError> {
        if let Some(problem) = &accepted.problem {
            tracing::warn!(batch = %batch.id, attempt = batch.attempts, "{problem}");
        }
        let within = policy.batch_api.answers_within.map_or(Duration::ZERO, |within| within.0);
        let now = self.world.now();
        let poll = |url| Poll { url, at: now.plus(accepted.after.unwrap_or(POLL_PAUSES.0).max(DELAY_MIN)) };
        let poll = accepted.poll.clone().map(poll);
        let later = Later { until: now.plus(within), asked: batch.called().into_iter().collect(), poll };
        let mut batch = batch;
        for _ in 0..CONTENTION_TRIES_MAX {
            let after = opened(&batch, later.clone(), &accepted, &gone);
            match self.batches.note(&batch, after, Vec::new()).await? {
                Write::Done(open) => {
                    count_outcomes(&batch, &open);
                    return self.continue_from_record(&open, more).await;
                }
                // The first outcomes were faster than the answer to the call.
                Write::Refused(Some(stands)) if stands.is_same_attempt(&batch) => batch = stands,
                Write::Refused(_) => {
                    tracing::warn!(batch = %batch.id, attempt = batch.attempts, "a later attempt overtook this one");
                    return Ok(Afterwards::Waits);
                }
            }
        }
        Err(StoreError::Contended { what: format!("opening an attempt of batch {}", batch.id) }.into())
    }

    /// Looks at an open attempt: ends it if everything has come or its time is over, asks for its answer if that is due, and
    /// otherwise comes back. `due`: when it is to be looked at.
    pub(crate) async fn look_after(
        &self,
        batch: &Batch,
        message: HandleMessage,
        due: Timestamp,
    ) -> Result<Afterwards, HandleError> {
        let Some(later) = &batch.later else { return Ok(Afterwards::Waits) };
        let now = self.world.now();
        if !batch.is_answered() && due > now {
            return self.come_later(batch, message, due.since(now).max(DELAY_MIN)).await;
        }
        let kind = &batch.lane.kind;
        let Some(policy) = self.policies.get(kind).await? else {
            tracing::warn!(batch = %batch.id, "{}; the batch waits, and is found by the sweep", no_policy(kind));
            return Ok(Afterwards::Waits);
        };
        let result = if batch.is_answered() {
            Ok(Answer::Members(Vec::new()))
        } else if later.until <= now {
            match self.answer_at_the_deadline(batch, &policy).await? {
                Deadline::Answered(answer) => Ok(answer),
                Deadline::Silent => Err(no_outcome(batch, &policy)),
                // When the lane is resumed, the batch's message is sent again.
                Deadline::Paused => return Ok(Afterwards::Waits),
            }
        } else {
            return self.ask_for_answer(batch, &policy, message).await;
        };
        self.end_open(batch, &policy, result, message.more).await
    }

    /// Ends an open attempt.
    async fn end_open(
        &self,
        batch: &Batch,
        policy: &Policy,
        result: Result<Answer, CallError>,
        more: bool,
    ) -> Result<Afterwards, HandleError> {
        let put_off = self.handed_back(batch, &result).await?;
        let ended = EndedAttempt { result, gone: BTreeSet::new(), put_off };
        Box::pin(self.end(batch.clone(), policy, ended, more)).await
    }

    /// Asks for the answer at the address that the batch API named.
    async fn ask_for_answer(
        &self,
        batch: &Batch,
        policy: &Policy,
        message: HandleMessage,
    ) -> Result<Afterwards, HandleError> {
        let Some(poll) = batch.poll() else { return Ok(Afterwards::Waits) };
        if self.policies.hold(&batch.lane).await?.paused {
            // When the lane is resumed, the batch's message is sent again.
            return Ok(Afterwards::Waits);
        }
        let accepted = match self.answer_at(batch, policy, &poll.url).await? {
            Asked::Answered(answer) => return self.end_open(batch, policy, Ok(answer), message.more).await,
            Asked::Never(error) => return self.end_open(batch, policy, Err(error), message.more).await,
            Asked::NotYet(accepted) => accepted,
        };
        let now = self.world.now();
        let pause = accepted.after.unwrap_or_else(|| pause(batch, policy, now)).max(DELAY_MIN);
        let poll = Poll { url: accepted.poll.unwrap_or_else(|| poll.url.clone()), at: now.plus(pause) };
        let later = batch.later.clone().map(|later| Later { poll: Some(poll), ..later });
        let last_error = accepted.problem.map(|problem| shorten(&problem, ERROR_BYTES_MAX).into_owned());
        let after = Batch { later, last_error: last_error.or_else(|| batch.last_error.clone()), ..batch.clone() };
        match self.batches.note(batch, after, Vec::new()).await? {
            Write::Done(batch) | Write::Refused(Some(batch)) => {
                Box::pin(self.continue_from_record(&batch, message.more)).await
            }
            Write::Refused(None) => Err(HandleError::UnknownBatch(batch.id)),
        }
    }

    /// Asks a last time: a worker may have died after it had the answer, and before it wrote the outcomes.
    async fn answer_at_the_deadline(&self, batch: &Batch, policy: &Policy) -> Result<Deadline, HandleError> {
        let Some(poll) = batch.poll() else { return Ok(Deadline::Silent) };
        if self.policies.hold(&batch.lane).await?.paused {
            // A fan-out that was cut short does not wait for the end of a pause.
            return Ok(if self.nothing_left(batch).await? { Deadline::Silent } else { Deadline::Paused });
        }
        Ok(match self.answer_at(batch, policy, &poll.url).await? {
            Asked::Answered(answer) => Deadline::Answered(answer),
            Asked::NotYet(_) | Asked::Never(_) => Deadline::Silent,
        })
    }

    async fn answer_at(&self, batch: &Batch, policy: &Policy, url: &str) -> Result<Asked, HandleError> {
        let call = call_of(batch, self.members_asked(batch).await?);
        let request = match Request::new(&policy.batch_api, &call) {
            Ok(request) => request,
            Err(error) => return Ok(Asked::Never(unasked(&error))),
        };
        let unsent = request.unsent();
        let result = self.caller.poll(&policy.batch_api, url, request).await;
        let result = result.and_then(|answer| answer.in_mode(policy.batch_api.mode, &call, &unsent));
        Ok(match result {
            Ok(Answer::Later(accepted)) => Asked::NotYet(accepted),
            Ok(answer) => Asked::Answered(only_open(answer, batch)),
            Err(error) if error.retriable => {
                tracing::info!(batch = %batch.id, attempt = batch.attempts, %error, "the answer could not be asked for");
                let after = error.retry_after.map(|asked| asked.delay(self.world.now()));
                Asked::NotYet(Accepted { after, problem: Some(error.message), ..Accepted::default() })
            }
            Err(error) => Asked::Never(unasked(&error)),
        })
    }
}

/// A batch whose call is answered later. Members that are gone, or were not in the request, have failed.
fn opened(batch: &Batch, later: Later, accepted: &Accepted, gone: &BTreeSet<usize>) -> Batch {
    let mut outcomes = Outcomes::of(batch);
    outcomes.fail_gone(batch, gone);
    for member in &accepted.members {
        if let Some(slot) = batch.members.slot(&member.id).filter(|slot| batch.is_open(*slot)) {
            outcomes.fail(slot, member.error.as_deref().unwrap_or_default(), member.code.as_deref());
        }
    }
    let problem = accepted.problem.as_ref().map(|problem| shorten(problem, ERROR_BYTES_MAX).into_owned());
    let Outcomes { failed, errors, codes, .. } = outcomes;
    Batch { failed, errors, codes, ..batch.clone() }.opened(later, problem)
}

/// The outcomes of members that have none yet.
fn only_open(answer: Answer, batch: &Batch) -> Answer {
    let closed: Bits = batch.asked().into_iter().filter(|slot| !batch.is_open(*slot)).collect();
    match answer {
        Answer::Members(mut members) => {
            members.retain(|member| batch.members.slot(&member.id).is_none_or(|slot| !closed.get(slot)));
            Answer::Members(members)
        }
        answer => answer,
    }
}

/// How long to wait before an answer is asked for again: longer, the longer its attempt has been open.
fn pause(batch: &Batch, policy: &Policy, now: Timestamp) -> Duration {
    let (least, most) = POLL_PAUSES;
    let within = policy.batch_api.answers_within.map_or(Duration::ZERO, |within| within.0);
    let began = batch.later.as_ref().map_or(now, |later| later.until.minus(within));
    (now.since(began) / 4).clamp(least, most)
}

/// The error of a call whose outcomes did not come in time.
fn no_outcome(batch: &Batch, policy: &Policy) -> CallError {
    if batch.dev_session.is_some() { silent_session() } else { CallError::new(Cause::Silence, too_late(policy)) }
}

/// The error of members whose outcome did not come in time.
fn too_late(policy: &Policy) -> String {
    let within = policy.batch_api.answers_within.map(|within| format!(" {within}")).unwrap_or_default();
    format!("no outcome came within{}", if within.is_empty() { " the time that it had" } else { &within })
}

/// The batch API took the call, and now says that there is no answer to it: it may have worked.
fn unasked(error: &CallError) -> CallError {
    CallError::new(
        Cause::Silence,
        format!("the answer, which was to come later, could not be fetched: {}", error.message),
    )
}
