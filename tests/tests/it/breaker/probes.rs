//! What the end of a probe, and of other calls, writes in the gate of a kind that stands still, or did.

use std::time::Duration;

use fanfold::store::gates::{Gate, RefusedCall};
use fanfold::store::places::{Party, Place};
use fanfold_tests::{Crash, ScriptedApi, TestStack};
use serde_json::json;

use super::{gate, policy};

/// A place in the kind's gate, until a minute from now.
fn place(stack: &TestStack, n: u128) -> Place {
    let until = stack.world.now().plus(Duration::from_secs(60));
    Place { record: 0, party: Party::Kind("parcel".to_owned()), holder: uuid::Uuid::from_u128(n), until }
}

/// Stops the kind by a refusal of each of these places. Returns its gate.
async fn stop(stack: &TestStack, places: &[Place], version: u128) -> Gate {
    let refusal = RefusedCall { target: "117", version: uuid::Uuid::from_u128(version), answer: "429" };
    for place in places {
        assert!(stack.gates.take(place, 10, stack.world.now()).await.unwrap().is_done());
        stack.gates.refuse(place, refusal).await.unwrap();
    }
    let probe_at = stack.world.now();
    assert!(stack.gates.stop(&gate(stack).await, "429", probe_at, None).await.unwrap());
    gate(stack).await
}

/// The kind resumed while a probe was made, as its policy has changed, and perhaps stands still again.
#[tokio::test(start_paused = true)]
async fn a_probe_says_nothing_of_another_stop() {
    for stops_again in [false, true] {
        for works in [false, true] {
            let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
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
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
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
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let slow = place(&stack, 9);
    assert!(stack.gates.take(&slow, 10, stack.world.now()).await.unwrap().is_done());
    let stopped = stop(&stack, &[1, 2, 3].map(|n| place(&stack, n)), 1).await;
    stack.gates.works(&slow).await.unwrap();
    let after = gate(&stack).await;
    assert_eq!((after.targets, after.refusals), (stopped.targets, stopped.refusals));
    assert!(after.places.is_empty(), "its place is released");
}
