//! Lanes that are woken at once: what waits there need not wait for a sweep.

mod late;
mod repeated;

use fanfold::grouping::{Bundle, Load, Loads};
use fanfold::ids::TaskId;
use fanfold::masks::Masks;
use fanfold::members::Members;
use fanfold::messages::{GroupMessage, TaskRequest};
use fanfold::policy::{HeadStart, Weight};
use fanfold::store::tasks::{Key, KeyRequest, NewTask};
use fanfold::waiting::Waiting;
use fanfold_register::Registration;
use fanfold_tests::{QueueName, TestStack, lane, message, order};
use serde_json::json;
use uuid::Uuid;

/// A worker stored a task with its key, and was so late that its bundle was declared dead; then it died. The next request with that key frees
/// that task, and is perhaps the last to find it.
#[tokio::test(start_paused = true)]
async fn the_lane_of_a_keys_owner_that_a_duplicate_frees_is_woken() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    let owner = TaskId::Single(Uuid::from_u128(1));
    let key = Key { scope: "parcel".to_owned(), value: "ORD-0".to_owned() };
    stack.tasks.take_keys(&[KeyRequest { key: key.clone(), owner }]).await.unwrap();
    let slots = ([owner].into_iter().collect(), Loads::default());
    let bundle = Bundle::filling(stack.world.uuid(), lane(), slots, stack.world.now());
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    stack.tasks.bury(&bundle).await.unwrap();
    let content = json!({"depot": "117", "order": "ORD-0"}).to_string();
    let (load, head_start) = (Load::default(), HeadStart::NONE);
    let task = NewTask { id: owner, lane: lane(), content, key: Some(key), load, head_start, bundle: Some(bundle.id) };
    stack.tasks.insert(&[task]).await.unwrap();
    let duplicate = TaskId::Single(Uuid::from_u128(2));
    let request = TaskRequest { id: Some(duplicate), ..order(None, "117", 0) };
    let registered = stack.register.register(vec![request], "again").await.unwrap();
    assert_eq!(registered[0].outcome, Registration::Duplicate { of: owner });
    stack.drain().await;
    stack.assert_settled(&[owner], 10).await;
}

/// A leader intended tasks that others have claimed by now. It releases the lock, and what waits beside its intent has no leader.
#[tokio::test(start_paused = true)]
async fn a_leader_that_resigns_after_losing_its_intent_wakes_its_lane() {
    let stack = TestStack::with(json!({"max_batch": 2})).await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        tasks.extend(stack.register_orders("117", n..n + 1).await);
    }
    stack.take(QueueName::Elect).await;
    let (batch, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let lock = stack.locks.acquire(&lane(), batch, 1).await.unwrap().done().unwrap();
    let lost = Members::new(tasks[..2].iter().copied());
    stack.batches.intend(batch, &lane(), &lost, &Masks::default(), Weight::default()).await.unwrap();
    assert_eq!(stack.tasks.claim(&tasks[..2], &lane(), other).await.unwrap().len(), 2);
    let leader = message("leader", &GroupMessage::elected(&lock, batch, Waiting::default()));
    assert!(stack.hand(QueueName::Group, vec![leader.clone()]).await.is_empty());
    // Its worker died after it had released the lock, before it woke the lane: the message comes once more.
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1);
    assert!(stack.hand(QueueName::Group, vec![leader]).await.is_empty());
    stack.drain().await;
    let handled: Vec<TaskId> =
        stack.all_batches().await.iter().flat_map(|batch| batch.members.ids().to_vec()).collect();
    assert_eq!(handled.len(), 2, "{handled:?}");
    assert!(tasks[2..].iter().all(|task| handled.contains(task)), "what is left waits for a sweep");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_resigns_where_nothing_waits_sends_no_hint() {
    let stack = TestStack::with(json!({"max_batch": 2})).await;
    let tasks = stack.register_orders("117", 0..1).await;
    stack.take(QueueName::Elect).await;
    let batch = Uuid::from_u128(1);
    let lock = stack.locks.acquire(&lane(), batch, 1).await.unwrap().done().unwrap();
    stack
        .batches
        .intend(batch, &lane(), &Members::new(tasks.iter().copied()), &Masks::default(), Weight::default())
        .await
        .unwrap();
    stack.tasks.claim(&tasks, &lane(), Uuid::from_u128(2)).await.unwrap();
    let leader = GroupMessage::elected(&lock, batch, Waiting::default());
    assert!(stack.hand(QueueName::Group, vec![message("leader", &leader)]).await.is_empty());
    assert_eq!(stack.backlog().await, 0);
}
