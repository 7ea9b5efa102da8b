//! Places: how much of a step one party may hold at once.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::store::places::{Places, Taken};
use fanfold_tests::{Crash, Moment, ScriptedApi, Stack};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

const KEY: &str = "places/endpoint/https://example.com:443";
const LEASE: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp(1_800_000_000_000);

async fn stack(crash: Crash) -> (Stack, Places) {
    let policy = json!({"kind": "parcel", "target": "content.depot", "handler": {"url": "https://a.example"}});
    let stack = Stack::new(policy, ScriptedApi::always_succeeds(), crash).await;
    let places = Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap());
    (stack, places)
}

fn holder(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

#[tokio::test(start_paused = true)]
async fn as_many_as_may_get_a_place_and_no_more() {
    let (_stack, places) = stack(Crash::never()).await;
    let taken = join_all((0..20).map(|n| places.take(KEY, holder(n), 5, LEASE, NOW))).await;
    let taken: Vec<Taken> = taken.into_iter().map(Result::unwrap).collect();
    assert_eq!(taken.iter().filter(|taken| **taken == Taken::Yes).count(), 5);
    let full = Taken::Full { until: NOW.plus(LEASE) };
    assert_eq!(taken.iter().filter(|taken| **taken == full).count(), 15);
    assert_eq!(places.take("places/endpoint/other", holder(1), 5, LEASE, NOW).await.unwrap(), Taken::Yes);
}

#[tokio::test(start_paused = true)]
async fn a_place_given_back_is_free() {
    let (_stack, places) = stack(Crash::never()).await;
    assert_eq!(places.take(KEY, holder(1), 1, LEASE, NOW).await.unwrap(), Taken::Yes);
    places.give_back(KEY, holder(2)).await.unwrap();
    assert!(matches!(places.take(KEY, holder(2), 1, LEASE, NOW).await.unwrap(), Taken::Full { .. }));
    for _ in 0..2 {
        places.give_back(KEY, holder(1)).await.unwrap();
    }
    assert_eq!(places.take(KEY, holder(2), 1, LEASE, NOW).await.unwrap(), Taken::Yes);
    places.give_back("places/endpoint/nobody", holder(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_holds_a_place_keeps_it_for_another_lease() {
    let (_stack, places) = stack(Crash::never()).await;
    let later = NOW.plus(LEASE / 2);
    for now in [NOW, later] {
        assert_eq!(places.take(KEY, holder(1), 1, LEASE, now).await.unwrap(), Taken::Yes);
    }
    let full = places.take(KEY, holder(2), 1, LEASE, NOW.plus(LEASE)).await.unwrap();
    assert_eq!(full, Taken::Full { until: later.plus(LEASE) });
}

#[tokio::test(start_paused = true)]
async fn places_of_the_dead_are_taken_by_others() {
    let (_stack, places) = stack(Crash::never()).await;
    for n in 0..35 {
        assert_eq!(places.take(KEY, holder(n), 35, LEASE, NOW).await.unwrap(), Taken::Yes);
    }
    let after = NOW.plus(LEASE);
    // Even where fewer may be held than before.
    for n in 100..103 {
        assert_eq!(places.take(KEY, holder(n), 3, LEASE, after).await.unwrap(), Taken::Yes, "{n}");
    }
    let full = Taken::Full { until: after.plus(LEASE) };
    assert_eq!(places.take(KEY, holder(103), 3, LEASE, after).await.unwrap(), full);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_takes_one_place() {
    for at in 1..=2 {
        let (_stack, places) = stack(Crash::new(at, Moment::AnswerLost)).await;
        assert_eq!(places.take(KEY, holder(1), 2, LEASE, NOW).await.unwrap(), Taken::Yes);
        assert_eq!(places.take(KEY, holder(2), 2, LEASE, NOW).await.unwrap(), Taken::Yes);
        assert!(matches!(places.take(KEY, holder(3), 2, LEASE, NOW).await.unwrap(), Taken::Full { .. }));
    }
}
