//! The outcomes of a batch's members, and what an attempt adds to them. No I/O.

use std::collections::{BTreeSet, HashMap};

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::limits::{ERROR_BYTES_MAX, ERRORS_PER_BATCH_MAX};
use fanfold::store::batches::Batch;
use fanfold::text::shorten;
use fanfold_batch_api::{Answer, CallError, MemberAnswer, MemberOutcome};

/// The text under which errors are counted once there are too many to keep each.
const FURTHER: &str = "further errors";

/// The error of a member that failed without a given reason.
const NO_REASON: &str = "failed, without an error message";

/// A slot to be tried again, and why.
pub(crate) type Retry = (usize, String);

/// The outcomes of a batch so far.
pub(crate) struct Outcomes {
    pub(crate) succeeded: Bits,
    pub(crate) failed: Bits,
    /// Slots for which some call may have worked, whatever else is known.
    silent: BTreeSet<usize>,
    pub(crate) errors: Vec<(String, Bits)>,
}

impl Outcomes {
    pub(crate) fn of(batch: &Batch) -> Self {
        let (succeeded, failed) = (batch.succeeded.clone(), batch.failed.clone());
        Self { succeeded, failed, silent: batch.silent.iter().collect(), errors: batch.errors.clone() }
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
            Err(error) if error.retriable || put_off => {
                return called.into_iter().map(|slot| (slot, error.message.clone())).collect();
            }
            Err(error) => called.into_iter().for_each(|slot| self.fail(slot, &error.message)),
        }
        Vec::new()
    }

    pub(crate) fn fail(&mut self, slot: usize, error: &str) {
        self.failed.set(slot);
        let error = if error.trim().is_empty() { NO_REASON } else { error };
        let error = shorten(error, ERROR_BYTES_MAX);
        let full = self.errors.len() >= ERRORS_PER_BATCH_MAX;
        let error = if full && !self.errors.iter().any(|(known, _)| *known == error) { FURTHER } else { &error };
        match self.errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, slots)) => slots.set(slot),
            None => self.errors.push((error.to_owned(), std::iter::once(slot).collect())),
        }
    }

    /// Slots without a success for which a call may have worked all the same.
    pub(crate) fn silent(&self) -> Bits {
        self.silent.iter().copied().filter(|slot| !self.succeeded.get(*slot)).collect()
    }

    /// Whether a slot has no outcome, in a batch in which it had none and was not dropped.
    pub(crate) fn is_open(&self, slot: usize) -> bool {
        !self.succeeded.get(slot) && !self.failed.get(slot)
    }

    /// Takes the outcomes of members; `problem`: what was unreadable. Returns those to be tried again.
    fn by_member(
        &mut self,
        batch: &Batch,
        called: Vec<usize>,
        members: Vec<MemberAnswer>,
        problem: Option<&str>,
    ) -> Vec<Retry> {
        // The first of two outcomes for one member counts.
        let mut reported: HashMap<TaskId, MemberAnswer> = HashMap::with_capacity(members.len());
        let mut stranger = None;
        for member in members {
            // An outcome for a task that is no member is ignored.
            if batch.members.slot(&member.id).is_none() {
                stranger.get_or_insert(member.id);
            }
            reported.entry(member.id).or_insert(member);
        }
        let unreported = match (problem, stranger) {
            (Some(problem), _) => format!("the answer has no outcome for it, and {problem}"),
            (None, Some(id)) => format!("the answer has no outcome for it, but one for {id}, which is no member"),
            (None, None) => "the answer has no outcome for it".to_owned(),
        };
        let mut retry = Vec::new();
        for slot in called {
            let Some(member) = batch.members.ids().get(slot).and_then(|id| reported.remove(id)) else {
                // The unreadable part may have been about this member.
                self.silent.extend(problem.map(|_| slot));
                retry.push((slot, unreported.clone()));
                continue;
            };
            let why = member.error.unwrap_or_else(|| NO_REASON.to_owned());
            match member.outcome {
                MemberOutcome::Succeeded => self.succeeded.set(slot),
                MemberOutcome::Failed => {
                    self.silent.remove(&slot);
                    self.fail(slot, &why);
                }
                // An earlier call without an answer may still have worked.
                MemberOutcome::Retry => retry.push((slot, why)),
                MemberOutcome::Unclear => {
                    self.silent.insert(slot);
                    retry.push((slot, why));
                }
            }
        }
        retry
    }
}
