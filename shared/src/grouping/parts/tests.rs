#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::limits::{BATCH_MEMBERS_MAX, MEMBERS_BYTES_MAX};

impl Parts {
    /// The parts after a call for all members of the next one.
    fn then(self, shows: Shows, before: &[usize], open: &[usize], due: Timestamp) -> Self {
        let several = self.next(before).0.len() > 1;
        self.after(shows, several, before, open, due)
    }
}

/// What a batch came to.
#[derive(Debug, Default)]
struct Run {
    /// Calls after the one that failed for all members.
    calls: usize,
    failed: BTreeSet<usize>,
    succeeded: BTreeSet<usize>,
    /// The most parts that were kept at once.
    parts: usize,
}

/// A batch of `n` whose call failed, as every call does that has a member of `poison`. A member alone that fails is called so
/// many times.
fn run(n: usize, poison: &BTreeSet<usize>, tries: u32) -> Run {
    let mut run = Run::default();
    let mut open: Vec<usize> = (0..n).collect();
    let mut parts = Parts::split(&open, Shows::Fails);
    while !open.is_empty() {
        let (called, calls) = parts.next(&open);
        run.calls += 1;
        assert!(!called.is_empty() && called.len() < n.max(2) && run.calls <= 3 * n * tries as usize);
        let (before, fails) = (open.clone(), called.iter().any(|slot| poison.contains(slot)));
        if !fails {
            called
                .iter()
                .for_each(|slot| assert!(run.succeeded.insert(*slot), "slot {slot} is called after it succeeded"));
            open.retain(|slot| !called.contains(slot));
        } else if called.len() == 1 && calls + 1 >= tries {
            run.failed.insert(called[0]);
            open.retain(|slot| !called.contains(slot));
        }
        let shows = if fails { Shows::Fails } else { Shows::Works };
        parts = Parts::unpack(&parts.then(shows, &before, &open, Timestamp(7)).pack()).unwrap();
        run.parts = run.parts.max(parts.0.len());
        let covered: usize = parts.0.iter().map(|part| part.members(&open).len()).sum();
        assert_eq!(covered, open.len(), "each open slot is in one part");
    }
    assert!(parts.is_empty());
    assert_eq!(&run.failed, poison, "who fails is who spoils calls");
    run
}

