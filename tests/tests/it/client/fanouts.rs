//! A fan-out from its opening to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold_client::{AckBuffer, ClientError, Entry, HttpAcks, Item, ItemsState, OpenFanout, State};
use futures::TryStreamExt;

use super::stack;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_fanout_is_opened_added_to_sealed_acked_and_awaited() {
    let (_stack, fanfold) = stack().await;
    let opened =
        fanfold.open(&OpenFanout { user_key: Some("order 4711".into()), ..OpenFanout::default() }).await.unwrap();
    assert_eq!((opened.state, opened.total, opened.has_ended()), (State::Open, 0, false));
    let added = fanfold.add(opened.id, 7_170, Some("page-1")).await.unwrap();
    assert_eq!(added, fanfold.add(opened.id, 7_170, Some("page-1")).await.unwrap());
    let items: Vec<Item> = added.items().collect();
    assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), 7_170);
    let groups: BTreeSet<_> = fanfold.groups(opened.id).try_collect().await.unwrap();
    assert_eq!(groups, added.groups.iter().copied().collect());
    assert!(!fanfold.seal(opened.id).await.unwrap().complete);
    let answer = fanfold.ack(&[Entry::from(items[0])], &[Entry::from(items[1])]).await.unwrap();
    assert_eq!(answer.fanouts[0].user_key.as_deref(), Some("order 4711"));
    let waited = fanfold.wait(opened.id, Duration::from_millis(50)).await;
    assert!(matches!(waited, Err(ClientError::NotEnded(fanout)) if fanout.id == opened.id));
    let acks = AckBuffer::new(HttpAcks(fanfold.clone()));
    for item in &items[2..] {
        acks.succeeded(*item).await.unwrap();
    }
    assert!(acks.flush().await.unwrap()[&opened.id].complete);
    let end = fanfold.wait(opened.id, SOON).await.unwrap();
    assert_eq!((end.state, end.total, end.succeeded, end.failed), (State::Completed, 7_170, 7_169, 1));
}

#[tokio::test]
async fn scattered_acks_are_all_applied_and_items_are_listed() {
    let (_stack, fanfold) = stack().await;
    let opened = fanfold.open(&OpenFanout { items: 20_000, seal: true, ..OpenFanout::default() }).await.unwrap();
    let items: Vec<Item> = opened.items().collect();
    let acks = AckBuffer::with_max_age(HttpAcks(fanfold.clone()), None);
    for item in items.iter().step_by(3) {
        acks.failed(*item).await.unwrap();
    }
    assert!(!acks.flush().await.unwrap()[&opened.id].complete);
    let failed: BTreeSet<Item> = fanfold.items(opened.id, ItemsState::Failed).try_collect().await.unwrap();
    assert_eq!(failed, items.iter().step_by(3).copied().collect());
    for item in &items {
        acks.succeeded(*item).await.unwrap();
    }
    assert!(acks.flush().await.unwrap()[&opened.id].complete);
    let end = fanfold.get(opened.id).await.unwrap();
    assert_eq!((end.failed, end.succeeded), (6_667, 13_333));
}

#[tokio::test]
async fn a_cancelled_fanout_ends() {
    let (_stack, fanfold) = stack().await;
    let opened = fanfold.open(&OpenFanout { items: 10, ..OpenFanout::default() }).await.unwrap();
    for _ in 0..2 {
        assert_eq!(fanfold.cancel(opened.id).await.unwrap().state, State::Cancelled);
    }
    let end = fanfold.wait(opened.id, SOON).await.unwrap();
    assert_eq!((end.state, end.complete, end.missing), (State::Cancelled, false, 10));
}

#[tokio::test]
async fn a_problem_has_its_code() {
    let (_stack, fanfold) = stack().await;
    let unknown = fanfold.seal(uuid::Uuid::nil()).await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown_fanout"), "{unknown}");
    assert!(fanfold_client::Fanfold::new("localhost:8080").is_err());
}
