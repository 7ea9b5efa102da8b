//! Leading on: the end of a batch makes the lane's next batch the leader, if tasks wait for room in flight.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fanfold::aws::Write;
use fanfold::control::Scope;
use fanfold::delivery::Delivery;
use fanfold::ids::{TaskId, derived};
use fanfold::lane::Lane;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::store::locks::Lock;
use fanfold::waiting::Waiting;
use fanfold_batch_api::Answer;
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, message, policy};
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

fn lane() -> Lane {
    "parcel:0:117".parse().unwrap()
}

async fn lock(stack: &TestStack) -> Lock {
    stack.locks.get(&lane()).await.unwrap()
}

/// What is in a queue now.
async fn take<M: serde::de::DeserializeOwned>(stack: &TestStack, queue: QueueName) -> Vec<M> {
    let deliveries: Vec<Delivery> = stack.take(queue).await;
    deliveries.iter().map(|delivery| serde_json::from_str(&delivery.body).unwrap()).collect()
}

/// A lane that may have one batch in flight and has one, and more tasks. Returns them and the batch.
async fn busy(changes: Value) -> (TestStack, Vec<TaskId>, Uuid) {
    let stack = TestStack::with(json!({"max_batch": 5, "max_in_flight": 1})).await;
    if changes != json!({}) {
        stack.put_policy(policy(changes)).await;
    }
    let tasks = stack.register_orders("117", 0..12).await;
    stack.deliver(QueueName::Elect).await;
    stack.pass(&[QueueName::Group]).await;
    let lock = lock(&stack).await;
    assert_eq!((lock.in_flight.len(), lock.holder, lock.waiting), (1, None, true));
    (stack, tasks, lock.in_flight[0])
}

