//! The outcomes of a batch's members, and what an attempt adds to them. No I/O.

use std::collections::{BTreeSet, HashMap};

use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::limits::{ERROR_BYTES_MAX, ERRORS_PER_BATCH_MAX};
use fanfold::store::batches::Batch;
use fanfold::text::shorten;
use fanfold_batch_api::{Answer, CallError, MemberAnswer, MemberOutcome};

/// Where errors are counted that are too many to be kept apart.
const FURTHER: &str = "further errors";

/// What is said of a member that failed for no reason given.
const NO_REASON: &str = "failed, without an error message";

/// A slot to be tried again, and why.
pub(crate) type Retry = (usize, String);

/// The outcomes of a batch so far.
pub(crate) struct Outcomes {
    pub(crate) succeeded: Bits,
    pub(crate) failed: Bits,
    dropped: u64,
    /// Slots of which some call may have worked, whatever else is known of them.
    silent: BTreeSet<usize>,
    pub(crate) errors: Vec<(String, Bits)>,
}

impl Outcomes {
    pub(crate) fn of(batch: &Batch) -> Self {
        let (succeeded, failed) = (batch.succeeded.clone(), batch.failed.clone());
        Self {
            succeeded,
            failed,
            dropped: batch.dropped.count(),
            silent: batch.silent.iter().collect(),
            errors: batch.errors.clone(),
        }
    }

    /// Takes what the call for these slots brought. Returns who is to be tried again; `put_off`: whatever was said, they are.
    pub(crate) fn take(
        &mut self,
        batch: &Batch,
        called: Vec<usize>,
        result: Result<Answer, CallError>,
        put_off: bool,
    ) -> Vec<Retry> {
        // Of an attempt that was lost with its worker nobody knows what it did.
        if batch.lost_an_attempt() || result.as_ref().is_err_and(|error| !error.cause.answered()) {
            self.silent.extend(&called);
        }
        match result {
            Ok(Answer::AllSucceeded) => called.into_iter().for_each(|slot| self.succeeded.set(slot)),
            Ok(Answer::Members(members)) => return self.tell(batch, called, members, None),
            Ok(Answer::Unclear { members, problem }) => return self.tell(batch, called, members, Some(&problem)),
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

    /// Slots that did not succeed, and of which a call may have worked all the same.
    pub(crate) fn silent(&self) -> Bits {
        self.silent.iter().copied().filter(|slot| !self.succeeded.get(*slot)).collect()
    }

    pub(crate) fn settled(&self) -> usize {
        usize::try_from(self.succeeded.count() + self.failed.count() + self.dropped).unwrap_or(usize::MAX)
    }

    /// Takes the outcomes of members; `problem`: what could not be read.
    fn tell(
        &mut self,
        batch: &Batch,
        called: Vec<usize>,
        members: Vec<MemberAnswer>,
        problem: Option<&str>,
    ) -> Vec<Retry> {
        // Of two outcomes for one member the first counts.
        let mut told: HashMap<TaskId, MemberAnswer> = HashMap::with_capacity(members.len());
        let mut stranger = None;
        for member in members {
            // Outcomes for others are no concern of this batch.
            if batch.members.slot(&member.id).is_none() {
                stranger.get_or_insert(member.id);
            }
            told.entry(member.id).or_insert(member);
        }
        let untold = match (problem, stranger) {
            (Some(problem), _) => format!("the answer has no outcome for it, and {problem}"),
            (None, Some(id)) => format!("the answer has no outcome for it, but one for {id}, which is no member"),
            (None, None) => "the answer has no outcome for it".to_owned(),
        };
        let mut retry = Vec::new();
        for slot in called {
            let Some(member) = batch.members.ids().get(slot).and_then(|id| told.remove(id)) else {
                // What could not be read may have been about it.
                self.silent.extend(problem.map(|_| slot));
                retry.push((slot, untold.clone()));
                continue;
            };
            let why = member.error.unwrap_or_else(|| NO_REASON.to_owned());
            match member.outcome {
                MemberOutcome::Succeeded => self.succeeded.set(slot),
                MemberOutcome::Failed => {
                    self.silent.remove(&slot);
                    self.fail(slot, &why);
                }
                // It does not say that an earlier call, which nobody heard of, did nothing.
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
