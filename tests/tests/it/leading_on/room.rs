//! Lanes that are paused, that stand still or that have no room, and two batches that end at once.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_paused_lane_is_not_led_on() {
    let api = ScriptedApi::slow(|_| Duration::from_secs(20), |_| Ok(Answer::AllSucceeded));
    let changes = json!({"max_batch": 5, "max_in_flight": 1, "batch_api": {"command": ["truck"], "timeout": 60}});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..12).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let (batch, scope) = (lock(&stack).await.in_flight[0], Scope::Lane(lane()));
    let pause = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        stack.control.pause(&scope).await.unwrap();
    };
    // It is paused while the call runs.
    futures::join!(handle(&stack), pause);
    let paused = lock(&stack).await;
    assert_eq!((paused.holder, paused.in_flight.contains(&batch), paused.waiting), (None, false, true));
    assert_eq!(stack.take(QueueName::Group).await.len(), 0);
    stack.control.resume(&scope).await.unwrap();
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    assert_eq!(stack.all_batches().await.len(), 3);
}

/// A kind that stands still makes no calls; the batch that was led on to waits, and one batch per lane is in flight.
#[tokio::test(start_paused = true)]
async fn a_lane_that_is_led_on_while_its_kind_stands_still_waits() {
    let (status, api) = ScriptedApi::answering(200);
    let changes = json!({"max_batch": 2, "max_in_flight": 1, "linger": 0, "max_attempts": 2});
    let stack = TestStack::new(policy(changes), api.clone(), Crash::never()).await;
    let mut tasks = Vec::new();
    for depot in ["117", "200", "300", "400"] {
        tasks.extend(stack.register_orders(depot, 0..6).await);
    }
    stack.pass(&[QueueName::Group, QueueName::Handle]).await;
    let done = api.seen().len();
    status.store(503, Ordering::Relaxed);
    stack.minutes(30).await;
    assert_eq!(lock(&stack).await.in_flight.len(), 1);
    assert!(api.seen().len() > done);
    status.store(200, Ordering::Relaxed);
    stack.minutes(10).await;
    stack.assert_settled(&tasks, 2).await;
    assert_eq!(stack.all_batches().await.len(), 12, "batches of two");
}

/// Two batches of a lane in flight, and more tasks.
async fn two_in_flight() -> (TestStack, Vec<TaskId>, Vec<Delivery>) {
    let stack = TestStack::with(json!({"max_batch": 3, "max_in_flight": 2})).await;
    let tasks = stack.register_orders("117", 0..12).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Group]).await;
    let two = lock(&stack).await;
    assert_eq!((two.in_flight.len(), two.holder, two.waiting), (2, None, true));
    let messages = stack.take(QueueName::Handle).await;
    assert_eq!(messages.len(), 2);
    (stack, tasks, messages)
}

#[tokio::test(start_paused = true)]
async fn of_two_batches_that_end_at_once_one_leads_on() {
    for (max_in_flight, waits) in [(2, 1), (1, 0)] {
        let (stack, tasks, messages) = two_in_flight().await;
        if max_in_flight == 1 {
            stack.put_policy(policy(json!({"max_batch": 3, "max_in_flight": 1}))).await;
        }
        let before = lock(&stack).await;
        let workers = messages.iter().map(|message| stack.hand(QueueName::Handle, vec![message.clone()]));
        assert!(join_all(workers).await.iter().all(Vec::is_empty));
        let after = lock(&stack).await;
        assert!(after.in_flight.is_empty() && after.epoch == before.epoch + 1);
        let next: Vec<Uuid> = before.in_flight.iter().map(|batch| derived::led_on(*batch)).collect();
        assert!(after.holder.is_some_and(|holder| next.contains(&holder)));
        let messages: Vec<GroupMessage> = take(&stack, QueueName::Group).await;
        assert_eq!(messages.iter().map(|message| Some(message.batch)).collect::<Vec<_>>(), [after.holder]);
        assert!(stack.hand(QueueName::Group, vec![message("next", &messages[0])]).await.is_empty());
        // With room for two it hands over, which it could not before.
        assert_eq!((lock(&stack).await.holder.iter().count(), lock(&stack).await.in_flight.len()), (waits, 1));
        stack.drain().await;
        stack.assert_settled(&tasks, 3).await;
    }
}

/// One batch ends while there is no room beside the other one: there is no leader.
#[tokio::test(start_paused = true)]
async fn a_lane_without_room_is_not_led_on() {
    let (stack, tasks, messages) = two_in_flight().await;
    stack.put_policy(policy(json!({"max_batch": 3, "max_in_flight": 1}))).await;
    for (message, leads) in messages.into_iter().zip([false, true]) {
        assert!(stack.hand(QueueName::Handle, vec![message]).await.is_empty());
        assert_eq!(lock(&stack).await.holder.is_some(), leads);
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}