/// Delivers the messages of batches, and returns them.
async fn handle(stack: &TestStack) -> Vec<Delivery> {
    let messages = stack.take(QueueName::Handle).await;
    assert!(stack.hand(QueueName::Handle, messages.clone()).await.is_empty());
    messages
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_batch_makes_the_next_one_the_leader() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let before = lock(&stack).await.epoch;
    // What the first leader was told of, and left, has a workflow of its own.
    let left: Vec<ElectMessage> = take(&stack, QueueName::Elect).await;
    assert!(left.iter().all(|message| !message.waiting.is_empty()));
    handle(&stack).await;
    let lock = lock(&stack).await;
    assert_eq!((lock.holder, lock.epoch), (Some(derived::led_on(batch)), before + 1));
    assert!(!lock.waiting && lock.in_flight.is_empty());
    assert_eq!(stack.take(QueueName::Elect).await.len(), 0, "nobody has to be elected");
    let group: Vec<GroupMessage> = take(&stack, QueueName::Group).await;
    let message = GroupMessage::elected(&lock, derived::led_on(batch), Waiting::default()).lingering();
    assert_eq!(group, std::slice::from_ref(&message));
    stack.hand(QueueName::Group, vec![fanfold_tests::message("led on", &message)]).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    assert_eq!(stack.all_batches().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lane_works_through_its_tasks_without_elections() {
    let (stack, tasks, _) = busy(json!({"max_batch": 2, "max_in_flight": 1, "linger": 0})).await;
    stack.take(QueueName::Elect).await;
    let begun = stack.world.now();
    for _ in 0..6 {
        handle(&stack).await;
        stack.deliver(QueueName::Group).await;
    }
    assert_eq!((stack.world.now(), stack.take(QueueName::Elect).await.len()), (begun, 0));
    stack.assert_settled(&tasks, 2).await;
}

/// The worker dies after the write and before the message, or the message is lost.
#[tokio::test(start_paused = true)]
async fn a_repetition_that_finds_the_leader_sends_its_message_again() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let messages = handle(&stack).await;
    let lost: Vec<GroupMessage> = take(&stack, QueueName::Group).await;
    for _ in 0..2 {
        stack.hand(QueueName::Handle, messages.clone()).await;
        assert_eq!(take::<GroupMessage>(&stack, QueueName::Group).await, lost);
    }
    assert_eq!(lock(&stack).await.holder, Some(derived::led_on(batch)));
    stack.hand(QueueName::Handle, messages).await;
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
async fn a_repetition_that_comes_late_leads_nobody() {
    let (stack, tasks, batch) = busy(json!({"max_batch": 2, "max_in_flight": 1})).await;
    let messages = handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    let waits = lock(&stack).await;
    assert!(waits.waiting && waits.holder.is_none() && waits.in_flight != [batch]);
    stack.take(QueueName::Elect).await;
    stack.hand(QueueName::Handle, messages.clone()).await;
    assert_eq!(lock(&stack).await, waits);
    // Also if the lane has room by then: somebody else is elected.
    assert!(stack.locks.leave(&lane(), waits.in_flight[0], false).await.unwrap().is_done());
    stack.take(QueueName::Elect).await;
    stack.hand(QueueName::Handle, messages).await;
    let woken: Vec<ElectMessage> = take(&stack, QueueName::Elect).await;
    assert!(woken.len() == 1 && woken[0].waiting.is_empty());
    assert_eq!((lock(&stack).await.holder, stack.take(QueueName::Group).await.len()), (None, 0));
    stack.hand(QueueName::Elect, vec![message("wake", &woken[0])]).await;
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

/// The whole way of a lane with one batch in flight, and tasks that come while it is: told by the leader, or by an election.
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

/// Nobody knew that tasks would wait when the batch was dispatched: an election that found no room noted it.
#[tokio::test(start_paused = true)]
async fn tasks_that_came_while_the_batch_was_in_flight_are_led_on_to() {
    let stack = TestStack::with(json!({"max_in_flight": 1})).await;
    let mut tasks = stack.register_orders("117", 0..3).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = lock(&stack).await.in_flight[0];
    assert!(!lock(&stack).await.waiting);
    tasks.extend(stack.register_orders("117", 3..20).await);
    stack.deliver(QueueName::Elect).await;
    assert!(lock(&stack).await.waiting);
    handle(&stack).await;
    assert_eq!(lock(&stack).await.holder, Some(derived::led_on(batch)));
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

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

/// A kind that stands still calls nobody; what was led on to waits, and one batch per lane is in flight.
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

/// As after an election: a batch that is not full waits for more tasks.
#[tokio::test(start_paused = true)]
async fn who_is_led_on_lingers_unless_its_batch_is_full() {
    let (stack, mut tasks, _) = busy(json!({"max_batch": 7, "max_in_flight": 1, "linger": 600})).await;
    handle(&stack).await;
    let ended = stack.world.now();
    stack.deliver(QueueName::Group).await;
    assert_eq!((stack.all_batches().await.len(), lock(&stack).await.epoch), (1, 2), "five of seven wait");
    tasks.extend(stack.register_orders("117", 100..101).await);
    stack.drain().await;
    assert!(stack.world.now().since(ended) >= Duration::from_secs(600));
    let sizes = |stack: Vec<fanfold::store::batches::Batch>| {
        let mut sizes: Vec<usize> = stack.iter().map(|batch| batch.members.len()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(stack.all_batches().await), [6, 7]);
    stack.assert_settled(&tasks, 7).await;

    let (stack, mut tasks, _) = busy(json!({"max_batch": 7, "max_in_flight": 1, "linger": 600})).await;
    tasks.extend(stack.register_orders("117", 100..102).await);
    handle(&stack).await;
    stack.deliver(QueueName::Group).await;
    assert_eq!(sizes(stack.all_batches().await), [7, 7], "it was full when it was led on to");
    stack.drain().await;
    stack.assert_settled(&tasks, 7).await;
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
        stack.hand(QueueName::Group, vec![message("next", &messages[0])]).await;
        // With room for two it hands over, which it could not before.
        assert_eq!((lock(&stack).await.holder.iter().count(), lock(&stack).await.in_flight.len()), (waits, 1));
        stack.drain().await;
        stack.assert_settled(&tasks, 3).await;
    }
}

/// One batch ends while there is no room beside the other one: nobody leads.
#[tokio::test(start_paused = true)]
async fn a_lane_without_room_is_not_led_on() {
    let (stack, tasks, messages) = two_in_flight().await;
    stack.put_policy(policy(json!({"max_batch": 3, "max_in_flight": 1}))).await;
    for (message, leads) in messages.into_iter().zip([false, true]) {
        stack.hand(QueueName::Handle, vec![message]).await;
        assert_eq!(lock(&stack).await.holder.is_some(), leads);
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn forged_messages_lead_nobody_on() {
    let (stack, tasks, batch) = busy(json!({})).await;
    let before = (lock(&stack).await, stack.all_batches().await);
    // Of a leader that the batch, which is still in flight, would lead on to.
    let epoch = before.0.epoch + 1;
    let next = GroupMessage { epoch, ..GroupMessage::elected(&before.0, derived::led_on(batch), Waiting::default()) };
    for forged in [next.clone(), next.lingering()] {
        stack.hand(QueueName::Group, vec![message("forged", &forged)]).await;
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
