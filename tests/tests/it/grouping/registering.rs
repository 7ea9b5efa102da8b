//! Registering: keys, duplicates, lanes, and requests that are refused.

use fanfold::delivery::Delivery;
use fanfold::ids::TaskId;
use fanfold::messages::TaskRequest;
use fanfold::store::tasks::{Found, Key, KeyRequest, Search};
use fanfold::waiting::Waiting;
use fanfold_register::Registration;
use fanfold_tests::{QueueName, TestStack, delivery, order, policy};
use serde_json::json;
use uuid::Uuid;

use super::lane;

#[tokio::test(start_paused = true)]
async fn a_key_is_accepted_once() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let (_, ids) = stack.open(3, true).await;
    let first = stack.register.register(vec![order(Some(ids[0]), "117", 1)], "a").await.unwrap();
    assert_eq!(first[0].outcome, Registration::Registered);
    let again = stack.register.register(vec![order(Some(ids[0]), "117", 1)], "a").await.unwrap();
    assert_eq!(again[0].outcome, Registration::Known, "a repeated request gets through");
    let other = vec![order(Some(ids[1]), "117", 1), order(Some(ids[2]), "117", 2)];
    let other = stack.register.register(other, "b").await.unwrap();
    assert_eq!(other[0].outcome, Registration::Duplicate { of: TaskId::Item(ids[0]) });
    assert_eq!(other[1].outcome, Registration::Registered);
    stack.drain().await;
    stack.assert_settled(&[TaskId::Item(ids[0]), TaskId::Item(ids[2])], 10).await;
    let completions = stack.completions().await;
    assert_eq!(completions.len(), 1, "the duplicate's item was acked");
    assert_eq!((completions[0].total, completions[0].succeeded, completions[0].duplicates), (3, 2, 1));
}

/// A key is unique among the tasks of its kind.
#[tokio::test(start_paused = true)]
async fn two_kinds_of_task_may_have_one_key_in_a_fanout() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    stack.put_policy(policy(json!({"kind": "letter", "key": "content.order"}))).await;
    let (_, ids) = stack.open(2, true).await;
    stack.register(vec![order(Some(ids[0]), "117", 1)]).await;
    stack.register(vec![TaskRequest { kind: "letter".to_owned(), ..order(Some(ids[1]), "117", 1) }]).await;
    stack.drain().await;
    let kinds: Vec<String> = stack.api.seen().into_iter().map(|seen| seen.call.kind).collect();
    assert_eq!(kinds.len(), 2, "only {kinds:?} was called for");
}

/// A request takes a key and dies; the next one with that key must not be dropped for a task that never comes.
#[tokio::test(start_paused = true)]
async fn a_duplicate_stands_in_for_a_task_that_was_never_stored() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let lost = TaskId::Single(Uuid::from_u128(1));
    let key = Key { scope: "parcel".to_owned(), value: "ORD-1".to_owned() };
    assert_eq!(stack.tasks.take_keys(&[KeyRequest { key, owner: lost }]).await.unwrap()[0].owner, lost);
    let registered = stack.register.register(vec![order(None, "117", 1)], "b").await.unwrap();
    assert_eq!(registered[0].outcome, Registration::Duplicate { of: lost });
    stack.drain().await;
    stack.assert_settled(&[lost], 10).await;
}

/// A duplicate stands in for its key's owner only if that one is not at hand.
#[tokio::test(start_paused = true)]
async fn an_owner_behind_its_duplicate_is_stored_as_itself() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let (duplicate, owner) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let key = Key { scope: "parcel".to_owned(), value: "ORD-7".to_owned() };
    // The invocation that took the key died; its two messages come again in another order.
    stack.tasks.take_keys(&[KeyRequest { key, owner: TaskId::Single(owner) }]).await.unwrap();
    let task = |id, depot: &str| TaskRequest { id: Some(TaskId::Single(id)), ..order(None, depot, 7) };
    stack.register.register(vec![task(duplicate, "117"), task(owner, "900")], "r").await.unwrap();
    let stored = stack.tasks.get(&TaskId::Single(owner)).await.unwrap().unwrap();
    assert_eq!(stored.lane, lane("parcel:0:900"));
}

/// A duplicate names its key's owner, which may be stored in another lane: only that one is woken.
#[tokio::test(start_paused = true)]
async fn a_duplicate_does_not_wake_its_own_lane() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let tasks = vec![order(None, "117", 7), order(None, "900", 7)];
    let first = stack.register.register(tasks, "r").await.unwrap()[0].id;
    let (mut late, soon): (Vec<Delivery>, Vec<Delivery>) =
        stack.take(QueueName::Elect).await.into_iter().partition(|delivery| delivery.body.contains("parcel:0:117"));
    assert_eq!((late.len(), soon.len()), (1, 0), "{soon:?}");
    assert!(stack.hand(QueueName::Elect, soon).await.is_empty());
    stack.drain().await;
    assert!(stack.hand(QueueName::Elect, late.split_off(0)).await.is_empty());
    stack.drain().await;
    stack.assert_settled(&[first], 10).await;
}

/// A task stays in the lane it was stored in, wherever a repeated registration would place it after its policy changed.
#[tokio::test(start_paused = true)]
async fn members_share_the_lane_of_their_batch_although_the_policy_changed() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..2).await;
    stack.take(QueueName::Elect).await;
    stack.put_policy(policy(json!({"target": "content.order"}))).await;
    assert_eq!(stack.register_orders("117", 0..2).await, tasks);
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_bad_task_stores_nothing() {
    let stack = TestStack::with(json!({})).await;
    let mut bad = order(None, "117", 2);
    bad.content = json!({"no_depot": true});
    let error = stack.register.register(vec![order(None, "117", 1), bad], "a").await.unwrap_err();
    assert!(error.to_string().contains("tasks[1].target"), "{error}");
    assert_eq!(stack.backlog().await, 0);
    let search = Search { enough: 10, by_rank: false, counts: false };
    let found = stack.tasks.find(&lane("parcel:0:117"), &Waiting::default(), search).await.unwrap();
    assert_eq!(found, Found::default());
}

#[tokio::test(start_paused = true)]
async fn only_the_bad_message_of_several_fails() {
    let stack = TestStack::with(json!({})).await;
    let good = json!({"tasks": [{"kind": "parcel", "content": {"depot": "117"}}]});
    let single = json!({"kind": "parcel", "content": {"depot": "900"}});
    let deliveries = vec![
        delivery("good", good),
        delivery("single", single),
        delivery("unknown kind", json!({"tasks": [{"kind": "letter", "content": {}}]})),
        delivery("garbage", json!("x")),
        delivery("empty", json!({"tasks": []})),
    ];
    let mut failed = stack.hand(QueueName::Register, deliveries).await;
    failed.sort_unstable();
    assert_eq!(failed, ["empty", "garbage", "unknown kind"]);
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 2);
}
