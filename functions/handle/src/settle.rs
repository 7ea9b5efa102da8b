//! The outcomes and next attempt that follow from an attempt. No I/O.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::backoff::Backoff;
use fanfold::bits::Bits;
use fanfold::clock::Timestamp;
use fanfold::grouping::{Parts, Shows, gave_up_waiting, is_split_after, waited_in_vain};
use fanfold::limits::{ERROR_BYTES_MAX, RETRY_AFTER_MAX};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, Settlement};
use fanfold::text::shorten;
use fanfold_batch_api::{Answer, CallError, Cause, MemberOutcome};

use crate::outcomes::{Outcomes, Retry};
use crate::release::freed_of;

/// How an attempt ended.
#[derive(Clone)]
pub(crate) struct EndedAttempt {
    /// The result of the call.
    pub(crate) result: Result<Answer, CallError>,
    /// Slots whose task no longer exists.
    pub(crate) gone: BTreeSet<usize>,
    /// Set if the attempt does not count, as the batch API refuses every call: the next one is not before then.
    pub(crate) put_off: Option<Timestamp>,
}

/// The moment at which an attempt ends, and a random number for its pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) random: u64,
}

/// What a call shows, and how its members are called again.
struct Judged {
    shows: Shows,
    /// It was for several members.
    several: bool,
    /// They are called in parts.
    splits: bool,
    /// All parts wait for the end of the pause.
    waits: bool,
}

/// Computes the batch's outcomes after an attempt, and when the next attempt is due. `slots`: those that the call was for. Outcomes of
/// some may have come while it was made or open.
pub(crate) fn settle_call(
    batch: &Batch,
    slots: &[usize],
    ended: EndedAttempt,
    policy: &Policy,
    moment: Moment,
) -> Settlement {
    let EndedAttempt { result, gone, put_off } = ended;
    let (before, asked) = (open_at_call(batch, slots), asked_by_answer(&result, moment.now));
    // A dev session that hands a batch back says nothing of the batch API.
    let in_vain = put_off.is_some() && batch.dev_session.is_none() && waited_in_vain(batch, None, moment.now);
    let mut outcomes = Outcomes::of(batch);
    let mut called = if is_not_made(&result) { before.clone() } else { slots.to_vec() };
    // What the call's own answer says of a member counts more than that it was posted as to be tried again.
    let again = batch.again.minus(&answered(batch, &result));
    batch.again.minus(&again).iter().for_each(|slot| outcomes.forget(slot));
    called.retain(|slot| !gone.contains(slot) && batch.is_open(*slot));
    outcomes.fail_gone(batch, &gone);
    let attempts = attempts(batch, &before, put_off.is_some());
    // Whom the call was for: outcomes of some may have come since.
    let several = slots.iter().filter(|slot| !gone.contains(slot)).count() > 1;
    let splits = is_split_after(batch, &called, is_retriable(&result), attempts, policy);
    called.retain(|slot| !again.get(*slot));
    let judged = judge(&result, several, splits, put_off.is_some());
    let mut retry = outcomes.take(batch, called, result, put_off.is_some() || judged.splits);
    retry.extend(outcomes.posted_again(batch, &again));
    // Members that ask for different delays are called together: none of them before its time.
    let asked_by_members = retry.iter().filter_map(|retry| retry.after).max().unwrap_or_default().min(RETRY_AFTER_MAX);
    let gives_up = if put_off.is_some() { in_vain } else { !judged.splits && attempts >= policy.max_attempts };
    if gives_up {
        give_up(&mut outcomes, std::mem::take(&mut retry), attempts, put_off.is_some());
    }
    let pause = backoff(batch, policy, attempts, put_off, moment.random).max(asked).max(asked_by_members);
    let pause = moment.now.plus(pause).max(put_off.unwrap_or_default());
    let is_left = |slot: &usize| outcomes.is_open(*slot) && !batch.dropped.get(*slot);
    let open: Vec<usize> = before.iter().copied().filter(is_left).collect();
    // A pause that was posted is for the part of the members that ask for it, whatever becomes of that.
    let asking: Vec<usize> = open.iter().copied().filter(|slot| again.get(*slot)).collect();
    let asked_by_post = batch.again_at.filter(|_| !asking.is_empty()).unwrap_or_default();
    let parts = parts(batch, put_off, &judged, &before, &open, pause).held(&asking, asked_by_post);
    let pause = if parts.is_empty() { pause.max(asked_by_post) } else { pause };
    let (silent, split) = (outcomes.silent(), judged.splits && !open.is_empty());
    Settlement {
        freed: freed_of(policy, &outcomes.failed, &batch.dropped, &silent),
        silent,
        results: if policy.keep_results { std::mem::take(&mut outcomes.results) } else { Vec::new() },
        succeeded: outcomes.succeeded,
        failed: outcomes.failed,
        errors: outcomes.errors,
        codes: outcomes.codes,
        last_error: retry.first().map(|retry| shorten(&retry.error, ERROR_BYTES_MAX).into_owned()),
        refused: batch.refused + u32::from(put_off.is_some()),
        refused_since: refused_since(batch, put_off, moment.now),
        retry_at: (!open.is_empty()).then(|| due(judged.waits, &parts, &open, pause).max(moment.now.plus(asked))),
        parts,
        split,
    }
}

