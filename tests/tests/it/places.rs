//! Places: how much of a step one party may hold at once.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::limits::DEAD_PLACES_MAX;
use fanfold::store::places::{Party, Place, Places};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, policy};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp(1_800_000_000_000);

async fn stack(crash: Crash) -> (TestStack, Places) {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let places = Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap());
    (stack, places)
}

/// A receiver and a kind: the one mechanism serves both.
fn parties() -> [Party; 2] {
    [Party::Receiver("https://example.com:443".to_owned()), Party::Kind("parcel".to_owned())]
}

/// A place taken at `now`.
fn place(party: &Party, holder: u128, now: Timestamp) -> Place {
    Place { party: party.clone(), holder: Uuid::from_u128(holder), until: now.plus(LEASE) }
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
