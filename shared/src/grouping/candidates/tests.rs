use super::*;
use crate::clock::Timestamp;
use crate::testing::parcels;
use std::num::NonZeroU32;

use proptest::prelude::*;
use serde_json::json;

fn id(number: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(number))
}

fn ids(numbers: &[u128]) -> Members {
    numbers.iter().map(|number| id(*number)).collect()
}

fn alone(numbers: &[u128]) -> Vec<WaitingRecord> {
    numbers.iter().map(|number| WaitingRecord::Task(id(*number))).collect()
}

/// A bundle under its first task's number; the slots `taken` are claimed.
fn bundle(numbers: std::ops::Range<u128>, taken: &[usize]) -> WaitingRecord {
    let members: Members = numbers.clone().map(id).collect();
    let free = Bits::ones(members.len()).minus(&taken.iter().copied().collect());
    let id = Uuid::from_u128(numbers.start);
    let loads = numbers.map(weighing).collect();
    let bundle = Bundle::filling(id, "parcel:0:NY".parse().unwrap(), (members, loads), Timestamp(0));
    WaitingRecord::Bundle(Box::new(bundle.opened(free)))
}

/// A task weighs as much as the last digit of its number says.
fn weighing(number: u128) -> Load {
    Load { weight: Weight::from_whole((number % 10).try_into().unwrap()).unwrap(), ..Load::default() }
}

fn size(max_batch: usize, max_weight: u32) -> BatchSize {
    BatchSize::of(&parcels(json!({"max_batch": max_batch, "weight": "content.kg", "max_weight": max_weight})))
}

/// Chooses without regard to weights.
fn choose(named: Waiting, records: Vec<WaitingRecord>, max: usize) -> Candidates {
    Candidates::choose(named, records, HashMap::new(), size(max, 1_000_000))
}

fn named(tasks: &[u128], bundles: &[u128]) -> Waiting {
    let bundles = bundles.iter().map(|number| (Uuid::from_u128(*number), 1)).collect();
    Waiting { bundles, ..Waiting::alone(tasks.iter().map(|number| id(*number))) }
}

#[test]
fn what_was_found_first_goes_first() {
    let candidates = choose(named(&[9, 2], &[]), alone(&[5, 2, 7, 8, 9]), 3);
    assert_eq!(candidates.chosen, ids(&[5, 2, 7]));
    let rest = Rest { named: named(&[9], &[]), others: named(&[8], &[]), ..Rest::default() };
    assert_eq!(candidates.rest(&candidates.chosen), rest);
}

#[test]
fn a_bundle_may_be_taken_in_parts() {
    let records = vec![bundle(10..20, &[0, 1]), WaitingRecord::Task(id(5)), bundle(20..30, &[])];
    let candidates = choose(named(&[], &[20]), records, 12);
    assert_eq!(candidates.chosen, ids(&[12, 13, 14, 15, 16, 17, 18, 19, 5, 20, 21, 22]));
    let slots = |number| candidates.bundles.get(Uuid::from_u128(number)).unwrap().iter().collect::<Vec<_>>();
    assert_eq!((slots(10), slots(20)), ((2..10).collect(), vec![0, 1, 2]));
    let rest = candidates.rest(&candidates.chosen);
    assert_eq!((rest.named.bundles.get(&Uuid::from_u128(20)), rest.named.len()), (Some(&7), 7));
    assert!(candidates.full && !rest.full);
    assert!(rest.others.is_empty());
}

#[test]
fn what_another_worker_left_out_of_its_intent_is_left() {
    let candidates = choose(named(&[2], &[]), alone(&[1, 2]), 2);
    assert_eq!(candidates.rest(&ids(&[1])), Rest { named: named(&[2], &[]), ..Rest::default() });
}

/// The next leader finds out whether it fills a batch.
#[test]
fn what_was_not_looked_at_is_left_under_its_name() {
    let records = vec![bundle(10..13, &[]), bundle(30..37, &[])];
    let candidates = choose(named(&[7], &[10, 20, 30]), records, 5).beside(named(&[7], &[20]));
    let rest = candidates.rest(&candidates.chosen);
    let left = Waiting { bundles: [(Uuid::from_u128(20), 1), (Uuid::from_u128(30), 5)].into(), ..named(&[7], &[]) };
    assert_eq!((&rest.named, rest.others.is_empty()), (&left, true));
    assert!(candidates.full && rest.full && !rest.is_part);
    let members: Members = (10..13).chain(30..35).map(id).collect();
    let rest = candidates.rest(&members);
    assert_eq!((rest.named.len(), rest.full, rest.is_part), (4, false, true));
}

