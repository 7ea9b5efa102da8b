//! What an attempt leaves behind. No I/O.

use std::collections::{BTreeSet, HashMap};

use fanfold::backoff::Backoff;
use fanfold::bits::Bits;
use fanfold::clock::Timestamp;
use fanfold::limits::{ERROR_BYTES, ERRORS_PER_BATCH, RETRY_AFTER_MAX};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, Settlement};
use fanfold::text::shorten;

use crate::api::{Answer, CallError, MemberAnswer, MemberOutcome, RetryAfter};

/// Where errors are counted that are too many to be kept apart.
const FURTHER: &str = "further errors";

/// Works out what an attempt leaves behind. `gone`: slots whose task no longer exists.
pub(crate) fn settle(
    batch: &Batch,
    result: Result<Answer, CallError>,
    gone: &BTreeSet<usize>,
    policy: &Policy,
    now: Timestamp,
    random: u64,
) -> Settlement {
    let mut outcomes = Outcomes::of(batch);
    let mut retry: Vec<(usize, String)> = Vec::new();
    let mut retry_after = None;
    for slot in gone {
        outcomes.fail(*slot, "the task's record is gone");
    }
    let called = batch.unsettled().into_iter().filter(|slot| !gone.contains(slot));
    // Of an attempt that was lost with its worker nobody knows what it did.
    let lost = batch.attempts > batch.ended + 1;
    if lost || result.as_ref().is_err_and(|error| !error.cause.answered()) {
        outcomes.silent.extend(called.clone());
    }
    match result {
        Ok(Answer::AllSucceeded) => called.for_each(|slot| outcomes.succeeded.set(slot)),
        Ok(Answer::Members(members)) => {
            // Of two outcomes for one member the first counts; those for others are no concern of this batch.
            let mut told: HashMap<_, MemberAnswer> = HashMap::with_capacity(members.len());
            members.into_iter().for_each(|member| {
                told.entry(member.id).or_insert(member);
            });
            for slot in called {
                let member = batch.members.ids().get(slot).and_then(|id| told.remove(id));
                let error = |error: Option<String>| error.unwrap_or_else(|| "failed, no error was told".to_owned());
                if member.is_some() {
                    outcomes.silent.remove(&slot);
                }
                match member.map(|member| (member.outcome, member.error)) {
                    Some((MemberOutcome::Succeeded, _)) => outcomes.succeeded.set(slot),
                    Some((MemberOutcome::Failed, why)) => outcomes.fail(slot, &error(why)),
                    Some((MemberOutcome::Retry, why)) => retry.push((slot, error(why))),
                    None => retry.push((slot, "the answer tells no outcome for it".to_owned())),
                }
            }
        }
        Err(error) if error.retriable => {
            retry_after = error.retry_after;
            retry = called.map(|slot| (slot, error.message.clone())).collect();
        }
        Err(error) => called.for_each(|slot| outcomes.fail(slot, &error.message)),
    }
    let ended = batch.ended + 1;
    let exhausted = ended >= policy.max_attempts;
    if exhausted {
        for (slot, error) in retry.drain(..) {
            outcomes.fail(slot, &format!("gave up after {ended} attempts: {error}"));
        }
    }
    let settled_some = outcomes.settled() > batch.members.len() - batch.unsettled().len();
    let asked = retry_after.map(|asked: RetryAfter| asked.delay(now).min(RETRY_AFTER_MAX)).unwrap_or_default();
    let delay = Backoff::from(&policy.backoff).after(ended, random).max(asked);
    Settlement {
        silent: outcomes.silent.into_iter().filter(|slot| !outcomes.succeeded.get(*slot)).collect(),
        succeeded: outcomes.succeeded,
        failed: outcomes.failed,
        errors: outcomes.errors,
        rounds: batch.rounds + u32::from(settled_some && !retry.is_empty()),
        retry_at: if retry.is_empty() { None } else { Some(now.plus(delay)) },
    }
}

/// The outcomes of a batch so far.
struct Outcomes {
    succeeded: Bits,
    failed: Bits,
    silent: BTreeSet<usize>,
    errors: Vec<(String, Bits)>,
}

impl Outcomes {
    fn of(batch: &Batch) -> Self {
        let (succeeded, failed) = (batch.succeeded.clone(), batch.failed.clone());
        Self { succeeded, failed, silent: batch.silent.iter().collect(), errors: batch.errors.clone() }
    }

