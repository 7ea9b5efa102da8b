//! The list of lanes.

use std::collections::BTreeMap;

use fanfold::control::{LaneStanding, Scope};
use fanfold::members::Members;
use fanfold_tests::{QueueName, TestStack};
use serde_json::json;

use super::{kind, lose_all, pause, target};

/// All pages of a list, by lane. None is there twice.
async fn list(stack: &TestStack, scope: &Scope, only_paused: bool, most: usize) -> BTreeMap<String, LaneStanding> {
    let (mut found, mut after) = (BTreeMap::new(), None);
    loop {
        let page = stack.control.lanes(scope, only_paused, after, most).await.unwrap();
        for lane in page.lanes {
            let before = found.insert(lane.lock.lane.to_string(), lane);
            assert!(before.is_none(), "{before:?} is listed twice");
        }
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn busy_ones_and_those_that_wait_are_paged_and_none_twice() {
    let stack = TestStack::with(json!({"max_batch": 4, "max_in_flight": 1})).await;
    for depot in 0..23 {
        stack.register_orders(&depot.to_string(), 0..1 + depot).await;
    }
    stack.deliver(QueueName::Elect).await;
    stack.pass(&[QueueName::Group]).await;
    for depot in 23..40 {
        stack.register_orders(&depot.to_string(), 0..1).await;
        stack.register_orders(&depot.to_string(), 1..8).await;
    }
    lose_all(&stack).await;
    for most in [1, 7, 100] {
        let all = list(&stack, &kind(), false, most).await;
        assert_eq!(all.len(), 40, "{most}");
        assert_eq!(all, list(&stack, &Scope::All, false, most).await);
        let (busy, waits) = (&all["parcel:0:22"], &all["parcel:0:30"]);
        assert_eq!((busy.lock.in_flight.len(), busy.pending.tasks), (1, 19));
        assert_eq!((waits.lock.in_flight.len(), waits.pending.tasks, waits.pending.bytes), (0, 8, 8 * 256));
        assert!(waits.pending.oldest.is_some() && !waits.pending.more && !waits.hold.paused);
        assert_eq!((all["parcel:0:1"].pending.tasks, all["parcel:0:1"].pending.oldest), (0, None));
    }
    // Notes of cancellations that are not finished are no lanes, and hide none.
    for _ in 0..9 {
        let ids = Members::new([fanfold::ids::TaskId::Single(stack.world.uuid())]);
        stack.tasks.note_cancelling(stack.world.uuid(), &ids).await.unwrap();
    }
    for most in [1, 7] {
        assert_eq!(list(&stack, &kind(), false, most).await.len(), 40, "{most}");
    }
    assert_eq!(list(&stack, &target("30"), false, 5).await.len(), 1);
    assert_eq!(list(&stack, &Scope::Kind("letter".to_owned()), false, 5).await.len(), 0);
    pause(&stack, &target("30")).await;
    let paused = list(&stack, &Scope::All, true, 9).await;
    assert_eq!(paused.keys().collect::<Vec<_>>(), ["parcel:0:30"]);
    assert_eq!(paused["parcel:0:30"].paused_by, [target("30")]);
}
