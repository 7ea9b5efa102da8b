//! Places: how much of a step one party may hold at once.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::aws::Write;
use fanfold::clock::Timestamp;
use fanfold::limits::DEAD_PLACES_MAX;
use fanfold::pacing::{Allowance, Spends, Verdict};
use fanfold::policy::Weight;
use fanfold::store::gates::{Denied, Gates, RefusedCall};
use fanfold::store::places::{Party, Place, Places, Spread};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, at_every_request, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp(1_800_000_000_000);

async fn stack(crash: Crash) -> (TestStack, Places) {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let places = Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap()).spread_by(Spread::of(100));
    (stack, places)
}

/// A receiver and a kind: the one mechanism serves both.
fn parties() -> [Party; 2] {
    [Party::Receiver("https://example.com:443".to_owned()), Party::Kind("parcel".to_owned())]
}

/// A place taken at `now`.
fn place(party: &Party, holder: u128, now: Timestamp) -> Place {
    Place { party: party.clone(), record: 0, holder: Uuid::from_u128(holder), until: now.plus(LEASE) }
}

#[tokio::test(start_paused = true)]
async fn as_many_as_may_get_a_place_and_no_more() {
    let (_stack, places) = stack(Crash::never()).await;
    for party in parties() {
        let asked: Vec<Place> = (0..20).map(|n| place(&party, n, NOW)).collect();
        let taken = join_all(asked.iter().map(|place| places.take(place, 5, NOW))).await;
        assert_eq!(taken.into_iter().filter(|taken| *taken.as_ref().unwrap()).count(), 5);
    }
    let other = Party::Receiver("https://other.example:443".to_owned());
    assert!(places.take(&place(&other, 1, NOW), 5, NOW).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_place_released_is_free() {
    let (_stack, places) = stack(Crash::never()).await;
    for party in parties() {
        let place = |holder| place(&party, holder, NOW);
        places.release(&place(1)).await.unwrap();
        assert!(places.take(&place(1), 1, NOW).await.unwrap());
        places.release(&place(2)).await.unwrap();
        assert!(!places.take(&place(2), 1, NOW).await.unwrap(), "only its holder releases it");
        for _ in 0..2 {
            places.release(&place(1)).await.unwrap();
        }
        assert!(places.take(&place(2), 1, NOW).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_keeps_its_place_for_another_lease() {
    let (_stack, places) = stack(Crash::never()).await;
    for party in parties() {
        let later = NOW.plus(LEASE / 2);
        for now in [NOW, later, later] {
            assert!(places.take(&place(&party, 1, now), 1, now).await.unwrap());
        }
        let over = NOW.plus(LEASE * 5 / 4);
        assert!(!places.take(&place(&party, 2, over), 1, over).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn places_of_the_dead_are_taken_by_others() {
    let (_stack, places) = stack(Crash::never()).await;
    for party in parties() {
        let dead = DEAD_PLACES_MAX as u32 + 8;
        for n in 0..dead {
            assert!(places.take(&place(&party, n.into(), NOW), dead, NOW).await.unwrap());
        }
        assert!(!places.take(&place(&party, 99, NOW), dead, NOW.plus(LEASE)).await.unwrap());
        let after = NOW.plus(LEASE + Duration::from_millis(1));
        // Even where fewer may be held than before.
        for n in 100..103 {
            assert!(places.take(&place(&party, n, after), 3, after).await.unwrap(), "{n}");
        }
        assert!(!places.take(&place(&party, 103, after), 3, after).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_takes_one_place() {
    for at in 1..=3 {
        for party in parties() {
            let (stack, places) = stack(Crash::new(at, Moment::AnswerLost)).await;
            for (holder, free) in [(1, true), (2, true), (3, false)] {
                assert_eq!(places.take(&place(&party, holder, NOW), 2, NOW).await.unwrap(), free, "{holder}");
            }
            assert!(stack.crash.struck().is_some(), "{at}");
        }
    }
}

/// Receivers are as many as users name; kinds are as many as there are policies, and their records say whether they stand still.
#[tokio::test(start_paused = true)]
async fn records_of_receivers_expire_and_those_of_kinds_are_kept() {
    let (stack, places) = stack(Crash::never()).await;
    let [receiver, kind] = parties();
    for (party, expiring) in [(kind, 0), (receiver, 1)] {
        assert!(places.take(&place(&party, 1, NOW), 2, NOW).await.unwrap());
        assert_eq!(stack.expiring("LocksTable").await, expiring);
    }
}

/// Places 0 and 1 are in the first record, 2 and 3 in the second, the last one is alone in a third.
fn five_in_three_records(stack: &TestStack) -> Places {
    Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap()).spread_by(Spread::of(2))
}

#[tokio::test(start_paused = true)]
async fn many_places_are_in_several_records_and_no_more_are_taken() {
    let (stack, _) = stack(Crash::never()).await;
    let places = five_in_three_records(&stack);
    for party in parties() {
        let mut taken = Vec::new();
        for holder in 0..40 {
            taken.extend(places.take_any(place(&party, holder, NOW), 5, NOW, holder as u64).await.unwrap());
        }
        assert_eq!(taken.len(), 5);
        let records: Vec<u32> = (0..3).map(|n| taken.iter().filter(|place| place.record == n).count() as u32).collect();
        assert_eq!(records, [2, 2, 1]);
        places.release(&taken[0]).await.unwrap();
        let mut again = BTreeSet::new();
        for holder in 40..80 {
            let place = places.take_any(place(&party, holder, NOW), 5, NOW, holder as u64).await.unwrap();
            again.extend(place.map(|place| place.record));
        }
        assert_eq!(again, BTreeSet::from([taken[0].record]));
    }
}

/// Further records hold nothing but places.
#[tokio::test(start_paused = true)]
async fn further_records_expire() {
    let (stack, _) = stack(Crash::never()).await;
    let places = five_in_three_records(&stack);
    let [receiver, kind] = parties();
    for (party, expiring) in [(kind, 1), (receiver, 3)] {
        for record in 0..2 {
            assert!(places.take(&Place { record, ..place(&party, 1, NOW) }, 5, NOW).await.unwrap());
        }
        assert_eq!(stack.expiring("LocksTable").await, expiring);
    }
}

/// A kind with two places in a record each, of which the second is not the gate.
async fn gates(crash: Crash) -> (TestStack, Gates) {
    let api = ScriptedApi::always_succeeds();
    let stack = TestStack::with_places_per_record(policy(json!({})), api, crash, 1).await;
    let gates = Gates::from_environment(stack.surroundings()).unwrap();
    (stack, gates)
}

fn further(stack: &TestStack, holder: u128) -> Place {
    let [_, kind] = parties();
    Place { record: 1, ..place(&kind, holder, stack.world.now()) }
}

const REFUSAL: RefusedCall<'_> = RefusedCall { target: "117", version: Uuid::from_u128(1), answer: "no" };

#[tokio::test(start_paused = true)]
async fn a_refused_call_counts_once_at_most() {
    for record in [0, 1] {
        counts_once(record).await;
    }
}

async fn counts_once(record: u32) {
    let lost = at_every_request(Moment::AnswerLost, async |crash| {
        let (stack, gates) = gates(crash).await;
        let place = Place { record, ..further(&stack, 1) };
        assert!(gates.take(&place, 2, stack.world.now()).await.unwrap().is_done());
        let counted = gates.refuse(&place, REFUSAL).await;
        assert!(gates.refuse(&place, REFUSAL).await.is_ok_and(|gate| gate.is_none()), "its place is released");
        let gate = stack.gates.get("parcel").await.unwrap().unwrap();
        assert!(gate.refusals <= 1 && gate.targets.len() == gate.refusals as usize, "{gate:?}");
        assert_eq!(stack.places("parcel").await, 0);
        let struck = stack.crash.struck();
        if struck.is_none() {
            assert_eq!(counted.unwrap(), Some(gate));
        }
        struck
    })
    .await;
    assert!(lost.len() > 3, "{lost:?}");
}

/// One moment may have struck all calls that are under way, in whichever records.
#[tokio::test(start_paused = true)]
async fn a_kind_is_stopped_by_as_many_refusals_as_it_has_calls_in_all_records() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    let at_work: Vec<Place> = (1..5).map(|record| Place { record, ..further(&stack, record.into()) }).collect();
    for place in &at_work {
        assert!(gates.take(place, 5, now).await.unwrap().is_done());
    }
    let refused = Place { record: 0, ..further(&stack, 9) };
    for _ in 0..3 {
        assert!(gates.take(&refused, 5, now).await.unwrap().is_done());
        gates.refuse(&refused, REFUSAL).await.unwrap();
    }
    let gate = gates.get("parcel").await.unwrap().unwrap();
    assert!(!gates.refused_enough(&gate, 5, now).await.unwrap(), "four are under way");
    gates.release(&at_work[0]).await.unwrap();
    assert!(gates.refused_enough(&gate, 5, now).await.unwrap());
}

/// The refusals of another version of the policy are forgotten, those of the same are not.
#[tokio::test(start_paused = true)]
async fn calls_refused_in_further_records_are_counted_by_version() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    let mut counted = Vec::new();
    for (holder, version) in [1, 1, 2, 2, 1].into_iter().enumerate() {
        let place = further(&stack, holder as u128);
        assert!(gates.take(&place, 2, now).await.unwrap().is_done());
        let refusal = RefusedCall { version: Uuid::from_u128(version), ..REFUSAL };
        counted.push(gates.refuse(&place, refusal).await.unwrap().unwrap().refusals);
    }
    assert_eq!(counted, [1, 2, 1, 2, 1]);
    assert_eq!(stack.places("parcel").await, 0);
}

#[tokio::test(start_paused = true)]
async fn no_place_is_given_in_a_further_record_while_the_kind_stands_still() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    let place = further(&stack, 1);
    assert!(gates.take(&place, 2, now).await.unwrap().is_done());
    let gate = gates.refuse(&place, REFUSAL).await.unwrap().unwrap();
    assert!(gates.stop(&gate, "no", now, None).await.unwrap());
    let denied = gates.take(&place, 2, now).await.unwrap();
    assert!(matches!(denied, Write::Refused(Denied::StandsStill(gate)) if gate.stopped.is_some()));
    assert_eq!(stack.places("parcel").await, 0);
}

/// A batch that finds its record full looks where there is room.
#[tokio::test(start_paused = true)]
async fn a_record_with_a_free_place_is_found() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    for (record, random) in (0..9).zip([7, 1, 99, 12, 4, 5, 6, 8, 2]) {
        assert!(gates.take(&Place { record, ..further(&stack, record.into()) }, 10, now).await.unwrap().is_done());
        let free = gates.free_record("parcel", 10, now, random).await.unwrap().unwrap();
        assert!(free > record && free < 10, "{free}");
    }
    assert_eq!(gates.free_record("parcel", 9, now, 1).await.unwrap(), None, "all are held");
    assert_eq!(gates.free_record("parcel", 1, now, 1).await.unwrap(), None, "there is one record");
}

/// The rate is the kind's: a place without a time is released again.
#[tokio::test(start_paused = true)]
async fn a_call_in_a_further_record_takes_its_time_from_the_gate() {
    let (stack, gates) = gates(Crash::never()).await;
    let rate = serde_json::from_value(json!({"calls": 1, "per": "minute", "burst": 1})).unwrap();
    let now = stack.world.now();
    let ask = Allowance::of(&rate).unwrap().ask(Spends { tasks: 1, weight: Weight::default() }, false).at(now, 0);
    let place = further(&stack, 1);
    let Write::Done(gate) = gates.take_in_time(&place, 2, now, Some(&ask)).await.unwrap() else { panic!("none") };
    assert!(gate.pace.given(&ask, place.holder).is_some());
    gates.release(&place).await.unwrap();
    for place in [further(&stack, 2), Place { record: 0, ..further(&stack, 3) }] {
        let denied = gates.take_in_time(&place, 2, now, Some(&ask)).await.unwrap();
        assert!(matches!(denied, Write::Refused(Denied::NotYet(gate)) if gate.pace.verdict(&ask) != Verdict::Go));
        assert_eq!(stack.places("parcel").await, 0);
    }
}

/// A refusal that is counted while the call runs is forgotten when the call works, and only then.
#[tokio::test(start_paused = true)]
async fn a_call_that_works_in_a_further_record_ends_a_row_of_refusals() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    let (works, refused) = (further(&stack, 1), Place { record: 0, ..further(&stack, 2) });
    for place in [&works, &refused] {
        assert!(gates.take(place, 2, now).await.unwrap().is_done());
    }
    assert_eq!(gates.refuse(&refused, REFUSAL).await.unwrap().unwrap().refusals, 1);
    gates.works(&works).await.unwrap();
    assert_eq!(gates.get("parcel").await.unwrap().unwrap().refusals, 0);
    assert_eq!(stack.places("parcel").await, 0);
}

/// As many calls as a kind may have may still be under way after a restart, and keep all its places, in whichever records.
#[tokio::test(start_paused = true)]
async fn calls_that_may_go_on_keep_places_in_all_records() {
    let (stack, gates) = gates(Crash::never()).await;
    let now = stack.world.now();
    for holder in 0..3 {
        gates.keep_place(&Place { record: 0, ..further(&stack, holder) }, 3).await.unwrap();
    }
    for record in 0..3 {
        assert!(!gates.take(&Place { record, ..further(&stack, 9) }, 3, now).await.unwrap().is_done(), "{record}");
    }
    gates.keep_place(&Place { record: 0, ..further(&stack, 4) }, 3).await.unwrap();
    assert_eq!(gates.held("parcel", 3, now).await.unwrap(), 4, "it works, too");
    gates.clear("parcel", 3).await.unwrap();
    assert_eq!(gates.held("parcel", 3, now).await.unwrap(), 0);
}