/// Since when the batch API refuses every call of a batch. A dev session that hands a batch back says nothing of it.
fn refused_since(batch: &Batch, put_off: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    put_off.and(match batch.dev_session {
        Some(_) => batch.refused_since,
        None => batch.refused_since.or(batch.begun_at).or(Some(now)),
    })
}

/// How long the answer to a failed call asks to wait.
fn asked_by_answer(result: &Result<Answer, CallError>, now: Timestamp) -> Duration {
    let asked = result.as_ref().err().and_then(|error| error.retry_after);
    asked.map(|asked| asked.delay(now).min(RETRY_AFTER_MAX)).unwrap_or_default()
}

/// Judges a call by its result. `several`: it was for several members. `splits`: if it failed, they are called in halves next.
fn judge(result: &Result<Answer, CallError>, several: bool, splits: bool, put_off: bool) -> Judged {
    let shows = shows(result, put_off);
    let splits = splits && several && shows.fails();
    // A call for several that is not split is repeated as it is.
    let shows = if several && shows.fails() && !splits { Shows::Nothing } else { shows };
    Judged { shows, several, splits, waits: shows == Shows::Nothing || (splits && is_retriable(result)) }
}

/// Whether the same call may work another time.
fn is_retriable(result: &Result<Answer, CallError>) -> bool {
    result.as_ref().err().is_none_or(|error| error.retriable)
}

/// The policy's pause after a failed attempt. `attempts`: those that count, of the part that was called.
fn backoff(batch: &Batch, policy: &Policy, attempts: u32, put_off: Option<Timestamp>, random: u64) -> Duration {
    let tries = if put_off.is_some() { batch.refused + 1 } else { attempts };
    Backoff::from(&policy.backoff).after(tries, random)
}

/// The parts in which the members are called that are left. `before`: the slots without an outcome when the call was made; `open`:
/// those without one now; `pause`: the end of the pause.
fn parts(
    batch: &Batch,
    put_off: Option<Timestamp>,
    judged: &Judged,
    before: &[usize],
    open: &[usize],
    pause: Timestamp,
) -> Parts {
    let parts = match put_off {
        Some(_) => batch.parts.clone(),
        None if judged.splits && batch.parts.is_empty() => Parts::split(open, judged.shows),
        None => batch.parts.clone().after(judged.shows, judged.several, before, open, pause),
    };
    if open.is_empty() { Parts::default() } else { parts }
}

/// Fails members that are not tried again.
fn give_up(outcomes: &mut Outcomes, members: Vec<Retry>, attempts: u32, put_off: bool) {
    for Retry { slot, error, code, .. } in members {
        let error =
            if put_off { gave_up_waiting(&error) } else { format!("gave up after {attempts} attempts: {error}") };
        outcomes.fail(slot, &error, code.as_deref());
    }
}

/// When a batch may be called again; `pause`: the end of the pause after a failed call; `waits`: all its parts do.
fn due(waits: bool, parts: &Parts, open: &[usize], pause: Timestamp) -> Timestamp {
    // After a fault that may pass, or if nothing is known of the batch API, the other parts wait, too.
    if parts.is_empty() {
        return pause;
    }
    if waits { pause.max(parts.due(open)) } else { parts.due(open) }
}

/// Attempts of a batch that count, or of the part of it that was called; this one among them, unless it was put off.
fn attempts(batch: &Batch, open: &[usize], put_off: bool) -> u32 {
    let before = match batch.parts.is_empty() {
        true => batch.attempts_that_count(),
        false => batch.parts.next(open).1,
    };
    before + u32::from(!put_off)
}

/// The slots of which the answer to the call says something.
fn answered(batch: &Batch, result: &Result<Answer, CallError>) -> Bits {
    match result {
        Ok(Answer::AllSucceeded) => batch.again.clone(),
        Ok(Answer::Members(members) | Answer::Unclear { members, .. }) if !batch.again.is_zero() => {
            let named = members.iter().filter(|member| member.outcome != MemberOutcome::Unnamed);
            named.filter_map(|member| batch.members.slot(&member.id)).collect()
        }
        _ => Bits::default(),
    }
}

/// The slots without an outcome when the call was made, as far as that shows which part of the batch was called: some of it, or of
/// others, may have got theirs since.
fn open_at_call(batch: &Batch, slots: &[usize]) -> Vec<usize> {
    batch.unsettled().into_iter().chain(slots.iter().copied()).collect::<BTreeSet<usize>>().into_iter().collect()
}

/// Whether the call was not made, and never will be. This concerns every open member, not only those that the call was for.
fn is_not_made(result: &Result<Answer, CallError>) -> bool {
    result.as_ref().is_err_and(|error| error.cause == Cause::NotMade)
}

/// What a call shows of the members that it was for.
fn shows(result: &Result<Answer, CallError>, put_off: bool) -> Shows {
    match result {
        Ok(_) => Shows::Works,
        Err(error) if matches!(error.cause, Cause::Status(413) | Cause::NotSent) && !put_off => Shows::TooLarge,
        Err(error) if error.cause.may_be_one_member() && !put_off => Shows::Fails,
        Err(_) => Shows::Nothing,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