fn log2_up(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

/// The most calls that k bad members among n cost: each halving is of a part with a bad member, and there are at most
/// k * (log2 n - log2 k) + k - 1 of them, rounded up; each costs two calls at most. Without any, the last member alone shows it.
fn bound(n: usize, k: usize) -> usize {
    if k == 0 { log2_up(n) + 1 } else { (2 * k * (log2_up(n) - k.ilog2() as usize) + 2 * (k - 1)).clamp(1, 2 * n) }
}

#[test]
fn one_bad_member_is_found_wherever_it_is() {
    for n in 1..=64 {
        let mut calls = 0;
        for bad in 0..n {
            let run = run(n, &BTreeSet::from([bad]), 1);
            assert!(run.calls <= bound(n, 1), "{bad} of {n}: {} calls, at most {}", run.calls, bound(n, 1));
            calls += run.calls;
        }
        // On average it is half way between the best and the worst.
        assert!(2 * calls <= n * (3 * log2_up(n) + 2), "{n}: {calls} calls for {n} places");
    }
}

#[test]
fn every_set_of_bad_members_of_a_small_batch_is_found() {
    for n in 1..=10_usize {
        for bits in 0_u32..1 << n {
            let poison: BTreeSet<usize> = (0..n).filter(|slot| bits >> slot & 1 == 1).collect();
            for tries in [1, 3] {
                let run = run(n, &poison, tries);
                let most = bound(n, poison.len()) + poison.len() * (tries as usize - 1);
                assert!(run.calls <= most, "{poison:?} of {n}: {} calls, at most {most}", run.calls);
            }
        }
    }
}

#[test]
fn few_bad_members_of_many_cost_few_calls() {
    for n in [1, 2, 3, 63, 64, 65, 100, 500, 999, 1_024, 2_500, 4_096, 5_000] {
        for k in 0..=10.min(n) {
            let spread: BTreeSet<usize> = (0..k).map(|bad| bad * n / k + n / k / 2).collect();
            let (first, last) = ((0..k).collect(), (n - k..n).collect());
            for poison in [spread, first, last] {
                let run = run(n, &poison, 1);
                assert!(run.calls <= bound(n, k), "{k} of {n}: {} calls, at most {}", run.calls, bound(n, k));
            }
        }
    }
}

#[test]
fn a_batch_of_bad_members_costs_two_calls_a_member_and_few_bytes() {
    for n in [1, 2, 3, 100, 1_000, 1_001] {
        for tries in [1, 4] {
            let run = run(n, &(0..n).collect(), tries);
            assert!(run.calls <= 2 * n + n * (tries as usize - 1), "{n}: {}", run.calls);
            assert!(run.parts <= 2 * log2_up(n) + 4, "{n}: {} parts at once", run.parts);
        }
    }
}

#[test]
fn the_second_half_is_halved_without_a_call_if_the_first_works() {
    let open: Vec<usize> = (0..8).collect();
    let parts = Parts::split(&open, Shows::Fails);
    assert_eq!(parts.next(&open).0, [0, 1, 2, 3]);
    let left: Vec<usize> = (4..8).collect();
    let parts = parts.then(Shows::Works, &open, &left, Timestamp(7));
    assert_eq!(parts.next(&left), (vec![4, 5], 0));
    // The first half of those fails: now nothing is known of the second, which is called as it is later.
    let parts = parts.then(Shows::Fails, &left, &left, Timestamp(7));
    assert_eq!(parts.next(&left), (vec![4], 0));
    let parts = parts.then(Shows::Works, &left, &[5, 6, 7], Timestamp(7));
    assert_eq!(parts.next(&[5, 6, 7]), (vec![5], 0));
    let parts = parts.then(Shows::Fails, &[5, 6, 7], &[6, 7], Timestamp(7));
    assert_eq!(parts.next(&[6, 7]), (vec![6, 7], 0));
    assert!(parts.then(Shows::Works, &[6, 7], &[], Timestamp(7)).is_empty());
}

#[test]
fn a_part_that_was_too_large_has_two_halves_that_may_work() {
    let open: Vec<usize> = (0..8).collect();
    let parts = Parts::split(&open, Shows::TooLarge).then(Shows::Works, &open, &open[4..], Timestamp(7));
    assert_eq!(parts.next(&open[4..]), (vec![4, 5, 6, 7], 0));
    let parts = parts.then(Shows::TooLarge, &open[4..], &open[4..], Timestamp(7));
    let parts = parts.then(Shows::Works, &open[4..], &[6, 7], Timestamp(7));
    assert_eq!(parts.next(&[6, 7]), (vec![6, 7], 0));
}

/// So many members fit in a call: each call is for half as many at least, and each that fails has two halves.
#[test]
fn calls_that_are_too_large_cost_no_more_than_their_halves() {
    for (n, fits) in [(8, 4), (100, 30), (1_000, 7), (5_000, 4_999), (64, 1)] {
        let (mut open, mut calls): (Vec<usize>, usize) = ((0..n).collect(), 0);
        let mut parts = Parts::split(&open, Shows::TooLarge);
        while !open.is_empty() {
            let (called, before) = (parts.next(&open).0, open.clone());
            calls += 1;
            let shows = if called.len() > fits { Shows::TooLarge } else { Shows::Works };
            open.retain(|slot| shows.fails() || !called.contains(slot));
            parts = parts.then(shows, &before, &open, Timestamp(7));
        }
        assert!(calls <= 4 * n / fits.min(n / 2), "{n} of which {fits} fit: {calls} calls");
    }
}

/// The record of the largest batch, each of whose members waits in a part of its own, fits DynamoDB's 400 KB: packed members,
/// errors with their slots, bits, parts, and some KB for the lane, the last error and the names.
#[test]
fn a_part_for_each_member_fits_the_record() {
    let most = BATCH_MEMBERS_MAX as usize;
    let bytes = MEMBERS_BYTES_MAX + 56 * 1_024 + 5 * most / 8 + most * PART_BYTES + 8 * 1_024;
    assert!(bytes <= 400 * 1_024, "{bytes}");
}

#[test]
fn silence_halves_nothing_and_leaves_the_order_as_it_is() {
    let open: Vec<usize> = (0..8).collect();
    let parts = Parts::split(&open, Shows::Fails).then(Shows::Nothing, &open, &open, Timestamp(7));
    assert_eq!((parts.next(&open), parts.due(&open)), ((vec![0, 1, 2, 3], 1), Timestamp(0)));
    let parts = parts.then(Shows::Works, &open, &[4, 5, 6, 7], Timestamp(7));
    assert_eq!(parts.next(&[4, 5, 6, 7]), (vec![4, 5, 6, 7], 0), "a first half that was silent once shows nothing");
}

#[test]
fn members_to_be_called_again_wait_while_others_are_called() {
    let open: Vec<usize> = (0..4).collect();
    let parts = Parts::split(&open, Shows::Fails).then(Shows::Works, &open, &[1, 2, 3], Timestamp(7));
    // One of the first half waits; the second half is halved all the same.
    assert_eq!((parts.next(&[1, 2, 3]), parts.due(&[1, 2, 3])), ((vec![2], 0), Timestamp(0)));
    let parts = parts.then(Shows::Fails, &[1, 2, 3], &[1, 2, 3], Timestamp(9));
    assert_eq!(parts.next(&[1, 2, 3]), (vec![3], 0));
    let parts = parts.then(Shows::Fails, &[1, 2, 3], &[1, 2, 3], Timestamp(8));
    assert_eq!((parts.next(&[1, 2, 3]), parts.due(&[1, 2, 3])), ((vec![1], 1), Timestamp(7)));
    let parts = parts.then(Shows::Works, &[1, 2, 3], &[2, 3], Timestamp(7));
    assert_eq!((parts.next(&[2, 3]), parts.due(&[2, 3]), parts.count(&[2, 3])), ((vec![2], 1), Timestamp(9), 2));
}

/// The others of the part are gone: it is called again as it is.
#[test]
fn a_part_that_was_called_for_one_member_is_not_halved() {
    let open: Vec<usize> = (0..4).collect();
    let parts = Parts::split(&open, Shows::Fails).after(Shows::Fails, false, &open, &open[1..], Timestamp(7));
    assert_eq!((parts.next(&[1]), parts.due(&[1])), ((vec![1], 1), Timestamp(7)));
}

#[test]
fn only_the_parts_of_members_that_ask_for_a_pause_are_held() {
    let open: Vec<usize> = (0..8).collect();
    let parts = Parts::split(&open, Shows::TooLarge).held(&[1], Timestamp(9));
    assert_eq!((parts.next(&open), parts.due(&open)), ((vec![4, 5, 6, 7], 0), Timestamp(0)));
    assert_eq!(parts.due(&open[..4]), Timestamp(9));
    assert_eq!(parts.held(&[0], Timestamp(8)).due(&open[..4]), Timestamp(9), "a pause is not shortened");
    // Nor is it when the second half is halved uncalled.
    let second = Parts::split(&open, Shows::Fails).held(&[5], Timestamp(9));
    let second = second.then(Shows::Works, &open, &open[4..], Timestamp(7));
    assert_eq!((second.next(&open[4..]), second.due(&open[4..])), ((vec![4, 5], 0), Timestamp(9)));
}

#[test]
fn dropped_members_are_in_no_part() {
    let open: Vec<usize> = (0..8).collect();
    let parts = Parts::split(&open, Shows::Fails);
    assert_eq!(parts.next(&[2, 5, 6]).0, [2]);
    assert_eq!(parts.next(&[5, 6]).0, [5, 6], "the first half is gone");
    let parts = parts.then(Shows::Works, &[5, 6], &[6], Timestamp(7));
    assert_eq!(parts.next(&[6]), (vec![6], 1));
}

#[test]
fn what_is_no_list_of_parts_is_refused() {
    let good = Parts::split(&[0, 1, 2, 3], Shows::Fails).pack();
    assert_eq!(good.len(), 2 * PART_BYTES);
    assert_eq!(Parts::unpack(&good[..PART_BYTES + 3]), Err(PartsError(PART_BYTES)));
    let bad = [&good[..4], &[3], &good[5..]].concat();
    assert_eq!(Parts::unpack(&bad), Err(PartsError(0)));
    assert_eq!(Parts::unpack(&[]), Ok(Parts::default()));
}

#[test]
fn a_long_pause_is_that_of_the_member_which_asked_for_it() {
    let (open, day) = ([0, 1], Timestamp(86_400_000));
    let next = |parts: &Parts| (parts.next(&open).0, parts.due(&open));
    // It asked when it was called alone, before the other one was.
    let parts = Parts::split(&open, Shows::Fails).then(Shows::Works, &open, &open, Timestamp(7)).held(&[0], day);
    assert_eq!(next(&parts), (vec![1], Timestamp(0)));
    let parts = parts.then(Shows::Works, &open, &open, Timestamp(8));
    assert_eq!(next(&parts), (vec![1], Timestamp(8)));
    // Or when both waited, in one entry.
    let both = Parts::split(&open, Shows::Fails).then(Shows::Works, &open, &open, Timestamp(7));
    let both = both.then(Shows::Works, &open, &open, Timestamp(8));
    assert_eq!((both.0.len(), next(&both)), (1, (vec![0], Timestamp(8))));
    let held = both.held(&[0], day);
    assert_eq!((held.count(&open), next(&held)), (2, (vec![1], Timestamp(8))));
}

/// Parts of any list.
pub(crate) fn any_parts() -> impl Strategy<Value = Parts> {
    let form = prop::sample::select(vec![Form::Together, Form::Second, Form::Alone]);
    let part = (0_usize..10_000, 0_usize..10_000, form, 0_u32..1_000, 0_u64..1 << 48);
    let part = part.prop_map(|(from, to, form, calls, due)| Part { from, to, form, calls, due: Timestamp(due) });
    prop::collection::vec(part, 0..9).prop_map(Parts)
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked(parts in any_parts()) {
        prop_assert_eq!(Parts::unpack(&parts.pack()).unwrap(), parts);
    }

    /// Whatever calls show, and whoever is dropped: every slot is in one part, none is lost, and calls end.
    #[test]
    fn every_open_slot_is_called_until_it_has_an_outcome(
        n in 1_usize..40, events in prop::collection::vec((0_u8..4, any::<u64>(), 0_u64..20), 300)
    ) {
        let mut open: Vec<usize> = (0..n).collect();
        let mut parts = Parts::split(&open, Shows::Fails);
        let mut calls: BTreeMap<usize, u32> = BTreeMap::new();
        for (number, (shows, settled, due)) in events.into_iter().enumerate() {
            if open.is_empty() {
                break;
            }
            let before = open.clone();
            let (called, _) = parts.next(&open);
            prop_assert!(!called.is_empty() && called.iter().all(|slot| open.contains(slot)));
            called.iter().for_each(|slot| *calls.entry(*slot).or_default() += 1);
            let shows = [Shows::Works, Shows::Fails, Shows::TooLarge, Shows::Nothing][usize::from(shows)];
            let settles = |slot: &usize| shows == Shows::Works && settled >> (slot % 64) & 1 == 1;
            open.retain(|slot| !(called.contains(slot) && settles(slot)));
            if number % 7 == 0 {
                open.retain(|slot| settled >> (slot % 64) & 3 != 3);
            }
            parts = parts.then(shows, &before, &open, Timestamp(1_000 * number as u64 + due));
            let covered: usize = parts.0.iter().map(|part| part.members(&open).len()).sum();
            prop_assert_eq!(covered, open.len());
            let ranges = parts.0.iter().flat_map(|part| part.members(&open).iter().copied()).collect::<BTreeSet<_>>();
            prop_assert_eq!(ranges.len(), open.len());
        }
    }

    #[test]
    fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = Parts::unpack(&bytes);
    }
}
