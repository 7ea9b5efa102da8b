//! What follows from attempts.

mod posted;
mod splits;

use super::*;
use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::limits::{CODES_PER_BATCH_MAX, ERRORS_PER_BATCH_MAX};
use fanfold::members::Members;
use fanfold::store::batches::BatchStatus;
use fanfold_batch_api::{MemberAnswer, MemberOutcome, RetryAfter};
use proptest::prelude::*;
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
    MemberAnswer { error: error.map(str::to_owned), ..MemberAnswer::new(id(number), outcome) }
}

fn settle(batch: &Batch, ended: EndedAttempt, policy: &Policy, now: Timestamp, random: u64) -> Settlement {
    settle_call(batch, &batch.asked(), ended, policy, Moment { now, random })
}

fn run(batch: &Batch, result: Result<Answer, CallError>) -> Settlement {
    let ended = EndedAttempt { result, gone: BTreeSet::new(), put_off: None };
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
        member(0, MemberOutcome::Succeeded, Some("reported twice, and the same")),
    ]);
    let settlement = run(&batch(4, 1), Ok(answer));
    assert_eq!(settlement.succeeded.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(settlement.failed.iter().collect::<Vec<_>>(), [1]);
    assert_eq!(settlement.errors.len(), 1);
    assert!(settlement.retry_at.is_some());
    assert_eq!(settlement.last_error.as_deref(), Some("failed, without an error message"));
}

/// The answer does not say which of them holds.
#[test]
fn a_member_with_several_outcomes_is_called_again_and_may_have_worked() {
    let answer = Answer::Members(vec![
        member(0, MemberOutcome::Succeeded, None),
        member(0, MemberOutcome::Failed, Some("too heavy")),
        member(1, MemberOutcome::Succeeded, None),
    ]);
    let settlement = run(&batch(2, 1), Ok(answer));
    assert_eq!(settlement.succeeded.iter().collect::<Vec<_>>(), [1]);
    assert_eq!((settlement.failed.count(), settlement.silent.iter().collect::<Vec<_>>()), (0, vec![0]));
    assert_eq!(settlement.last_error.as_deref(), Some("the answer has several outcomes for it"));
}

#[test]
fn the_next_attempt_is_not_before_the_longest_delay_that_a_member_asks_for() {
    let asks = |number, seconds| MemberAnswer {
        retry_after: Some(Duration::from_secs(seconds)),
        ..member(number, MemberOutcome::Retry, None)
    };
    let wait = |answers| run(&batch(2, 1), Ok(Answer::Members(answers))).retry_at.unwrap().since(Timestamp(1_000));
    assert_eq!(wait(vec![asks(0, 40), asks(1, 50)]), Duration::from_secs(50));
    assert_eq!(wait(vec![asks(0, 0), asks(1, 0)]), Duration::from_secs(1), "nor before the backoff is over");
    assert_eq!(wait(vec![asks(0, u64::MAX)]), RETRY_AFTER_MAX);
    assert_eq!(wait(vec![asks(0, 30), MemberAnswer { outcome: MemberOutcome::Failed, ..asks(0, 20) }]).as_secs(), 30);
    let unclear = MemberAnswer { outcome: MemberOutcome::Unclear, ..asks(0, 30) };
    assert_eq!(wait(vec![unclear, asks(1, 20)]), Duration::from_secs(30));
}

#[test]
fn codes_are_kept_by_slot_and_only_so_many() {
    let coded = |number: usize| MemberAnswer {
        code: Some(format!("E{}", number % 20)),
        ..member(number, MemberOutcome::Failed, Some("no"))
    };
    let settlement = run(&batch(40, 1), Ok(Answer::Members((0..40).map(coded).collect())));
    assert_eq!((settlement.codes.len(), settlement.failed.count()), (CODES_PER_BATCH_MAX, 40));
    assert_eq!(settlement.codes[3], ("E3".to_owned(), Bits::from_iter([3, 23])));
}

