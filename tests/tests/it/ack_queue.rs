//! The queue `ack`: ranges and bitfields, and which message fails when some of its items do not exist.

use fanfold_tests::{QueueName, TestStack, delivery};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn ranges_and_masks_are_taken_and_only_what_names_no_item_fails() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 100, "a").await;
    let group = format!("{fanout}:{}", ids[0].group);
    let messages = vec![
        delivery("range", json!({"items": [format!("{group}:0-49")]})),
        delivery("mask", json!({"failed": [{"group": group, "mask": "AAAAAAAA/w=="}]})),
        delivery("again", json!({"items": [format!("{group}:40-60"), {"group": group, "mask": "/w=="}]})),
        delivery("beyond", json!({"items": [format!("{group}:90-101")]})),
        delivery("reversed", json!({"items": [format!("{group}:9-5")]})),
        delivery("mask beyond", json!({"items": [{"group": group, "mask": format!("{}AQ==", "A".repeat(20))}]})),
    ];
    let mut failed = stack.hand(QueueName::Ack, messages).await;
    failed.sort_unstable();
    assert_eq!(failed, ["beyond", "mask beyond", "reversed"]);
    let [record] = &stack.tracking.groups.get_many(&[ids[0].group]).await.unwrap()[..] else { panic!() };
    assert_eq!(record.pending.iter().collect::<Vec<_>>(), (61..90).collect::<Vec<_>>());
    // What comes in one invocation counts together: failed before succeeded.
    assert_eq!(record.failed.iter().collect::<Vec<_>>(), (48..56).collect::<Vec<_>>());
    let rest = delivery("rest", json!({"items": [format!("{group}:61-89")]}));
    assert!(stack.hand(QueueName::Ack, vec![rest]).await.is_empty());
    let fanout = stack.tracking.seal(fanout).await.unwrap();
    assert_eq!((fanout.complete(), fanout.done, fanout.failed), (true, 100, 8));
}
