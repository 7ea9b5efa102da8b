//! The outcomes of a batch's members, and what an attempt adds to them. No I/O.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::limits::{CODES_PER_BATCH_MAX, ERROR_BYTES_MAX, ERRORS_PER_BATCH_MAX};
use fanfold::store::batches::Batch;
use fanfold::text::shorten;
use fanfold_batch_api::{Answer, CallError, MemberAnswer, MemberOutcome, Mismatch};

/// Stands for an error of which a batch keeps no more than [`ERRORS_PER_BATCH_MAX`].
const FURTHER: &str = "not kept: a batch keeps 32 different errors";

/// The error of a member whose task no longer exists.
const GONE: &str = "the task's record is gone";

/// The error of a member that failed without a given reason.
pub(crate) const NO_REASON: &str = "failed, without an error message";

/// A slot to be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) slot: usize,
    /// Why.
    pub(crate) error: String,
    pub(crate) code: Option<String>,
    /// How long it asks to wait.
    pub(crate) after: Option<Duration>,
}

/// The outcomes of a batch so far.
pub(crate) struct Outcomes {
    pub(crate) succeeded: Bits,
    pub(crate) failed: Bits,
    /// Slots for which some call may have worked, whatever else is known.
    silent: BTreeSet<usize>,
    pub(crate) errors: Vec<(String, Bits)>,
    pub(crate) codes: Vec<(String, Bits)>,
    /// What slots brought that succeeded in this attempt, as JSON.
    pub(crate) results: Vec<(usize, String)>,
}

impl Outcomes {
    pub(crate) fn of(batch: &Batch) -> Self {
        let (succeeded, failed) = (batch.succeeded.clone(), batch.failed.clone());
        // A member that was to be tried again, and is called, has none any more.
        let mut with_error = failed.clone();
        with_error.merge(&batch.again);
        let of_those = |said: &[(String, Bits)]| {
            let said = said.iter().map(|(text, slots)| (text.clone(), slots.and(&with_error)));
            said.filter(|(_, slots)| !slots.is_zero()).collect::<Vec<_>>()
        };
        let (errors, codes) = (of_those(&batch.errors), of_those(&batch.codes));
        Self { succeeded, failed, silent: batch.silent.iter().collect(), errors, codes, results: Vec::new() }
    }

    /// Takes the result of the call for these slots. Returns those to be tried again; `put_off`: a failed call is repeated in
    /// any case.
    pub(crate) fn take(
        &mut self,
        batch: &Batch,
        called: Vec<usize>,
        result: Result<Answer, CallError>,
        put_off: bool,
    ) -> Vec<Retry> {
        // An attempt whose worker died may have worked.
        if batch.lost_in_a_row() > 0 || result.as_ref().is_err_and(|error| !error.cause.answered()) {
            self.silent.extend(&called);
        }
        match result {
            Ok(Answer::AllSucceeded) => called.into_iter().for_each(|slot| self.succeeded.set(slot)),
            Ok(Answer::Members(members)) => return self.by_member(batch, called, members, None),
            Ok(Answer::Unclear { members, problem }) => return self.by_member(batch, called, members, Some(&problem)),
            Ok(Answer::Later(later)) => return self.by_member(batch, called, later.members, None),
            Err(error) if error.retriable || put_off => {
                let CallError { message, code, .. } = &error;
                let retry = |slot| Retry { slot, error: message.clone(), code: code.clone(), after: None };
                return called.into_iter().map(retry).collect();
            }
            Err(error) => called.into_iter().for_each(|slot| self.fail(slot, &error.message, error.code.as_deref())),
        }
        Vec::new()
    }

    pub(crate) fn fail(&mut self, slot: usize, error: &str, code: Option<&str>) {
        self.failed.set(slot);
        self.because(slot, error, code);
    }

    /// The batch API answered that a slot failed: it did not work.
    pub(crate) fn fail_clearly(&mut self, slot: usize, error: &str, code: Option<&str>) {
        self.silent.remove(&slot);
        self.fail(slot, error, code);
    }

