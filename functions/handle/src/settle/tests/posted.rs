//! What was posted before an attempt ends, or while its call is made.

use super::*;

/// A batch whose call for its first three members is open: one of each has come.
fn open() -> Batch {
    let later = fanfold::store::batches::Later { until: Timestamp(900), asked: Bits::ones(3), poll: None };
    Batch {
        lease_until: None,
        later: Some(later),
        succeeded: Bits::from_iter([0]),
        again: Bits::from_iter([1]),
        again_at: Some(Timestamp(90_000)),
        errors: vec![("busy".to_owned(), Bits::from_iter([1]))],
        codes: vec![("B".to_owned(), Bits::from_iter([1]))],
        ..batch(3, 1)
    }
}

#[test]
fn what_was_posted_as_to_be_tried_again_is_no_failure_and_waits_as_long_as_asked() {
    let all = Batch { failed: Bits::from_iter([2]), ..open() };
    let settlement = run(&all, Ok(Answer::Members(Vec::new())));
    assert_eq!(settlement.retry_at, Some(Timestamp(90_000)));
    assert_eq!((settlement.succeeded.count(), settlement.failed.count(), settlement.silent.count()), (1, 1, 0));
    assert_eq!((settlement.last_error.as_deref(), settlement.codes.len()), (Some("busy"), 0));
    let last = Batch { attempts: 3, ended: 2, ..all };
    let settlement = run(&last, Ok(Answer::Members(Vec::new())));
    assert_eq!((settlement.retry_at, settlement.failed.count()), (None, 2));
    assert!(settlement.errors.contains(&("gave up after 3 attempts: busy".to_owned(), Bits::from_iter([1]))));
    assert_eq!(settlement.codes, [("B".to_owned(), Bits::from_iter([1]))]);
}

#[test]
fn at_the_deadline_only_who_was_not_heard_of_may_have_worked() {
    let settlement = run(&open(), Err(CallError::new(Cause::Silence, "no outcome came within 1h")));
    assert_eq!(settlement.silent.iter().collect::<Vec<_>>(), [2]);
    assert_eq!((settlement.succeeded.count(), settlement.failed.count()), (1, 0));
    assert!(settlement.retry_at.is_some() && settlement.parts.is_empty());
}

#[test]
fn the_answer_to_the_call_counts_more_than_a_posted_retry() {
    let running = Batch { later: None, lease_until: Some(Timestamp(1)), ..open() };
    let ended = |result| {
        let ended = EndedAttempt { result, gone: BTreeSet::new(), put_off: None };
        settle_call(&running, &[0, 1, 2], ended, &policy(3), Moment { now: Timestamp(1_000), random: 0 })
    };
    let settlement = ended(Ok(Answer::AllSucceeded));
    assert_eq!((settlement.succeeded.count(), settlement.retry_at, settlement.errors.len()), (3, None, 0));
    let named = vec![member(1, MemberOutcome::Failed, Some("too heavy"))];
    let settlement = ended(Ok(Answer::Members(named)));
    assert_eq!(settlement.failed, Bits::from_iter([1]));
    assert_eq!(settlement.errors, [("too heavy".to_owned(), Bits::from_iter([1]))]);
}

/// Outcomes that come while a part is called do not change which part that was.
#[test]
fn a_part_whose_members_all_came_is_the_one_that_was_called() {
    let parts = Parts::split(&[0, 1, 2, 3, 4, 5], Shows::Fails);
    let split = Batch { parts, ..batch(6, 2) };
    assert_eq!(split.called(), [0, 1, 2]);
    let come = Batch { succeeded: Bits::ones(3), ..split };
    let ended = EndedAttempt { result: Ok(Answer::Members(Vec::new())), gone: BTreeSet::new(), put_off: None };
    let settlement = settle_call(&come, &[0, 1, 2], ended, &policy(3), Moment { now: Timestamp(1_000), random: 0 });
    let next = Batch { parts: settlement.parts, ..come };
    assert_eq!(next.called(), [3], "the first half works, so the second is halved uncalled");
}

