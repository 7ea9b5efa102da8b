//! Carlyle, the first service of this idea. Its other faults are tests in `tracking.rs`.

use std::time::Duration;

use fanfold::ids::ItemId;
use fanfold::tracking::TrackingError;
use fanfold_batch_api::Answer;

use super::{done, stack};

/// Lets others go first.
async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Carlyle: add and close race. Either the items are refused, or they count.
#[tokio::test(start_paused = true)]
async fn an_add_that_races_with_the_seal_counts_or_is_refused() {
    let mut refused = 0;
    for round in 0..40 {
        let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
        let (fanout, _) = stack.open(0, false).await;
        let first = stack.add(fanout, 1, "first").await;
        // One of the two has a start of some turns.
        let (add_after, seal_after) = if round % 2 == 0 { (round / 2, 0) } else { (0, round / 2) };
        let add = async {
            turns(add_after).await;
            stack.tracking.add(fanout, 5, Some("second")).await
        };
        let seal = async {
            turns(seal_after).await;
            stack.tracking.seal(fanout).await
        };
        let (added, sealed) = tokio::join!(add, seal);
        sealed.unwrap();
        stack.ack.apply(&done(&first)).await.unwrap();
        let total = match added {
            Ok(groups) => {
                let second: Vec<ItemId> = fanfold::ids::expand(fanout, &groups).collect();
                assert!(!stack.tracking.fanouts.get(fanout).await.unwrap().unwrap().complete(), "five are left");
                stack.ack.apply(&done(&second)).await.unwrap();
                6
            }
            Err(TrackingError::NotOpen { .. }) => {
                refused += 1;
                1
            }
            Err(error) => panic!("{error}"),
        };
        stack.drain().await;
        let completions = stack.completions().await;
        assert_eq!((completions.len(), completions[0].total), (1, total));
    }
    assert!((1..40).contains(&refused), "each comes first sometimes: {refused} were refused");
}

/// Carlyle: its reaper deletes closed batches that are still draining, because acks do not count as activity.
#[tokio::test(start_paused = true)]
async fn a_fanout_that_drains_slowly_is_kept() {
    let stack = stack(|_| Ok(Answer::AllSucceeded)).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 3, "a").await;
    stack.seal(fanout).await;
    for item in &ids {
        assert_eq!((stack.expiring("FanoutsTable").await, stack.expiring("GroupsTable").await), (0, 0));
        tokio::time::sleep(Duration::from_secs(6 * 3_600)).await;
        stack.sweep().await;
        stack.ack.apply(&done(std::slice::from_ref(item))).await.unwrap();
    }
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    assert_eq!(
        (stack.expiring("FanoutsTable").await, stack.expiring("GroupsTable").await),
        (1, 1),
        "what ended expires"
    );
}