    /// Notes why a slot has not succeeded.
    pub(crate) fn because(&mut self, slot: usize, error: &str, code: Option<&str>) {
        if let Some(code) = code {
            let full = self.codes.len() >= CODES_PER_BATCH_MAX;
            match self.codes.iter_mut().find(|(known, _)| known == code) {
                Some((_, slots)) => slots.set(slot),
                None if full => {}
                None => self.codes.push((code.to_owned(), std::iter::once(slot).collect())),
            }
        }
        let error = if error.trim().is_empty() { NO_REASON } else { error };
        let error = shorten(error, ERROR_BYTES_MAX);
        let full = self.errors.len() >= ERRORS_PER_BATCH_MAX;
        let error = if full && !self.errors.iter().any(|(known, _)| *known == error) { FURTHER } else { &error };
        match self.errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, slots)) => slots.set(slot),
            None => self.errors.push((error.to_owned(), std::iter::once(slot).collect())),
        }
    }

    /// Forgets why a slot had not succeeded.
    pub(crate) fn forget(&mut self, slot: usize) {
        let one: Bits = std::iter::once(slot).collect();
        for said in [&mut self.errors, &mut self.codes] {
            said.iter_mut().for_each(|(_, slots)| *slots = slots.minus(&one));
            said.retain(|(_, slots)| !slots.is_zero());
        }
    }

    /// Tries these slots again, for which the outcome `retry` was posted.
    pub(crate) fn posted_again(&mut self, batch: &Batch, again: &Bits) -> Vec<Retry> {
        let again: Vec<usize> = again.iter().filter(|slot| self.is_open(*slot)).collect();
        // That a call is to be repeated says nothing of an earlier one whose worker was lost.
        if batch.lost_in_a_row() > 0 {
            self.silent.extend(&again);
        }
        let retry = |slot| {
            self.forget(slot);
            let error = batch.error(slot).unwrap_or(NO_REASON).to_owned();
            Retry { slot, error, code: batch.code(slot).map(str::to_owned), after: None }
        };
        again.into_iter().map(retry).collect()
    }

    /// Slots without a success for which a call may have worked all the same.
    pub(crate) fn silent(&self) -> Bits {
        self.silent.iter().copied().filter(|slot| !self.succeeded.get(*slot)).collect()
    }

    /// Whether a slot has no outcome, in a batch in which it had none and was not dropped.
    pub(crate) fn is_open(&self, slot: usize) -> bool {
        !self.succeeded.get(slot) && !self.failed.get(slot)
    }

    /// Fails the members, of those without an outcome, whose task no longer exists.
    pub(crate) fn fail_gone(&mut self, batch: &Batch, gone: &BTreeSet<usize>) {
        gone.iter().filter(|slot| batch.is_open(**slot)).for_each(|slot| self.fail(*slot, GONE, None));
    }

    /// Takes the outcomes of members; `problem`: what was unreadable. Returns those to be tried again.
    fn by_member(
        &mut self,
        batch: &Batch,
        called: Vec<usize>,
        members: Vec<MemberAnswer>,
        problem: Option<&str>,
    ) -> Vec<Retry> {
        let named = called.iter().filter_map(|slot| batch.members.ids().get(*slot)).copied();
        let unreported = unreported(problem, &Mismatch::of(named, &members));
        let mut reported = by_id(members);
        let mut retry = Vec::new();
        for slot in called {
            match batch.members.ids().get(slot).and_then(|id| reported.remove(id)) {
                Some(member) if member.outcome != MemberOutcome::Unnamed => retry.extend(self.of_member(slot, member)),
                unnamed => {
                    // The unreadable part may have been about this member.
                    self.silent.extend(problem.map(|_| slot));
                    let after = unnamed.and_then(|member| member.retry_after);
                    retry.push(Retry { slot, error: unreported.clone(), code: None, after });
                }
            }
        }
        retry
    }

    /// Takes the outcome of one member. Returns it if it is to be tried again.
    fn of_member(&mut self, slot: usize, member: MemberAnswer) -> Option<Retry> {
        let MemberAnswer { outcome, error, code, retry_after: after, result, .. } = member;
        let error = error.unwrap_or_else(|| NO_REASON.to_owned());
        match outcome {
            MemberOutcome::Succeeded => {
                self.succeeded.set(slot);
                self.results.extend(result.map(|result| (slot, result)));
                None
            }
            MemberOutcome::Failed => {
                self.fail_clearly(slot, &error, code.as_deref());
                None
            }
            // An earlier call without an answer may still have worked.
            MemberOutcome::Retry | MemberOutcome::Unnamed => Some(Retry { slot, error, code, after }),
            MemberOutcome::Unclear => {
                self.silent.insert(slot);
                Some(Retry { slot, error, code, after })
            }
        }
    }
}

/// The outcomes of an answer by their members. Of the same outcome twice the first counts. If they differ, which of them holds is
/// not known.
fn by_id(members: Vec<MemberAnswer>) -> HashMap<TaskId, MemberAnswer> {
    let mut reported: HashMap<TaskId, MemberAnswer> = HashMap::with_capacity(members.len());
    for member in members {
        match reported.entry(member.id) {
            Entry::Vacant(place) => drop(place.insert(member)),
            Entry::Occupied(mut first) if first.get().outcome != member.outcome => {
                let error = Some("the answer has several outcomes for it".to_owned());
                let retry_after = first.get().retry_after.max(member.retry_after);
                let unclear = MemberAnswer::new(member.id, MemberOutcome::Unclear);
                first.insert(MemberAnswer { error, retry_after, ..unclear });
            }
            Entry::Occupied(_) => {}
        }
    }
    reported
}

/// The error of a member that the answer does not name.
fn unreported(problem: Option<&str>, mismatch: &Mismatch) -> String {
    match (problem, mismatch.unknown.as_slice()) {
        (Some(problem), _) => format!("the answer has no outcome for it, and {problem}"),
        (None, [id]) => format!("the answer has no outcome for it, but one for {id}, which is not a member"),
        (None, []) => "the answer has no outcome for it".to_owned(),
        (None, [id, others @ ..]) => format!(
            "the answer has no outcome for it, but one for {id}, which is not a member, and {} like that",
            others.len()
        ),
    }
}
