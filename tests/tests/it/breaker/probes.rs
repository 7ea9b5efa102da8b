//! What the end of a probe, and of other calls, writes in the gate of a kind that stands still, or did.

use std::time::Duration;

use fanfold::pacing::{Allowance, Ask, Spends};
use fanfold::policy::Weight;
use fanfold::store::gates::{Gate, RefusedCall};
use fanfold::store::pace::Paced;
use fanfold::store::places::{Party, Place};
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::json;

use super::{gate, policy};

async fn stack() -> TestStack {
    TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await
}

/// A place in the kind's gate, until a minute from now.
fn place(stack: &TestStack, n: u128) -> Place {
    let until = stack.world.now().plus(Duration::from_secs(60));
    Place { record: 0, party: Party::Kind("parcel".to_owned()), holder: uuid::Uuid::from_u128(n), until }
}

fn refusal(version: u128) -> RefusedCall<'static> {
    RefusedCall { target: "117", version: uuid::Uuid::from_u128(version), answer: "429" }
}

/// A call is refused in each of these places. Returns the kind's gate.
async fn refuse(stack: &TestStack, places: &[Place], version: u128) -> Gate {
    for place in places {
        assert!(stack.gates.take(place, 10, stack.world.now()).await.unwrap().is_done());
        stack.gates.refuse(place, refusal(version)).await.unwrap();
    }
    gate(stack).await
}

/// Stops the kind by a refusal of each of these places. Returns its gate.
async fn stop(stack: &TestStack, places: &[Place], version: u128) -> Gate {
    let (refused, probe_at) = (refuse(stack, places, version).await, stack.world.now());
    assert!(stack.gates.stop(&refused, "429", probe_at, None).await.unwrap());
    gate(stack).await
}