/// What is posted while a call is made does not make it one for a single member.
#[test]
fn a_call_that_was_for_several_is_split_although_all_others_have_come() {
    let come = Batch { failed: Bits::from_iter([0]), ..batch(2, 1) };
    let ended = |result| EndedAttempt { result, gone: BTreeSet::new(), put_off: None };
    let settle = |batch: &Batch, result| {
        settle_call(batch, &[0, 1], ended(result), &policy(3), Moment { now: Timestamp(1_000), random: 0 })
    };
    let settlement = settle(&come, Err(CallError::for_good("400")));
    assert_eq!((settlement.failed.clone(), settlement.split), (Bits::from_iter([0]), true));
    let next = Batch { parts: settlement.parts, attempts: 2, ended: 1, ..come.clone() };
    assert_eq!(next.called(), [1]);
    assert_eq!(run(&next, Err(CallError::for_good("400"))).failed.count(), 2, "alone, it is the one that fails");
    // The same in a batch that is split: the last one of a part begins anew, at once.
    let split = Batch { parts: Parts::split(&[0, 1, 2, 3], Shows::Fails), ..batch(4, 2) };
    assert_eq!(split.called(), [0, 1]);
    let come = Batch { failed: Bits::from_iter([0]), ..split };
    let settlement = settle(&come, Err(CallError::for_good("400")));
    assert_eq!((settlement.split, settlement.retry_at), (true, Some(Timestamp(1_000))));
    let next = Batch { parts: settlement.parts, attempts: 3, ended: 2, ..come.clone() };
    assert_eq!(next.parts.next(&next.unsettled()), (vec![1], 0));
    let none = Batch { succeeded: Bits::from_iter([1, 2, 3]), ..come };
    assert!(!settle(&none, Err(CallError::for_good("400"))).split, "nobody is left");
    // The other one's task is gone: the call was for one.
    let gone = EndedAttempt { gone: BTreeSet::from([0]), ..ended(Err(CallError::for_good("400"))) };
    let alone = settle_call(&batch(2, 1), &[0, 1], gone, &policy(3), Moment { now: Timestamp(1_000), random: 0 });
    assert_eq!(alone.failed.count(), 2);
}

#[test]
fn a_pause_that_was_posted_holds_whatever_the_call_is_answered() {
    let at = Timestamp(600_000);
    let come = Batch { failed: Bits::from_iter([0]), again: Bits::from_iter([1]), again_at: Some(at), ..batch(2, 1) };
    for error in [CallError::for_good("400"), CallError::again("500"), CallError::new(Cause::Silence, "nothing")] {
        let ended = EndedAttempt { result: Err(error), gone: BTreeSet::new(), put_off: None };
        let settlement = settle_call(&come, &[0, 1], ended, &policy(3), Moment { now: Timestamp(1_000), random: 0 });
        assert_eq!(settlement.retry_at, Some(at));
    }
}

/// In a batch that is split, only the part of the member that asks for the pause waits for its end.
#[test]
fn a_pause_that_was_posted_holds_no_other_part() {
    let (at, parts) = (Timestamp(600_000), Parts::split(&[0, 1, 2, 3], Shows::Fails));
    let (succeeded, again) = (Bits::from_iter([0]), Bits::from_iter([1]));
    let come = Batch { parts, succeeded, again, again_at: Some(at), ..batch(4, 2) };
    let refused = CallError::new(Cause::Status(429), "429");
    for (result, put_off, retry_at, called) in [
        (Ok(Answer::Members(Vec::new())), None, 1_000, vec![2]),
        (Err(CallError::for_good("400")), None, 1_000, vec![2, 3]),
        (Err(CallError::new(Cause::Silence, "nothing")), None, 2_000, vec![2, 3]),
        (Err(refused), Some(Timestamp(5_000)), 5_000, vec![2, 3]),
    ] {
        let ended = EndedAttempt { result, gone: BTreeSet::new(), put_off };
        let settlement = settle_call(&come, &[0, 1], ended, &policy(3), Moment { now: Timestamp(1_000), random: 0 });
        let next = Batch { parts: settlement.parts, ..come.clone() };
        assert_eq!((settlement.retry_at, next.called()), (Some(Timestamp(retry_at)), called));
        assert_eq!(next.parts.due(&[1]), at);
    }
}