#[test]
fn results_are_kept_if_the_policy_says_so() {
    let answer = || {
        let result = Some("7".to_owned());
        Ok(Answer::Members(vec![MemberAnswer { result, ..member(1, MemberOutcome::Succeeded, None) }]))
    };
    assert_eq!(run(&batch(2, 1), answer()).results, []);
    let keeping = Policy { keep_results: true, ..policy(3) };
    let ended = EndedAttempt { result: answer(), gone: BTreeSet::new(), put_off: None };
    let settlement = settle(&batch(2, 1), ended, &keeping, Timestamp(1_000), 0);
    assert_eq!(settlement.results, [(1, "7".to_owned())]);
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
fn pauses_double_with_attempts_that_count_and_apart_from_them_with_those_that_do_not() {
    let seconds = |batch: &Batch, error: CallError, put_off: Option<Timestamp>| {
        let ended = EndedAttempt { result: Err(error), gone: BTreeSet::new(), put_off };
        settle(batch, ended, &policy(9), Timestamp(0), 0).retry_at.unwrap().0 / 1_000
    };
    let failed = |attempts, refused| {
        seconds(&Batch { refused, ..batch(1, attempts) }, CallError::new(Cause::Status(500), "500"), None)
    };
    assert_eq!([failed(1, 0), failed(2, 0), failed(3, 0), failed(4, 0)], [1, 2, 4, 5]);
    assert_eq!([failed(2, 1), failed(3, 1), failed(9, 8)], [1, 2, 1]);
    let refused = |attempts, refused| {
        let batch = Batch { refused, ..batch(1, attempts) };
        seconds(&batch, CallError::new(Cause::Status(429), "429"), Some(Timestamp(0)))
    };
    assert_eq!([refused(1, 0), refused(2, 1), refused(3, 2), refused(4, 3)], [1, 2, 4, 5]);
    assert_eq!([refused(2, 0), refused(4, 1), refused(9, 0)], [1, 2, 1]);
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
    for (members, error) in [
        (1, CallError::again("500")),
        (2, CallError::new(Cause::Status(503), "500")),
        (2, CallError::new(Cause::Silence, "500")),
    ] {
        let settlement = run(&batch(members, 3), Err(error));
        assert_eq!((settlement.failed.count() as usize, settlement.retry_at), (members, None));
        assert_eq!(settlement.errors[0].0, "gave up after 3 attempts: 500");
        assert!(settlement.parts.is_empty());
    }
    assert_eq!(run(&batch(1, 1), Err(CallError::for_good("400"))).failed.count(), 1);
    assert_eq!(run(&batch(2, 1), Err(CallError::new(Cause::Status(404), "404"))).failed.count(), 2);
    assert_eq!(run(&batch(2, 1), Err(CallError::new(Cause::NotMade, "no"))).failed.count(), 2);
}

#[test]
fn members_of_an_unclear_answer_say_what_was_unclear() {
    let unclear = MemberAnswer { error: Some("`DONE`".to_owned()), ..MemberAnswer::new(id(1), MemberOutcome::Unclear) };
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
    assert!(error.ends_with(&format!("but one for {}, which is not a member", id(9))), "{error}");
    assert!(settlement.silent.is_zero());
}

#[test]
fn long_and_many_errors_are_bounded() {
    let answer = (0..100).map(|n| member(n, MemberOutcome::Failed, Some(&format!("é{n:0>300}")))).collect();
    let settlement = run(&batch(100, 1), Ok(Answer::Members(answer)));
    assert!(settlement.errors.len() <= ERRORS_PER_BATCH_MAX + 1);
    let further = format!("not kept: a batch keeps {ERRORS_PER_BATCH_MAX} different errors");
    assert_eq!(settlement.errors.last().map(|(error, _)| error), Some(&further));
    assert!(settlement.errors.iter().all(|(error, _)| error.len() <= ERROR_BYTES_MAX));
    assert_eq!(settlement.errors.iter().map(|(_, slots)| slots.count()).sum::<u64>(), 100);
}

proptest! {
    /// Whatever the answers, every member ends in one outcome within the attempts allowed, and none changes it.
    #[test]
    fn every_member_ends_once(size in 1_usize..40, answers in prop::collection::vec(
        prop::option::of(prop::collection::vec((0_usize..45, 0_u8..4), 0..60)), 1..7), faults in prop::collection::vec(0_u8..3, 1..7)
    ) {
        let mut batch = batch(size, 0);
        let mut faults = faults.iter().cycle();
        let mut answers = answers.iter().cycle();
        while !batch.unsettled().is_empty() {
            prop_assert!(batch.attempts < 3 * 2 * 40, "calls end");
            batch.attempts += 1;
            batch.ended = batch.attempts - 1;
            let result = match answers.next().unwrap() {
                None => Err(match faults.next().unwrap() {
                    0 => CallError::again("500"),
                    1 => CallError::for_good("400"),
                    _ => CallError::new(Cause::Silence, "nothing"),
                }),
                Some(members) => Ok(Answer::Members(members.iter().map(|(number, outcome)| {
                    let outcome = match outcome {
                        0 => MemberOutcome::Succeeded,
                        1 => MemberOutcome::Failed,
                        _ => MemberOutcome::Retry,
                    };
                    member(*number, outcome, None)
                }).collect())),
            };
            let called: BTreeSet<usize> = batch.called().into_iter().collect();
            prop_assert!(called.iter().all(|slot| batch.unsettled().contains(slot)) && !called.is_empty());
            let settlement = run(&batch, result);
            prop_assert_eq!(settlement.succeeded.and(&batch.succeeded).count(), batch.succeeded.count());
            prop_assert_eq!(settlement.failed.and(&batch.failed).count(), batch.failed.count());
            prop_assert!(settlement.succeeded.and(&settlement.failed).is_zero());
            let new = settlement.succeeded.iter().chain(settlement.failed.iter());
            let others = new.filter(|slot| batch.unsettled().contains(slot) && !called.contains(slot)).count();
            prop_assert_eq!(others, 0, "only who was called gets an outcome");
            (batch.succeeded, batch.failed, batch.errors) = (settlement.succeeded, settlement.failed, settlement.errors);
            (batch.silent, batch.parts) = (settlement.silent, settlement.parts);
            prop_assert_eq!(settlement.retry_at.is_none(), batch.unsettled().is_empty());
        }
        let explained: u64 = batch.errors.iter().map(|(_, slots)| slots.count()).sum();
        prop_assert_eq!(explained, batch.failed.count());
        prop_assert!(batch.parts.is_empty());
    }
}

#[test]
fn refusals_last_from_the_first_one_until_an_attempt_counts() {
    let refused = |batch: &Batch| {
        let result = Err(CallError::new(Cause::Status(429), "429"));
        let ended = EndedAttempt { result, gone: BTreeSet::new(), put_off: Some(Timestamp(5_000)) };
        settle(batch, ended, &policy(3), Timestamp(1_000), 0).refused_since
    };
    let first = Batch { begun_at: Some(Timestamp(900)), ..batch(2, 1) };
    let again = Batch { refused_since: Some(Timestamp(3)), ..first.clone() };
    assert_eq!((refused(&first), refused(&again)), (Some(Timestamp(900)), Some(Timestamp(3))));
    assert_eq!(refused(&Batch { dev_session: Some(Uuid::nil()), ..first }), None, "a session says nothing of it");
    assert_eq!(run(&again, Err(CallError::again("500"))).refused_since, None);
}
