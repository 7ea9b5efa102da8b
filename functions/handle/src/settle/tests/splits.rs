//! Batches that are called in parts.

use super::*;

/// The batch after an attempt, and the next attempt of it.
fn next(batch: Batch, result: Result<Answer, CallError>) -> Batch {
    let settlement = run(&batch, result);
    Batch {
        succeeded: settlement.succeeded,
        failed: settlement.failed,
        silent: settlement.silent,
        errors: settlement.errors,
        parts: settlement.parts,
        lost: batch.attempts - (batch.ended + 1),
        attempts: batch.attempts + 1,
        ended: batch.ended + 1,
        retry_at: settlement.retry_at,
        ..batch
    }
}

#[test]
fn a_batch_that_is_refused_is_called_in_halves_at_once() {
    let refused = || Err(CallError::for_good("422"));
    let first = next(batch(4, 1), refused());
    assert_eq!((first.called(), first.retry_at), (vec![0, 1], Some(Timestamp(1_000))));
    assert!(first.failed.is_zero() && first.succeeded.is_zero());
    // The first half works, so the second has the bad one: it is not called as a whole.
    let second = next(first, Ok(Answer::AllSucceeded));
    assert_eq!(second.called(), [2]);
    let last = next(next(second, refused()), Ok(Answer::AllSucceeded));
    assert_eq!(last.succeeded.iter().collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!((last.error(2), last.retry_at, last.parts.is_empty()), (Some("422"), None, true));
}

#[test]
fn a_fault_splits_when_attempts_are_used_up_and_counts_again_for_one_alone() {
    let fault = || Err(CallError::again("500"));
    let mut tried = batch(2, 1);
    for attempt in 1..3 {
        tried = next(tried, fault());
        assert!(tried.parts.is_empty() && tried.called() == [0, 1], "{attempt}");
    }
    // Each alone is called as often as the batch was, in turns.
    tried = next(tried, fault());
    for slot in [0, 1, 0, 1, 0, 1] {
        assert_eq!(tried.called(), [slot]);
        tried = next(tried, fault());
    }
    assert_eq!((tried.failed.count(), tried.retry_at, tried.ended), (2, None, 9));
    assert_eq!(tried.errors[0].0, "gave up after 3 attempts: 500");
}

#[test]
fn a_retry_after_holds_up_the_halves_too() {
    let retry_after = Some(RetryAfter::Delay(Duration::from_secs(60)));
    let error = CallError { retry_after, ..CallError::for_good("413") };
    let split = next(batch(4, 1), Err(error));
    assert_eq!((split.called(), split.retry_at), (vec![0, 1], Some(Timestamp(61_000))));
}

#[test]
fn a_half_without_an_answer_is_repeated_and_then_fails_alone() {
    let silence = || Err(CallError::new(Cause::Silence, "nothing"));
    let mut split = next(batch(4, 1), Err(CallError::for_good("400")));
    for _ in 0..2 {
        split = next(split, silence());
        assert_eq!(split.called(), [0, 1]);
        assert!(split.retry_at >= Some(Timestamp(2_000)), "the batch waits");
    }
    split = next(split, silence());
    assert_eq!((split.called(), split.failed.count(), split.silent.count()), (vec![2, 3], 2, 2));
    split = next(split, Ok(Answer::AllSucceeded));
    assert_eq!((split.succeeded.count(), split.silent.count(), split.retry_at), (2, 2, None));
}

/// A worker that was lost in the call of one part says nothing about the members of others.
#[test]
fn a_lost_worker_may_have_done_what_it_called_and_nothing_else() {
    let refused = || Err(CallError::for_good("400"));
    let lost = |batch: Batch, workers| Batch { attempts: batch.attempts + workers, ..batch };
    let first = lost(next(batch(4, 1), refused()), 1);
    let second = next(next(first.clone(), refused()), Ok(Answer::AllSucceeded));
    assert_eq!((second.called(), second.silent.iter().collect::<Vec<_>>()), (vec![1], vec![1]));
    let last = next(next(second, Ok(Answer::AllSucceeded)), refused());
    assert!(last.silent.is_zero(), "the others were never called by it: {last:?}");
    // Too many in a row fail those that they called.
    let killed = CallError { retriable: false, ..CallError::new(Cause::Silence, "workers were lost") };
    let killed = next(lost(first, 31), Err(killed));
    assert_eq!((killed.failed.iter().collect::<Vec<_>>(), killed.called()), (vec![0, 1], vec![2, 3]));
    assert_eq!(killed.lost_in_a_row(), 0);
}

#[test]
fn what_may_have_worked_is_not_called_in_halves_after_a_fault() {
    let silence = || Err(CallError::new(Cause::Silence, "nothing"));
    let fault = || Err(CallError::again("500"));
    let tried = next(next(next(batch(4, 1), silence()), fault()), fault());
    assert_eq!((tried.failed.count(), tried.silent.count(), tried.retry_at), (4, 4, None));
    let lost = Batch { attempts: 4, ended: 2, ..batch(4, 3) };
    assert_eq!((run(&lost, fault()).failed.count(), run(&lost, fault()).silent.count()), (4, 4));
    // A half, too, is called again as it is.
    let half = next(next(batch(4, 1), Err(CallError::for_good("400"))), silence());
    let half = next(half, fault());
    assert_eq!((half.called(), half.failed.count()), (vec![0, 1], 0));
    let half = next(half, fault());
    assert_eq!((half.called(), half.failed.count(), half.silent.count()), (vec![2, 3], 2, 2));
    // After an answer that is final there is nothing to repeat.
    let tried = next(next(batch(4, 1), silence()), Err(CallError::for_good("400")));
    assert_eq!((tried.called(), tried.silent.count()), (vec![0, 1], 4));
}

#[test]
fn after_a_fault_halves_wait_and_a_single_attempt_has_none() {
    let fault = || Err(CallError::again("500"));
    let split = next(batch(4, 3), fault());
    assert!(split.called() == [0, 1] && split.retry_at >= Some(Timestamp(2_000)), "{split:?}");
    let split = next(split, fault());
    assert!(split.called() == [0] && split.retry_at >= Some(Timestamp(2_000)), "{split:?}");
    let ended = EndedAttempt { result: fault(), gone: BTreeSet::new(), put_off: None };
    let single = settle(&batch(4, 1), ended, &policy(1), Timestamp(1_000), 0);
    assert_eq!((single.failed.count(), single.split, single.retry_at), (4, false, None));
    let ended = EndedAttempt { result: Err(CallError::for_good("400")), gone: BTreeSet::new(), put_off: None };
    assert!(settle(&batch(4, 1), ended, &policy(1), Timestamp(1_000), 0).split);
}

/// The other one's task is gone: the call was for one member, which is called again as often as any.
#[test]
fn a_part_with_one_member_left_is_repeated_after_a_fault() {
    let half = next(batch(4, 1), Err(CallError::for_good("400")));
    assert_eq!(half.called(), [0, 1]);
    let ended = EndedAttempt { result: Err(CallError::again("500")), gone: BTreeSet::from([0]), put_off: None };
    let settlement = settle(&half, ended, &policy(3), Timestamp(1_000), 0);
    assert_eq!((settlement.split, settlement.failed.count()), (false, 1));
    assert_eq!((settlement.parts.next(&[1]), settlement.parts.due(&[1])), ((vec![1], 1), Timestamp(2_000)));
}

#[test]
fn what_is_too_large_is_called_in_both_halves() {
    let split = next(batch(4, 1), Err(CallError::new(Cause::Status(413), "413")));
    assert_eq!(next(split, Ok(Answer::AllSucceeded)).called(), [2, 3]);
}

#[test]
fn only_calls_that_failed_count_as_split() {
    assert!(run(&batch(4, 1), Err(CallError::for_good("400"))).split);
    let half = next(batch(4, 1), Err(CallError::for_good("400")));
    let busy = Answer::Members(vec![member(0, MemberOutcome::Succeeded, None), member(1, MemberOutcome::Retry, None)]);
    assert!(!run(&half, Ok(busy)).split, "the second half is halved, but no call was");
    assert!(!run(&batch(1, 1), Err(CallError::for_good("400"))).split);
}

#[test]
fn a_refusal_of_every_call_leaves_the_parts_as_they_are() {
    let split = next(batch(4, 1), Err(CallError::for_good("400")));
    let put_off = Some(Timestamp(9_000));
    let busy = CallError::new(Cause::Status(429), "429");
    let ended = EndedAttempt { result: Err(busy), gone: BTreeSet::new(), put_off };
    let settlement = settle(&split, ended, &policy(3), Timestamp(1_000), 0);
    assert_eq!((&settlement.parts, settlement.refused), (&split.parts, 1));
    assert!(settlement.retry_at >= put_off);
    // Nothing can be called, or not for days: that concerns all parts.
    assert_eq!(next(split, Err(CallError::new(Cause::NotMade, "no"))).failed.count(), 4);
}
