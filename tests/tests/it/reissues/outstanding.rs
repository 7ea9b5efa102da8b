//! Outstanding items: what they wait for is woken, and what is in flight stays so.

use fanfold::control::Woken;
use fanfold::ids::ItemId;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::ItemState;
use fanfold_tests::{QueueName, TestStack, order};
use serde_json::json;
use uuid::Uuid;

async fn wake(stack: &TestStack, fanout: Uuid) -> Woken {
    let header = stack.header(fanout).await;
    let page = stack.tracking.items_in(&header, None, &[ItemState::Pending], 1_000).await.unwrap();
    assert_eq!(page.next, None);
    stack.control.wake_items(&stack.tracking, &page.items).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn lost_messages_are_made_again_without_a_sweep() {
    let stack = TestStack::with(json!({"linger": 0, "max_batch": 2, "max_in_flight": 5})).await;
    let (fanout, ids) = stack.open(6, true).await;
    let task = |(n, id): (usize, &ItemId)| order(Some(*id), "117", n);
    stack.register(ids[..3].iter().enumerate().map(task).collect()).await;
    // The messages about what waits are lost, and then those about batches.
    while !stack.take(QueueName::Elect).await.is_empty() || !stack.take(QueueName::Group).await.is_empty() {}
    assert_eq!(stack.backlog().await, 0);
    let woken = wake(&stack, fanout).await;
    assert_eq!((woken.waiting, woken.without_task), (3, 3));
    stack.deliver(QueueName::Elect).await;
    stack.minutes(20).await;
    assert_eq!(stack.item(&ids[0]).await, ItemState::Succeeded);
    let woken = wake(&stack, fanout).await;
    assert_eq!(woken, Woken { without_task: 3, ..Woken::default() });
    assert_eq!(stack.header(fanout).await.state, FanoutState::Sealed);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_is_not_called_twice() {
    let stack = TestStack::with(json!({"linger": 1, "max_batch": 10})).await;
    let (fanout, ids) = stack.open(4, true).await;
    stack.register_items(&ids).await;
    while stack.api.seen().is_empty() {
        for queue in [QueueName::Elect, QueueName::Group] {
            stack.deliver(queue).await;
        }
        let lost = stack.take(QueueName::Handle).await;
        if !lost.is_empty() {
            let woken = wake(&stack, fanout).await;
            assert_eq!((woken.in_flight, woken.waiting), (4, 0));
            wake(&stack, fanout).await;
            stack.hand(QueueName::Handle, lost).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    stack.drain().await;
    assert_eq!((stack.api.seen().len(), stack.header(fanout).await.state), (1, FanoutState::Completed));
}
