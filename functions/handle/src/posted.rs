//! What posted outcomes change. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::clock::Timestamp;
use fanfold::limits::{CODE_BYTES_MAX, RETRY_AFTER_MAX};
use fanfold::messages::{Posted, PostedOutcome};
use fanfold::policy::FieldError;
use fanfold::store::batches::{Batch, MemberState};
use fanfold::text::beginning;

use crate::outcomes::{NO_REASON, Outcomes};

/// What posted outcomes change.
#[derive(Debug)]
pub(crate) struct Noted {
    /// The batch with them. If it waits for its next attempt, that does not follow from them yet: see [`Batch::concluded`].
    pub(crate) after: Batch,
    /// What slots brought that succeed by them, as JSON.
    pub(crate) results: Vec<(usize, String)>,
    /// Entries that say what holds now.
    pub(crate) recorded: usize,
    /// Entries that change nothing: their member has another outcome, or may have been called again since.
    pub(crate) ignored: usize,
}

/// The slots of entries.
///
/// # Errors
/// One names no member, or a member that another one names.
fn slots(batch: &Batch, members: &[PostedOutcome]) -> Result<Vec<usize>, Vec<FieldError>> {
    let (mut slots, mut faults, mut first) = (Vec::with_capacity(members.len()), Vec::new(), HashMap::new());
    for (at, member) in members.iter().enumerate() {
        let field = || format!("members[{at}].id");
        let id = &member.id;
        match batch.members.slot(id) {
            None => {
                let problem = format!("is {id}, which is not a member of batch {}", batch.id);
                faults.push(FieldError { field: field(), problem });
            }
            Some(slot) => match first.insert(slot, at) {
                Some(earlier) => {
                    let problem = format!("is {id}, as `members[{earlier}].id` is; a member is allowed once");
                    faults.push(FieldError { field: field(), problem });
                }
                None => slots.push(slot),
            },
        }
    }
    if faults.is_empty() { Ok(slots) } else { Err(faults) }
}

/// Adds posted outcomes to a batch. The first outcome of a member counts, whichever call it came of. `attempt`: that of the call
/// whose token they came with; a `retry` counts only while the outcomes of that call are awaited.
///
/// # Errors
/// An entry names no member, or one that another entry names.
pub(crate) fn noted(
    batch: &Batch,
    attempt: u32,
    members: &[PostedOutcome],
    now: Timestamp,
) -> Result<Noted, Vec<FieldError>> {
    let slots = slots(batch, members)?;
    let asked: Bits = if batch.awaits(attempt) { batch.asked().into_iter().collect() } else { Bits::default() };
    let mut outcomes = Outcomes::of(batch);
    let (mut again, mut again_at, mut results) = (batch.again.clone(), batch.again_at, Vec::new());
    let mut recorded = 0;
    for (slot, member) in slots.into_iter().zip(members) {
        if !batch.is_open(slot) {
            recorded += usize::from(stands(batch, slot, member.outcome));
            continue;
        }
        if member.outcome == Posted::Retry && !asked.get(slot) {
            continue;
        }
        recorded += 1;
        outcomes.forget(slot);
        again = again.minus(&std::iter::once(slot).collect());
        let error = member.error.as_deref().unwrap_or(NO_REASON);
        let code = member.code.as_deref().map(|code| beginning(code.as_bytes(), CODE_BYTES_MAX));
        let code = code.as_deref().filter(|code| !code.is_empty());
        match member.outcome {
            Posted::Succeeded => {
                outcomes.succeeded.set(slot);
                let result = member.result.as_ref().filter(|result| !result.is_null());
                results.extend(result.map(|result| (slot, result.to_string())));
            }
            Posted::Failed => outcomes.fail_clearly(slot, error, code),
            Posted::Retry => {
                again.set(slot);
                outcomes.because(slot, error, code);
                again_at = again_at.max(asked_until(member, now));
            }
        }
    }
    // The pause is over with the last member that asked for one.
    let again_at = again_at.filter(|_| !again.is_zero());
    let silent = outcomes.silent();
    let Outcomes { succeeded, failed, errors, codes, .. } = outcomes;
    let after = Batch { succeeded, failed, silent, errors, codes, again, again_at, ..batch.clone() };
    Ok(Noted { after, results, recorded, ignored: members.len() - recorded })
}

/// Whether a slot has this outcome.
fn stands(batch: &Batch, slot: usize, outcome: Posted) -> bool {
    match outcome {
        Posted::Succeeded => batch.outcome(slot) == MemberState::Succeeded,
        Posted::Failed => batch.outcome(slot) == MemberState::Failed,
        Posted::Retry => false,
    }
}

/// Until when a member asks to wait.
fn asked_until(member: &PostedOutcome, now: Timestamp) -> Option<Timestamp> {
    let seconds = member.retry_after.filter(|seconds| *seconds >= 0.0)?;
    // More seconds than fit are a wait without end, too.
    Some(now.plus(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