#[test]
fn what_is_too_heavy_is_left_for_the_next_batch() {
    let records = || {
        let mut records = vec![bundle(11..16, &[])];
        records.extend(alone(&[26, 24, 3]));
        records
    };
    let loads: HashMap<TaskId, Load> = [26, 24, 3].map(|number| (id(number), weighing(number))).into();
    let candidates = Candidates::choose(Waiting::default(), records(), loads.clone(), size(100, 13));
    // 1, 2, 3 and 4 leave room for neither 5, 6 nor 4, but for the 3 after them.
    assert_eq!(candidates.chosen, ids(&[11, 12, 13, 14, 3]));
    assert_eq!(candidates.bundles.get(Uuid::from_u128(11)), Some(&Bits::ones(4)));
    let rest = candidates.rest(&candidates.chosen);
    assert!(candidates.full && rest.full, "5 and 6 leave no room for 4");
    assert_eq!((rest.others.tasks, rest.others.bundles[&Uuid::from_u128(11)]), (ids(&[24, 26]), 1));
    // The first goes, however heavy it is, but alone.
    let candidates = Candidates::choose(Waiting::default(), records(), loads, size(100, 3));
    assert_eq!(candidates.chosen, ids(&[11, 12]));
    let heavy = HashMap::from([(id(9), weighing(9)), (id(1), weighing(1))]);
    let candidates = Candidates::choose(Waiting::default(), alone(&[9, 1]), heavy, size(100, 3));
    assert_eq!((candidates.chosen.clone(), candidates.full), (ids(&[9]), true));
}

#[test]
fn of_many_that_do_not_ride_together_nobody_waits_for_more() {
    let size = BatchSize::of(&parcels(json!({"max_batch": 3, "distinct": "content.account"})));
    let choose = |accounts: &[u32]| {
        let tasks: Vec<u128> = (0..accounts.len() as u128).collect();
        let load = |account: &u32| Load { distinct: NonZeroU32::new(*account), ..Load::default() };
        let loads = tasks.iter().map(|task| id(*task)).zip(accounts.iter().map(load)).collect();
        let candidates = Candidates::choose(Waiting::default(), alone(&tasks), loads, size);
        let rest = candidates.rest(&candidates.chosen);
        (candidates.chosen, candidates.full, rest.full, rest.is_part)
    };
    assert_eq!(choose(&[7, 7, 8, 7, 9]), (ids(&[0, 2, 4]), true, false, false));
    assert_eq!(choose(&[7, 7, 7]), (ids(&[0]), false, false, false));
    assert_eq!(choose(&[7; 6]), (ids(&[0]), true, false, true), "others may wait behind these");
}

#[test]
fn a_task_that_flushes_is_seen_in_the_batch_and_in_what_it_leaves() {
    let size = |changes: serde_json::Value| BatchSize::of(&parcels(changes));
    let flushing = |number: u128| (id(number), Load { flushes: true, ..Load::default() });
    let look = |size: BatchSize, flushes: &[u128]| {
        let loads = flushes.iter().copied().map(flushing).collect();
        let candidates = Candidates::choose(Waiting::default(), alone(&[1, 2, 3, 4]), loads, size);
        (candidates.flushes, candidates.rest(&candidates.chosen).flushes)
    };
    let by_content = size(json!({"max_batch": 3, "flush_when": "content.last"}));
    assert_eq!(look(by_content, &[]), (false, false));
    assert_eq!(look(by_content, &[2]), (true, false), "its batch takes it along");
    assert_eq!(look(by_content, &[4]), (true, true), "the next batch does");
    assert_eq!(look(size(json!({"max_batch": 3})), &[2, 4]), (false, false));
}

proptest! {
    #[test]
    fn never_more_than_allowed_and_none_lost(
        tasks in prop::collection::btree_set(0_u128..50, 0..40),
        bundles in prop::collection::btree_map(1_u128..9, (1_u128..30, prop::collection::vec(0_usize..30, 0..9)), 0..6),
        max in 1_usize..60,
    ) {
        let mut records = alone(&tasks.into_iter().collect::<Vec<_>>());
        records.extend(bundles.into_iter().map(|(at, (size, taken))| bundle(at * 100..at * 100 + size, &taken)));
        let none = HashMap::new();
        let all: Members = records.iter().flat_map(|record| slots(record, &none)).map(|slot| slot.id).collect();
        let candidates = choose(Waiting::default(), records, max);
        prop_assert_eq!(candidates.chosen.len(), all.len().min(max));
        let rest = candidates.rest(&candidates.chosen);
        prop_assert_eq!(rest.named.len() + rest.others.len() + candidates.chosen.len(), all.len());
        prop_assert_eq!(candidates.full, all.len() >= max);
        prop_assert_eq!(rest.full, all.len() >= 2 * max);
        let bundled: u64 = candidates.bundles.iter().map(|(_, slots)| slots.count()).sum();
        prop_assert!(bundled <= candidates.chosen.len() as u64);
    }
}
