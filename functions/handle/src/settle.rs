//! The outcomes and next attempt that follow from an attempt. No I/O.

use std::collections::BTreeSet;

use fanfold::backoff::Backoff;
use fanfold::clock::Timestamp;
use fanfold::grouping::{gave_up_waiting, waited_in_vain};
use fanfold::limits::{ERROR_BYTES_MAX, RETRY_AFTER_MAX};
use fanfold::policy::Policy;
use fanfold::store::batches::{Batch, Settlement};
use fanfold::text::shorten;
use fanfold_batch_api::{Answer, CallError};

use crate::outcomes::Outcomes;

/// How an attempt ended.
pub(crate) struct Ended {
    /// The result of the call.
    pub(crate) result: Result<Answer, CallError>,
    /// Slots whose task no longer exists.
    pub(crate) gone: BTreeSet<usize>,
    /// Set if the attempt does not count, as the batch API refuses every call: the next one is not before then.
    pub(crate) put_off: Option<Timestamp>,
}

/// Computes the batch's outcomes after an attempt, and when the next attempt is due.
pub(crate) fn settle(batch: &Batch, ended: Ended, policy: &Policy, now: Timestamp, random: u64) -> Settlement {
    let Ended { result, gone, put_off } = ended;
    let asked = result.as_ref().err().and_then(|error| error.retry_after);
    let asked = asked.map(|asked| asked.delay(now).min(RETRY_AFTER_MAX)).unwrap_or_default();
    let mut outcomes = Outcomes::of(batch);
    for slot in &gone {
        outcomes.fail(*slot, "the task's record is gone");
    }
    let called = batch.unsettled().into_iter().filter(|slot| !gone.contains(slot)).collect();
    let mut retry = outcomes.take(batch, called, result, put_off.is_some());
    let ended = batch.ended + 1;
    let refused = batch.refused + u32::from(put_off.is_some());
    let counted = ended.saturating_sub(refused);
    let gives_up = match put_off {
        None => counted >= policy.max_attempts,
        Some(_) => waited_in_vain(batch, now),
    };
    for (slot, error) in if gives_up { std::mem::take(&mut retry) } else { Vec::new() } {
        let error = match put_off {
            None => format!("gave up after {counted} attempts: {error}"),
            Some(_) => gave_up_waiting(&error),
        };
        outcomes.fail(slot, &error);
    }
    let delay = Backoff::from(&policy.backoff).after(ended, random).max(asked);
    Settlement {
        silent: outcomes.silent(),
        succeeded: outcomes.succeeded,
        failed: outcomes.failed,
        errors: outcomes.errors,
        last_error: retry.first().map(|(_, error)| shorten(error, ERROR_BYTES_MAX).into_owned()),
        refused,
        retry_at: if retry.is_empty() { None } else { Some(now.plus(delay).max(put_off.unwrap_or_default())) },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::bits::Bits;
    use fanfold::ids::TaskId;
    use fanfold::limits::ERRORS_PER_BATCH_MAX;
    use fanfold::members::Members;
    use fanfold::store::batches::BatchStatus;
    use fanfold_batch_api::{Cause, MemberAnswer, MemberOutcome, RetryAfter};
    use proptest::prelude::*;
    use std::time::Duration;
    use uuid::Uuid;

    fn id(number: usize) -> TaskId {
        TaskId::Single(Uuid::from_u128(number as u128))
    }

    fn batch(size: usize, attempts: u32) -> Batch {
        let members = Members::new((0..size).map(id));
        let batch = Batch::intended(Uuid::nil(), "parcel:0:NY".parse().unwrap(), members, Timestamp(0));
        Batch {
            status: BatchStatus::InProgress,
            attempts,
            ended: attempts.saturating_sub(1),
            lease_until: Some(Timestamp(1)),
            ..batch
        }
    }

    fn policy(max_attempts: u32) -> Policy {
        serde_json::from_value(serde_json::json!({
            "kind": "parcel", "target": "content.state", "batch_api": {"command": ["x"]},
            "max_attempts": max_attempts, "backoff": {"base": 2, "max": 10}
        }))
        .unwrap()
    }

    fn member(number: usize, outcome: MemberOutcome, error: Option<&str>) -> MemberAnswer {
        MemberAnswer { id: id(number), outcome, error: error.map(str::to_owned) }
    }

    fn run(batch: &Batch, result: Result<Answer, CallError>) -> Settlement {
        let ended = Ended { result, gone: BTreeSet::new(), put_off: None };
        settle(batch, ended, &policy(3), Timestamp(1_000), 0)
    }

    #[test]
    fn an_empty_answer_ends_the_batch() {
        let settlement = run(&batch(3, 1), Ok(Answer::AllSucceeded));
        assert_eq!((settlement.succeeded.count(), settlement.retry_at), (3, None));
        assert_eq!(settlement.last_error, None);
    }

    #[test]
    fn each_member_gets_its_own_outcome() {
        let answer = Answer::Members(vec![
            member(0, MemberOutcome::Succeeded, None),
            member(1, MemberOutcome::Failed, Some("too heavy")),
            member(2, MemberOutcome::Retry, None),
            member(9, MemberOutcome::Failed, Some("of another batch")),
            member(0, MemberOutcome::Failed, Some("reported twice")),
        ]);
        let settlement = run(&batch(4, 1), Ok(answer));
        assert_eq!(settlement.succeeded.iter().collect::<Vec<_>>(), [0]);
        assert_eq!(settlement.failed.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(settlement.errors.len(), 1);
        assert!(settlement.retry_at.is_some());
        assert_eq!(settlement.last_error.as_deref(), Some("failed, without an error message"));
    }

    #[test]
    fn a_refused_batch_waits_as_long_as_it_was_asked_to() {
        let day = 24 * 3_600;
        for (asked, waited) in [(7, 7), (3_600, 3_600), (day, day), (2 * day, day)] {
            let retry_after = Some(RetryAfter::Delay(Duration::from_secs(asked)));
            let error = CallError { retry_after, ..CallError::new(Cause::Status(429), "429") };
            let settlement = run(&batch(2, 1), Err(error));
            assert_eq!(settlement.retry_at, Some(Timestamp(1_000 + waited * 1_000)), "{asked}");
            assert_eq!(settlement.succeeded.count(), 0);
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
        // After silence, an answer for the whole batch does not show that the first call did nothing; one for a member does.
        let before = Batch { silent: Bits::ones(3), ..batch(3, 3) };
        assert_eq!(silent(&before, Err(CallError::for_good("400"))), [0, 1, 2]);
        let answer = vec![member(0, MemberOutcome::Failed, None), member(1, MemberOutcome::Succeeded, None)];
        assert_eq!(silent(&before, Ok(Answer::Members(answer))), [2]);
        let answer = (0..3).map(|slot| member(slot, MemberOutcome::Retry, None)).collect();
        assert_eq!(silent(&before, Ok(Answer::Members(answer))), [0, 1, 2]);
        assert!(silent(&before, Ok(Answer::AllSucceeded)).is_empty());
        // A worker was lost: the result of its call is unknown.
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
    fn members_of_an_unclear_answer_say_what_was_unclear() {
        let unclear = MemberAnswer { id: id(1), outcome: MemberOutcome::Unclear, error: Some("`DONE`".to_owned()) };
        let members = vec![member(0, MemberOutcome::Failed, None), unclear];
        let answer = Answer::Unclear { members, problem: "its entry 7 names no task".to_owned() };
        let settlement = run(&batch(3, 3), Ok(answer));
        let errors: BTreeSet<&str> = settlement.errors.iter().map(|(error, _)| error.as_str()).collect();
        assert!(errors.contains("gave up after 3 attempts: `DONE`"), "{errors:?}");
        let unreported = "gave up after 3 attempts: the answer has no outcome for it, and its entry 7 names no task";
        assert!(errors.contains(unreported), "{errors:?}");
        assert_eq!(settlement.silent.iter().collect::<Vec<_>>(), [1, 2], "they may have worked");

        let stranger = Answer::Members(vec![member(9, MemberOutcome::Succeeded, None)]);
        let settlement = run(&batch(1, 3), Ok(stranger));
        let error = &settlement.errors[0].0;
        assert!(error.ends_with(&format!("but one for {}, which is no member", id(9))), "{error}");
        assert!(settlement.silent.is_zero());
    }

    #[test]
    fn long_and_many_errors_are_bounded() {
        let answer = (0..100).map(|n| member(n, MemberOutcome::Failed, Some(&format!("é{n:0>300}")))).collect();
        let settlement = run(&batch(100, 1), Ok(Answer::Members(answer)));
        assert!(settlement.errors.len() <= ERRORS_PER_BATCH_MAX + 1);
        assert!(settlement.errors.iter().all(|(error, _)| error.len() <= ERROR_BYTES_MAX));
        assert_eq!(settlement.errors.iter().map(|(_, slots)| slots.count()).sum::<u64>(), 100);
    }

    proptest! {
        /// Whatever the answer, every member ends in one outcome within the attempts allowed, and none changes it.
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
                (batch.succeeded, batch.failed, batch.errors) = (settlement.succeeded, settlement.failed, settlement.errors);
                prop_assert_eq!(settlement.retry_at.is_none(), batch.unsettled().is_empty());
            }
            prop_assert!(batch.unsettled().is_empty());
            let explained: u64 = batch.errors.iter().map(|(_, slots)| slots.count()).sum();
            prop_assert_eq!(explained, batch.failed.count());
        }
    }
}
