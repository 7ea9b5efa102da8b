use fanfold::grouping::{Parts, Shows};
use fanfold::ids::TaskId;
use fanfold::members::Members;
use fanfold::store::batches::{BatchStatus, Later, TokenSecret};
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn id(slot: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(slot))
}

/// A batch of four whose second attempt was for the first three, and is open.
fn open() -> Batch {
    let members = Members::new((0..4).map(id));
    let batch = Batch::intended(Uuid::from_u128(9), "parcel:0:NY".parse().unwrap(), members, Timestamp(1));
    let later = Later { until: NOW.plus(Duration::from_secs(60)), asked: Bits::ones(3), poll: None };
    Batch {
        status: BatchStatus::InProgress,
        attempts: 2,
        ended: 1,
        silent: Bits::ones(2),
        secret: Some(TokenSecret::new(Uuid::from_u128(1))),
        later: Some(later),
        ..batch
    }
}

fn entry(slot: u128, outcome: &str, more: Value) -> PostedOutcome {
    let mut entry = json!({"id": id(slot), "outcome": outcome});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

fn slots(bits: &Bits) -> Vec<usize> {
    bits.iter().collect()
}

#[test]
fn outcomes_come_in_parts_and_repeating_them_changes_nothing() {
    let first = [
        entry(0, "succeeded", json!({"result": {"label": 7}, "error": "none"})),
        entry(1, "failed", json!({"error": "too heavy", "code": "E1"})),
    ];
    let noted_once = noted(&open(), 2, &first, NOW).unwrap();
    let after = &noted_once.after;
    assert_eq!((slots(&after.succeeded), slots(&after.failed), slots(&after.silent)), (vec![0], vec![1], vec![]));
    assert_eq!((after.error(1), after.code(1)), (Some("too heavy"), Some("E1")));
    assert_eq!(noted_once.results, [(0, "{\"label\":7}".to_owned())]);
    assert_eq!((noted_once.recorded, noted_once.ignored, after.is_answered()), (2, 0, false));
    let repeated = noted(after, 2, &first, NOW).unwrap();
    assert_eq!((&repeated.after, repeated.results.len(), repeated.recorded, repeated.ignored), (after, 0, 2, 0));
    let last = noted(after, 2, &[entry(2, "retry", json!({"error": "busy", "retry_after": 30}))], NOW).unwrap().after;
    assert!(last.is_answered() && last.status == BatchStatus::InProgress);
    assert_eq!((slots(&last.again), last.again_at), (vec![2], Some(NOW.plus(Duration::from_secs(30)))));
    assert_eq!(last.error(2), Some("busy"));
}

#[test]
fn the_first_outcome_of_a_member_counts() {
    let one = noted(&open(), 2, &[entry(0, "failed", json!({}))], NOW).unwrap().after;
    let others = [entry(0, "succeeded", json!({"result": 1})), entry(1, "succeeded", json!({}))];
    let noted = noted(&one, 2, &others, NOW).unwrap();
    assert_eq!((slots(&noted.after.succeeded), slots(&noted.after.failed)), (vec![1], vec![0]));
    assert_eq!((noted.recorded, noted.ignored, noted.results.len()), (1, 1, 0));
}

#[test]
fn a_retry_of_an_older_call_does_not_count_and_its_other_outcomes_do() {
    let posted = [entry(0, "retry", json!({})), entry(1, "succeeded", json!({})), entry(2, "failed", json!({}))];
    let noted_late = noted(&open(), 1, &posted, NOW).unwrap();
    let after = noted_late.after;
    assert_eq!((slots(&after.succeeded), slots(&after.failed), slots(&after.again)), (vec![1], vec![2], vec![]));
    assert_eq!((noted_late.recorded, noted_late.ignored), (2, 1));
    let elsewhere = noted(&open(), 2, &[entry(3, "retry", json!({})), entry(0, "retry", json!({}))], NOW).unwrap();
    assert_eq!(slots(&elsewhere.after.again), [0], "the call was not for the last one");
}

#[test]
fn what_was_to_be_tried_again_may_still_have_worked() {
    let busy = json!({"error": "busy", "code": "B", "retry_after": 30});
    let again = noted(&open(), 2, &[entry(0, "retry", busy)], NOW).unwrap().after;
    let worked = noted(&again, 2, &[entry(0, "succeeded", json!({}))], NOW).unwrap().after;
    assert_eq!((slots(&worked.succeeded), slots(&worked.again)), (vec![0], vec![]));
    assert_eq!((worked.errors.len(), worked.codes.len()), (0, 0));
    assert_eq!((again.again_at.is_some(), worked.again_at), (true, None), "nobody waits any more");
}

#[test]
fn the_last_outcome_ends_a_batch_that_waits_for_its_next_attempt() {
    let waits = Batch { later: None, retry_at: Some(NOW), last_error: Some("busy".to_owned()), ..open() };
    let all: Vec<PostedOutcome> = (0..4).map(|slot| entry(slot, "succeeded", json!({}))).collect();
    let some = noted(&waits, 2, &all[..3], NOW).unwrap().after.concluded();
    assert_eq!((some.status, some.retry_at), (BatchStatus::InProgress, Some(NOW)));
    let done = noted(&some, 1, &all[3..], NOW).unwrap().after.concluded();
    assert_eq!((done.status, done.retry_at, done.last_error), (BatchStatus::Done, None, None));
    let running = Batch { lease_until: Some(NOW), ..waits };
    let running = noted(&running, 2, &all, NOW).unwrap().after.concluded();
    assert_eq!(running.status, BatchStatus::InProgress, "its worker ends it");
}

#[test]
fn a_part_that_is_next_by_an_outcome_waits_for_as_long_as_it_was_asked_to() {
    let due = NOW.plus(Duration::from_secs(3_600));
    let parts = Parts::split(&[0, 1], Shows::Fails).after(Shows::Works, false, &[0, 1], &[0, 1], due);
    assert_eq!(parts.next(&[0, 1]).0, [1], "the other one has to wait");
    let split = Batch { later: None, parts, members: Members::new((0..2).map(id)), retry_at: Some(NOW), ..open() };
    let after = noted(&split, 2, &[entry(1, "succeeded", json!({}))], NOW).unwrap().after.concluded();
    assert_eq!((after.called(), after.retry_at), (vec![0], Some(due)));
    let after = noted(&split, 2, &[entry(0, "succeeded", json!({}))], NOW).unwrap().after.concluded();
    assert_eq!((after.called(), after.retry_at), (vec![1], Some(NOW)));
    // An attempt that was taken back leaves no time, if the part that was next could be called at once.
    let taken_back = Batch { retry_at: None, ..split };
    let after = noted(&taken_back, 2, &[entry(1, "succeeded", json!({}))], NOW).unwrap().after.concluded();
    assert_eq!((after.called(), after.retry_at), (vec![0], Some(due)));
    let after = noted(&taken_back, 2, &[entry(0, "succeeded", json!({}))], NOW).unwrap().after.concluded();
    assert_eq!((after.called(), after.retry_at), (vec![1], None));
}

#[test]
fn entries_that_name_no_member_or_one_twice_are_named() {
    let posted = [entry(7, "succeeded", json!({})), entry(1, "failed", json!({})), entry(1, "failed", json!({}))];
    let faults = noted(&open(), 2, &posted, NOW).unwrap_err();
    let faults: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.field, fault.problem)).collect();
    assert_eq!(
        faults,
        [
            format!("members[0].id is {}, which is not a member of batch {}", id(7), Uuid::from_u128(9)),
            format!("members[2].id is {}, as `members[1].id` is; a member is allowed once", id(1)),
        ]
    );
}

#[test]
fn a_wait_is_bounded() {
    for (seconds, wait) in [(1.5, 1_500), (1e300, 86_400_000)] {
        let posted = entry(0, "retry", json!({"retry_after": seconds}));
        assert_eq!(asked_until(&posted, NOW), Some(NOW.plus(Duration::from_millis(wait))));
    }
    assert_eq!(asked_until(&entry(0, "retry", json!({"retry_after": -3})), NOW), None);
}