    fn fail(&mut self, slot: usize, error: &str) {
        self.failed.set(slot);
        let error = if error.trim().is_empty() { "failed, no error was told" } else { error };
        let error = shorten(error, ERROR_BYTES);
        let full = self.errors.len() >= ERRORS_PER_BATCH;
        let error = if full && !self.errors.iter().any(|(known, _)| *known == error) { FURTHER } else { &error };
        match self.errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, slots)) => slots.set(slot),
            None => self.errors.push((error.to_owned(), std::iter::once(slot).collect())),
        }
    }

    fn settled(&self) -> usize {
        usize::try_from(self.succeeded.count() + self.failed.count()).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::api::Cause;
    use fanfold::ids::TaskId;
    use fanfold::members::Members;
    use fanfold::store::batches::BatchStatus;
    use fanfold::store::telling::Telling;
    use proptest::prelude::*;
    use std::time::Duration;
    use uuid::Uuid;

    fn id(number: usize) -> TaskId {
        TaskId::Single(Uuid::from_u128(number as u128))
    }

    fn batch(size: usize, attempts: u32) -> Batch {
        Batch {
            id: Uuid::nil(),
            lane: "parcel:0:NY".parse().unwrap(),
            status: BatchStatus::InProgress,
            members: Members::new((0..size).map(id)),
            attempts,
            ended: attempts.saturating_sub(1),
            rounds: 0,
            lease_until: Some(Timestamp(1)),
            retry_at: None,
            reminded_at: None,
            succeeded: Bits::default(),
            failed: Bits::default(),
            silent: Bits::default(),
            errors: Vec::new(),
            telling: Telling::default(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        }
    }

    fn policy(max_attempts: u32) -> Policy {
        serde_json::from_value(serde_json::json!({
            "kind": "parcel", "target": "content.state", "handler": {"command": ["x"]},
            "max_attempts": max_attempts, "backoff": {"base": 2, "max": 10}
        }))
        .unwrap()
    }

    fn member(number: usize, outcome: MemberOutcome, error: Option<&str>) -> MemberAnswer {
        MemberAnswer { id: id(number), outcome, error: error.map(str::to_owned) }
    }

    fn run(batch: &Batch, result: Result<Answer, CallError>) -> Settlement {
        settle(batch, result, &BTreeSet::new(), &policy(3), Timestamp(1_000), 0)
    }

    #[test]
    fn an_empty_answer_ends_the_batch() {
        let settlement = run(&batch(3, 1), Ok(Answer::AllSucceeded));
        assert_eq!((settlement.succeeded.count(), settlement.retry_at, settlement.rounds), (3, None, 0));
    }

    #[test]
    fn outcomes_are_told_apart() {
        let answer = Answer::Members(vec![
            member(0, MemberOutcome::Succeeded, None),
            member(1, MemberOutcome::Failed, Some("too heavy")),
            member(2, MemberOutcome::Retry, None),
            member(9, MemberOutcome::Failed, Some("of another batch")),
            member(0, MemberOutcome::Failed, Some("told twice")),
        ]);
        let settlement = run(&batch(4, 1), Ok(answer));
        assert_eq!(settlement.succeeded.iter().collect::<Vec<_>>(), [0]);
        assert_eq!(settlement.failed.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(settlement.errors.len(), 1);
        assert_eq!(settlement.rounds, 1);
        assert!(settlement.retry_at.is_some());
    }

    #[test]
    fn a_refused_batch_waits_as_long_as_it_was_asked_to() {
        let day = 24 * 3_600;
        for (asked, waited) in [(7, 7), (3_600, 3_600), (day, day), (2 * day, day)] {
            let retry_after = Some(RetryAfter::Delay(Duration::from_secs(asked)));
            let error = CallError { retry_after, ..CallError::new(Cause::Status(429), "429") };
            let settlement = run(&batch(2, 1), Err(error));
            assert_eq!(settlement.retry_at, Some(Timestamp(1_000 + waited * 1_000)), "{asked}");
            assert_eq!((settlement.rounds, settlement.succeeded.count()), (0, 0));
        }
        // The policy's own pause is the least.
        let error = CallError { retry_after: Some(RetryAfter::At(Timestamp(1_500))), ..CallError::again("503") };
        assert_eq!(run(&batch(2, 1), Err(error)).retry_at, Some(Timestamp(2_000)));
    }

    #[test]
    fn who_failed_without_a_clear_answer_is_known() {
        let silent = |batch: &Batch, result| run(batch, result).silent.iter().collect::<Vec<_>>();
        let unanswered = || CallError::new(Cause::Silence, "time-out");
        // Failed by silence, and by an answer.
        assert_eq!(silent(&batch(2, 3), Err(unanswered())), [0, 1]);
        assert!(silent(&batch(2, 3), Err(CallError::again("500"))).is_empty());
        assert!(silent(&batch(2, 1), Err(CallError::for_good("400"))).is_empty());
        // Once silent, what is told of the whole batch does not say that the first call did not work; of a member it does.
        let before = Batch { silent: Bits::ones(3), ..batch(3, 3) };
        assert_eq!(silent(&before, Err(CallError::for_good("400"))), [0, 1, 2]);
        let answer = vec![member(0, MemberOutcome::Failed, None), member(1, MemberOutcome::Succeeded, None)];
        assert_eq!(silent(&before, Ok(Answer::Members(answer))), [2]);
        assert!(silent(&before, Ok(Answer::AllSucceeded)).is_empty());
        // A worker was lost: nobody knows what its call did.
        let before = Batch { ended: 1, ..batch(2, 3) };
        assert_eq!(silent(&before, Err(CallError::for_good("400"))), [0, 1]);
    }

    #[test]
    fn the_last_attempt_fails_what_is_left() {
        let settlement = run(&batch(2, 3), Err(CallError::again("503")));
        assert_eq!((settlement.failed.count(), settlement.retry_at), (2, None));
        assert_eq!(settlement.errors[0].0, "gave up after 3 attempts: 503");
        assert_eq!(run(&batch(2, 1), Err(CallError::for_good("404"))).failed.count(), 2);
    }

    #[test]
    fn long_and_many_errors_are_bounded() {
        let answer = (0..100).map(|n| member(n, MemberOutcome::Failed, Some(&format!("é{n:0>300}")))).collect();
        let settlement = run(&batch(100, 1), Ok(Answer::Members(answer)));
        assert!(settlement.errors.len() <= ERRORS_PER_BATCH + 1);
        assert!(settlement.errors.iter().all(|(error, _)| error.len() <= ERROR_BYTES));
        assert_eq!(settlement.errors.iter().map(|(_, slots)| slots.count()).sum::<u64>(), 100);
    }

    proptest! {
        /// Whatever is answered, every member ends in one outcome within the attempts allowed, and none changes it.
        #[test]
        fn every_member_ends_once(size in 1_usize..40, answers in prop::collection::vec(
            prop::option::of(prop::collection::vec((0_usize..45, 0_u8..4), 0..60)), 3..4)
        ) {
            let mut batch = batch(size, 0);
            for answer in answers {
                if batch.unsettled().is_empty() {
                    break;
                }
                batch.attempts += 1;
                batch.ended = batch.attempts - 1;
                let result = answer.map_or_else(|| Err(CallError::again("503")), |members| {
                    Ok(Answer::Members(members.into_iter().map(|(number, outcome)| member(number, match outcome {
                        0 => MemberOutcome::Succeeded,
                        1 => MemberOutcome::Failed,
                        _ => MemberOutcome::Retry,
                    }, None)).collect()))
                });
                let settlement = run(&batch, result);
                prop_assert_eq!(settlement.succeeded.and(&batch.succeeded).count(), batch.succeeded.count());
                prop_assert_eq!(settlement.failed.and(&batch.failed).count(), batch.failed.count());
                prop_assert!(settlement.succeeded.and(&settlement.failed).is_zero());
                prop_assert!(settlement.rounds >= batch.rounds);
                (batch.succeeded, batch.failed, batch.errors) = (settlement.succeeded, settlement.failed, settlement.errors);
                batch.rounds = settlement.rounds;
                prop_assert_eq!(settlement.retry_at.is_none(), batch.unsettled().is_empty());
            }
            prop_assert!(batch.unsettled().is_empty());
            let explained: u64 = batch.errors.iter().map(|(_, slots)| slots.count()).sum();
            prop_assert_eq!(explained, batch.failed.count());
        }
    }
}
