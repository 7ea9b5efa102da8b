//! The buffer of acks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_client::{AckBuffer, AckError, AckMessage, AckSender, GroupName, HttpAcks, Item, OpenFanout, Sent};
use uuid::Uuid;

use super::stack;

/// Takes messages, unless it is down.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeAcks {
    pub(super) down: Arc<AtomicBool>,
    pub(super) texts: Arc<Mutex<Vec<String>>>,
}

impl AckSender for FakeAcks {
    fn limit(&self) -> usize {
        1_024
    }

    async fn send(&self, messages: &[AckMessage]) -> Sent {
        let mut sent = Sent::default();
        for (at, message) in messages.iter().enumerate() {
            if self.down.load(Ordering::SeqCst) {
                sent.unsent.insert(at, "the queue is down".to_owned());
            } else {
                self.texts.lock().unwrap().push(serde_json::to_string(message).unwrap());
            }
        }
        sent
    }
}

pub(super) fn item(group: u128, index: u16) -> Item {
    Item { of: GroupName { fanout: Uuid::from_u128(1), group: Uuid::from_u128(group) }, index }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_an_error_and_stays() {
    let acks = FakeAcks::default();
    acks.down.store(true, Ordering::SeqCst);
    let buffer = AckBuffer::with_max_age(acks.clone(), None);
    let mut errors = 0;
    for group in 0..20 {
        errors += usize::from(buffer.succeeded(item(group, 0)).await.is_err());
    }
    assert!(errors > 0, "full messages are sent at once");
    let failed = buffer.flush().await;
    assert!(matches!(failed, Err(AckError::NotSent { items: 20, .. })), "{failed:?}");
    assert!(buffer.len() == 20 && buffer.contains(item(7, 0)));
    acks.down.store(false, Ordering::SeqCst);
    buffer.flush().await.unwrap();
    assert!(buffer.is_empty());
    let said = acks.texts.lock().unwrap().concat();
    assert!((0..20).all(|group| said.matches(&item(group, 0).to_string()).count() == 1), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_ack_is_sent_by_time_and_again_until_it_is_sent() {
    let acks = FakeAcks::default();
    acks.down.store(true, Ordering::SeqCst);
    let buffer = AckBuffer::new(acks.clone());
    buffer.succeeded(item(1, 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(matches!(buffer.succeeded(item(1, 2)).await, Err(AckError::NotSent { .. })), "the next call reports it");
    acks.down.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(buffer.is_empty());
    assert_eq!(acks.texts.lock().unwrap().concat(), format!(r#"{{"items":["{}-2"]}}"#, item(1, 1)));
    buffer.failed(item(1, 3)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(buffer.is_empty(), "and so is what comes later");
}

#[tokio::test(start_paused = true)]
async fn of_several_acks_of_an_item_the_first_counts() {
    let acks = FakeAcks::default();
    let buffer = AckBuffer::with_max_age(acks.clone(), None);
    buffer.failed(item(1, 1)).await.unwrap();
    buffer.succeeded(item(1, 1)).await.unwrap();
    buffer.flush().await.unwrap();
    assert_eq!(acks.texts.lock().unwrap().concat(), format!(r#"{{"failed":["{}"]}}"#, item(1, 1)));
}

#[tokio::test]
async fn items_that_do_not_exist_are_named_once() {
    let (_stack, fanfold) = stack().await;
    let opened = fanfold.open(&OpenFanout { items: 10, ..OpenFanout::default() }).await.unwrap();
    let of = opened.items().next().unwrap().of;
    let buffer = AckBuffer::with_max_age(HttpAcks(fanfold.clone()), None);
    for index in [3, 4, 10, 12, 13] {
        buffer.succeeded(Item { of, index }).await.unwrap();
    }
    match buffer.flush().await {
        Err(AckError::Refused { refused }) => {
            assert_eq!(refused.len(), 1);
            assert_eq!(refused[0].items, ["10", "12-13"]);
        }
        other => panic!("{other:?}"),
    }
    buffer.succeeded(Item { of, index: 11 }).await.unwrap();
    assert!(matches!(buffer.flush().await, Err(AckError::Refused { .. })), "if nothing else is there, too");
    assert!(buffer.flush().await.unwrap().is_empty() && buffer.is_empty());
}
