//! What happens beside a cancellation of tasks of a bundle, and to one that fills when all workers die.

use fanfold_sweep::SweepRequest;
use fanfold_tests::{Crash, Moment, ScriptedApi, at_every_request, lane};

use super::*;

/// A batch claims some of the tasks while all are being cancelled, at a moment when a request is late. Returns that request.
async fn cancelled_beside_a_claim(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash.waiting()).await;
    let tasks = stack.register_orders("117", 0..6).await;
    let bundle = *stack.waiting(&tasks).await.bundles.keys().next().unwrap();
    stack.crash.begin();
    let claims = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let wanted: Masks = [(bundle, Bits::ones(4))].into_iter().collect();
        stack.tasks.claim_bundles(&wanted, BTreeMap::new(), &lane(), Uuid::from_u128(1)).await.unwrap()
    };
    let (cancelled, claimed) = futures::join!(stack.cancelling.cancel(tasks.iter().copied()), claims);
    let late = stack.crash.struck()?;
    assert!(stack.waiting(&tasks).await.is_empty(), "{late}: some still wait");
    let claimed: u64 = claimed.iter().map(|(_, won)| won.count()).sum();
    assert_eq!(cancelled.unwrap().len() as u64 + claimed, 6, "{late}");
    Some(late)
}

#[tokio::test(start_paused = true)]
async fn what_no_batch_claims_meanwhile_is_cancelled() {
    let late = at_every_request(Moment::Late(Duration::from_secs(60)), cancelled_beside_a_claim).await;
    assert!(late.len() > 3, "{late:?}");
}

/// A sweep that knows all workers to be dead does not wait until the bundle is old.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_bundle_whose_worker_is_known_to_be_dead_are_freed_at_once() {
    let stack = TestStack::with(json!({})).await;
    let (_, tasks) = begun(&stack).await;
    stack.tasks.insert(&tasks).await.unwrap();
    stack.sweeper.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await.unwrap();
    stack.drain().await;
    stack.assert_settled(&ids(&tasks), 10).await;
}