/// The kind resumed while a probe was made, as its policy has changed, and perhaps stands still again.
#[tokio::test(start_paused = true)]
async fn a_probe_says_nothing_of_another_stop() {
    for stops_again in [false, true] {
        for works in [false, true] {
            let stack = stack().await;
            let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
            let (still, probe) = (stopped.stopped.clone().unwrap(), place(&stack, 4));
            assert!(stack.gates.take_probe(&probe, &stopped, &still, 10, None).await.unwrap().is_some());
            assert!(stack.gates.forget(&stopped, &still, None).await.unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stops_again {
                stop(&stack, &[5, 6, 7].map(|n| place(&stack, n)), 2).await;
            }
            let before = gate(&stack).await;
            let refusal = RefusedCall { target: "117", version: uuid::Uuid::from_u128(1), answer: "old" };
            if works {
                assert!(!stack.gates.resume(&probe, &stopped, None).await.unwrap());
            } else {
                stack.gates.still_stopped(&probe, &stopped, refusal, stack.world.now()).await.unwrap();
            }
            let after = gate(&stack).await;
            assert!(after.places.is_empty(), "its place is released: {after:?}");
            assert_eq!((&after.stopped, after.refusals), (&before.stopped, before.refusals));
        }
    }
}

/// A probe that ends after its lease leaves the next one alone.
#[tokio::test(start_paused = true)]
async fn a_late_probe_does_not_end_the_next_one() {
    let stack = stack().await;
    let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
    let (still, late) = (stopped.stopped.clone().unwrap(), place(&stack, 4));
    assert!(stack.gates.take_probe(&late, &stopped, &still, 10, None).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_secs(90)).await;
    let (now, next) = (gate(&stack).await, place(&stack, 5));
    let still = now.stopped.clone().unwrap();
    assert!(stack.gates.take_probe(&next, &now, &still, 10, None).await.unwrap().is_some());
    stack.gates.leave_probe(&late).await.unwrap();
    let refusal = RefusedCall { target: "117", version: uuid::Uuid::from_u128(1), answer: "late" };
    stack.gates.still_stopped(&late, &stopped, refusal, stack.world.now()).await.unwrap();
    let after = gate(&stack).await;
    assert_eq!(after.stopped.unwrap().probing, Some(next.until));
    assert!(after.places.contains_key(&next.holder));
}

/// A call that began before the kind stopped, and works, does not make room for probes of the targets that were refused.
#[tokio::test(start_paused = true)]
async fn a_call_that_works_forgets_nothing_of_a_kind_that_stands_still() {
    for record in [0, 1] {
        let api = ScriptedApi::always_succeeds();
        let stack = TestStack::with_places_per_record(policy(json!({})), api, Crash::never(), 5).await;
        let slow = Place { record, ..place(&stack, 9) };
        assert!(stack.gates.take(&slow, 10, stack.world.now()).await.unwrap().is_done());
        let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
        stack.gates.works(&slow).await.unwrap();
        let after = gate(&stack).await;
        assert_eq!((after.targets, after.refusals), (stopped.targets, stopped.refusals));
        assert_eq!(stack.places("parcel").await, 0, "its place is released");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_stopped_once_and_by_refusals_that_still_count() {
    let stack = stack().await;
    let refused = refuse(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
    let (works, soon) = (place(&stack, 4), stack.world.now().plus(Duration::from_secs(5)));
    assert!(stack.gates.take(&works, 10, stack.world.now()).await.unwrap().is_done());
    stack.gates.works(&works).await.unwrap();
    assert!(!stack.gates.stop(&refused, "429", soon, None).await.unwrap(), "they are no longer in a row");
    let stopped = stop(&stack, &[5, 6, 7].map(|n| place(&stack, n)), 1).await;
    assert!(!stack.gates.stop(&stopped, "late", soon, None).await.unwrap(), "another worker has stopped it");
    assert_eq!(gate(&stack).await, stopped);
}

/// A worker has read the gate before the last probe ended.
#[tokio::test(start_paused = true)]
async fn no_probe_is_made_before_its_time() {
    let stack = stack().await;
    let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
    let (still, [probe, late]) = (stopped.stopped.clone().unwrap(), [4, 5].map(|n| place(&stack, n)));
    assert!(stack.gates.take_probe(&probe, &stopped, &still, 10, None).await.unwrap().is_some());
    let next = stack.world.now().plus(Duration::from_secs(60));
    stack.gates.still_stopped(&probe, &stopped, refusal(1), next).await.unwrap();
    assert!(stack.gates.take_probe(&late, &stopped, &still, 10, None).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn refusals_before_a_kind_resumes_do_not_count_after_it() {
    for probed in [true, false] {
        let stack = stack().await;
        let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
        let (still, probe) = (stopped.stopped.clone().unwrap(), place(&stack, 4));
        if probed {
            assert!(stack.gates.take_probe(&probe, &stopped, &still, 10, None).await.unwrap().is_some());
            assert!(stack.gates.resume(&probe, &stopped, None).await.unwrap());
        } else {
            assert!(stack.gates.forget(&stopped, &still, None).await.unwrap());
        }
        let after = gate(&stack).await;
        assert_eq!((after.stopped, after.refusals, after.targets.len()), (None, 0, 0));
    }
}

/// A call of ten a minute, where so many go at once.
fn ask(stack: &TestStack, burst: u32) -> Ask {
    let rate = serde_json::from_value(json!({"calls": 10, "per": "minute", "burst": burst})).unwrap();
    let spends = Spends { tasks: 1, weight: Weight::default() };
    Allowance::of(&rate).unwrap().ask(spends, false).at(stack.world.now(), 0)
}

/// The rate has changed. Workers that go by the new one have read the gate before a call got a time by the one before.
#[tokio::test(start_paused = true)]
async fn a_time_that_was_given_since_by_the_rate_before_stays_spent() {
    let stack = stack().await;
    let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
    let (before, after, still) = (ask(&stack, 5), ask(&stack, 9), stopped.stopped.unwrap());
    let spend = async |by: u128| {
        let by = uuid::Uuid::from_u128(by);
        let given = stack.gates.later_time("parcel", None, &before, by).await.unwrap();
        assert!(matches!(given, Paced::Given(_)), "{given:?}");
        gate(&stack).await
    };
    let (read, spent) = (spend(8).await, spend(9).await);
    assert!(spent.pace.full > read.pace.full);
    let probe = stack.gates.take_probe(&place(&stack, 4), &read, &still, 10, Some(&after)).await.unwrap();
    assert_eq!(probe, None);
    stack.gates.promise("parcel", &after, &read.pace).await.unwrap();
    assert_eq!(gate(&stack).await.pace.full, spent.pace.full);
}
