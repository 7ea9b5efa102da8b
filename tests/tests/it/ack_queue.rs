//! The queue `ack`: ranges and bitfields, and which message fails when some of its items do not exist.

use fanfold::delivery::Delivery;
use fanfold_tests::{QueueName, TestStack};
use serde_json::{Value, json};

fn message(id: &str, body: &Value) -> Delivery {
    Delivery { message_id: id.to_owned(), body: body.to_string(), receive_count: 1 }
}

#[tokio::test(start_paused = true)]
async fn ranges_and_masks_are_taken_and_only_what_names_no_item_fails() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 100, "a").await;
    let group = format!("{fanout}:{}", ids[0].group);
    let messages = vec![
        message("range", &json!({"items": [format!("{group}:0-49")]})),
        message("mask", &json!({"failed": [{"group": group, "mask": "AAAAAAAA/w=="}]})),
        message("again", &json!({"items": [format!("{group}:40-60"), {"group": group, "mask": "/w=="}]})),
        message("beyond", &json!({"items": [format!("{group}:90-101")]})),
        message("reversed", &json!({"items": [format!("{group}:9-5")]})),
        message("mask beyond", &json!({"items": [{"group": group, "mask": format!("{}AQ==", "A".repeat(20))}]})),
    ];
    let mut failed = stack.hand(QueueName::Ack, messages).await;
    failed.sort_unstable();
    assert_eq!(failed, ["beyond", "mask beyond", "reversed"]);
    let [record] = &stack.tracking.groups.get_many(&[ids[0].group]).await.unwrap()[..] else { panic!() };
    assert_eq!(record.pending.iter().collect::<Vec<_>>(), (61..90).collect::<Vec<_>>());
    // What comes in one invocation counts together: failed before succeeded.
    assert_eq!(record.failed.iter().collect::<Vec<_>>(), (48..56).collect::<Vec<_>>());
    assert!(
        stack
            .hand(QueueName::Ack, vec![message("rest", &json!({"items": [format!("{group}:61-89")]}))])
            .await
            .is_empty()
    );
    let fanout = stack.tracking.seal(fanout).await.unwrap();
    assert_eq!((fanout.complete(), fanout.done, fanout.failed), (true, 100, 8));
}