/// An earlier call without an answer may have worked for the member that is to be tried again, too.
#[test]
fn what_may_have_worked_is_not_split_although_a_retry_was_posted() {
    let (failed, again, silent) = (Bits::from_iter([0]), Bits::from_iter([1]), Bits::from_iter([1]));
    let come = Batch { failed, again, silent, ..batch(2, 2) };
    let ended = EndedAttempt { result: Err(CallError::again("500")), gone: BTreeSet::new(), put_off: None };
    let settlement = settle_call(&come, &[0, 1], ended, &policy(2), Moment { now: Timestamp(1_000), random: 0 });
    assert_eq!((settlement.split, settlement.failed.count(), settlement.retry_at), (false, 2, None));
}

#[test]
fn a_part_that_is_next_since_the_others_came_waits_for_its_own_time() {
    let due = Timestamp(600_000);
    let parts = Parts::split(&[0, 1], Shows::Fails).after(Shows::Works, false, &[0, 1], &[0, 1], due);
    let split = Batch { parts, ..batch(2, 3) };
    assert_eq!(split.called(), [1]);
    let come = Batch { succeeded: Bits::from_iter([1]), ..split };
    for error in [CallError::new(Cause::Status(504), "504"), CallError::new(Cause::Silence, "nothing")] {
        let ended = EndedAttempt { result: Err(error), gone: BTreeSet::new(), put_off: None };
        let settlement = settle_call(&come, &[1], ended, &policy(3), Moment { now: Timestamp(1_000), random: 0 });
        assert_eq!(settlement.retry_at, Some(due));
    }
}

#[test]
fn a_posted_retry_says_nothing_of_an_earlier_call_whose_worker_was_lost() {
    let lost = Batch { attempts: 2, ended: 0, failed: Bits::from_iter([2]), ..open() };
    let settlement = run(&lost, Ok(Answer::Members(Vec::new())));
    assert_eq!(settlement.silent.iter().collect::<Vec<_>>(), [1]);
    let answered = Batch { attempts: 2, ended: 1, failed: Bits::from_iter([2]), ..open() };
    assert!(run(&answered, Ok(Answer::Members(Vec::new()))).silent.is_zero());
}

/// An answer that asks for a delay says no more than that of members that it does not name.
#[test]
fn what_was_posted_stands_beside_an_answer_that_asks_for_a_delay() {
    let unnamed =
        MemberAnswer { retry_after: Some(Duration::from_secs(500)), ..member(1, MemberOutcome::Unnamed, None) };
    let all = Batch { failed: Bits::from_iter([2]), ..open() };
    for answer in [
        Answer::Members(vec![unnamed.clone()]),
        Answer::Unclear { members: vec![unnamed.clone()], problem: "its entry 7 names no task".to_owned() },
    ] {
        let settlement = run(&all, Ok(answer));
        assert_eq!((settlement.last_error.as_deref(), settlement.silent.count()), (Some("busy"), 0));
    }
    let not_posted = batch(2, 1);
    let settlement = run(&not_posted, Ok(Answer::Members(vec![member(0, MemberOutcome::Succeeded, None), unnamed])));
    assert_eq!(settlement.retry_at, Some(Timestamp(501_000)));
    assert_eq!(settlement.last_error.as_deref(), Some("the answer has no outcome for it"));
}
