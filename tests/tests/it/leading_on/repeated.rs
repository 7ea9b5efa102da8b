//! Messages that come twice, late, forged or not at all, and workers that die.

use super::*;

/// The worker dies after the write and before the message, or the message is lost.
#[tokio::test(start_paused = true)]
async fn a_repetition_that_finds_the_leader_sends_its_message_again() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let messages = handle(&stack).await;
    let lost: Vec<GroupMessage> = take(&stack, QueueName::Group).await;
    for _ in 0..2 {
        assert!(stack.hand(QueueName::Handle, messages.clone()).await.is_empty());
        assert_eq!(take::<GroupMessage>(&stack, QueueName::Group).await, lost);
    }
    assert_eq!(lock(&stack).await.holder, Some(derived::led_on(batch)));
    assert!(stack.hand(QueueName::Handle, messages).await.is_empty());
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_message_is_lost_is_found_by_a_sweep() {
    let (stack, tasks, _) = busy(json!({})).await;
    stack.take(QueueName::Elect).await;
    for _ in 0..4 {
        handle(&stack).await;
        stack.take(QueueName::Group).await;
        stack.sweep().await;
        stack.take(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
}

/// By then the batch that it led on to has ended, and another one has left tasks waiting: its id is not used again.
#[tokio::test(start_paused = true)]
async fn a_late_repetition_makes_no_leader() {
    let (stack, tasks, batch) = busy(json!({"max_batch": 2, "max_in_flight": 1})).await;
    let messages = handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    let waits = lock(&stack).await;
    assert!(waits.waiting && waits.holder.is_none() && waits.in_flight != [batch]);
    stack.take(QueueName::Elect).await;
    assert!(stack.hand(QueueName::Handle, messages.clone()).await.is_empty());
    assert_eq!(lock(&stack).await, waits);
    // Also if the lane has room by then: another one is elected.
    assert!(stack.locks.leave(&lane(), waits.in_flight[0], false).await.unwrap().is_done());
    stack.take(QueueName::Elect).await;
    assert!(stack.hand(QueueName::Handle, messages).await.is_empty());
    let woken: Vec<ElectMessage> = take(&stack, QueueName::Elect).await;
    assert!(woken.len() == 1 && woken[0].waiting.is_empty());
    assert_eq!((lock(&stack).await.holder, stack.take(QueueName::Group).await.len()), (None, 0));
    assert!(stack.hand(QueueName::Elect, vec![message("wake", &woken[0])]).await.is_empty());
    stack.drain().await;
    stack.assert_settled(&tasks, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_repeated_finds_its_leader() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let next = derived::led_on(batch);
    let lead_on = async || stack.locks.lead_on(&lane(), batch, false, next, 1).await.unwrap();
    let Write::Done(led) = lead_on().await else { panic!("refused") };
    assert_eq!(lead_on().await, Write::Refused(led.clone()));
    assert_eq!((led.holder, led.in_flight.len()), (Some(next), 0));
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
}

/// The whole way of a lane with one batch in flight, and tasks that come while it is: noted by the leader, or by an election.
async fn dies(moment: Moment) {
    let run = async |crash: Crash| {
        let changes = json!({"max_batch": 2, "max_in_flight": 1, "linger": 0});
        let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
        let register = async |numbers: std::ops::Range<usize>| {
            let order = |n| fanfold_tests::order(None, "117", n);
            let ids = numbers.clone().map(|n| TaskId::Single(Uuid::from_u128(n as u128 + 1)));
            let tasks = numbers.zip(ids.clone());
            let tasks = tasks.map(|(n, id)| fanfold::messages::TaskRequest { id: Some(id), ..order(n) }).collect();
            stack.register(tasks).await;
            ids.collect::<Vec<TaskId>>()
        };
        let mut tasks = register(0..2).await;
        stack.deliver(QueueName::Elect).await;
        stack.deliver(QueueName::Group).await;
        tasks.extend(register(2..5).await);
        stack.deliver(QueueName::Elect).await;
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        stack.assert_settled(&tasks, 2).await;
        stack.crash.struck()
    };
    let struck = at_every_request(moment, run).await;
    assert!(struck.len() > 40, "{struck:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_dies_before_a_request() {
    dies(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_dies_after_a_request() {
    dies(Moment::After).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_lost() {
    dies(Moment::AnswerLost).await;
}

#[tokio::test(start_paused = true)]
async fn forged_messages_make_no_leader() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let before = (lock(&stack).await, stack.all_batches().await);
    // Of a leader that the batch, which is still in flight, would lead on to.
    let epoch = before.0.epoch + 1;
    let next = GroupMessage { epoch, ..GroupMessage::elected(&before.0, derived::led_on(batch), Waiting::default()) };
    for forged in [next.clone(), next.lingering()] {
        assert!(stack.hand(QueueName::Group, vec![message("forged", &forged)]).await.is_empty());
    }
    let forged = HandleMessage::first(derived::led_on(batch), true);
    assert_eq!(stack.hand(QueueName::Handle, vec![message("forged", &forged)]).await, ["forged"]);
    assert_eq!((lock(&stack).await, stack.all_batches().await), before);
    stack.drain().await;
    // Of the last batch, after which nothing waits.
    let epoch = lock(&stack).await.epoch;
    for batch in stack.all_batches().await {
        stack.handle_message(HandleMessage::first(batch.id, true)).await;
    }
    stack.drain().await;
    assert_eq!(lock(&stack).await.epoch, epoch);
    stack.assert_settled(&tasks, 5).await;
}
