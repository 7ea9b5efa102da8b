//! Leaders: elected once, overtaken, late, forged.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold::ids::TaskId;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::share::share;
use fanfold_tests::{QueueName, TestStack, delivery, order};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

#[tokio::test(start_paused = true)]
async fn tasks_of_one_target_share_batches() {
    let stack = TestStack::with(json!({})).await;
    let mut tasks = stack.register_orders("117", 0..25).await;
    tasks.extend(stack.register_orders("900", 0..3).await);
    stack.drain().await;
    let by_task = stack.assert_settled(&tasks, 10).await;
    let batches: BTreeSet<Uuid> = by_task.values().map(|batch| batch.id).collect();
    assert_eq!(batches.len(), 4, "25 tasks in 3 batches of up to 10, 3 tasks in one");
}

#[tokio::test(start_paused = true)]
async fn partitions_split_a_target() {
    let stack = TestStack::with(json!({"partitions": 4, "key": "content.order"})).await;
    let tasks = stack.register_orders("117", 0..60).await;
    stack.drain().await;
    let by_task = stack.assert_settled(&tasks, 10).await;
    let partition = |number: usize| share(&format!("ORD-{number}"), 4);
    let right = |(number, task): (usize, &TaskId)| by_task[task].lane.partition == partition(number);
    assert!(tasks.iter().enumerate().all(right), "a task is in the partition of its key");
    let lanes: BTreeSet<u32> = by_task.values().map(|batch| batch.lane.partition).collect();
    assert_eq!(lanes.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_where_one_is_allowed() {
    let stack = TestStack::with(json!({"max_in_flight": 1, "max_batch": 5})).await;
    let tasks = stack.register_orders("117", 0..40).await;
    let lane = "parcel:0:117".parse().unwrap();
    for _ in 0..10_000 {
        for queue in QueueName::STEPS {
            stack.deliver(queue).await;
            assert!(stack.locks.get(&lane).await.unwrap().in_flight.len() <= 1);
        }
        if stack.backlog().await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let by_task = stack.assert_settled(&tasks, 5).await;
    let batches: BTreeSet<Uuid> = by_task.values().map(|batch| batch.id).collect();
    assert_eq!(batches.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn many_leaders_compete_for_a_lane() {
    let stack = TestStack::with(json!({"max_batch": 7, "max_in_flight": 50})).await;
    let tasks = stack.register_orders("117", 0..200).await;
    stack.take(QueueName::Elect).await;
    // Every task has a workflow of its own, and all of them are delivered at once, each to a worker of its own.
    let all = stack.waiting(&tasks).await;
    let elections = tasks.iter().map(|task| {
        let message = ElectMessage::stored("parcel:0:117".parse().unwrap(), all.clone(), stack.world.uuid());
        let body = serde_json::to_string(&message).unwrap();
        stack.hand(QueueName::Elect, vec![delivery(task, body)])
    });
    assert!(join_all(elections).await.iter().all(Vec::is_empty));
    let lock = stack.locks.get(&"parcel:0:117".parse().unwrap()).await.unwrap();
    assert_eq!(lock.epoch, 1, "one was elected");
    // Once the linger is over, all leaders there are come forward.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let leaders = stack.take(QueueName::Group).await;
    let batch = |leader: &Delivery| serde_json::from_str::<GroupMessage>(&leader.body).unwrap().batch;
    assert_eq!(leaders.iter().map(batch).collect::<Vec<_>>(), [lock.holder.unwrap()]);
    assert!(stack.hand(QueueName::Group, leaders).await.is_empty());
    let batches = stack.all_batches().await;
    assert_eq!((batches.len(), batches[0].members.len(), stack.claimed(&tasks).await), (1, 7, 7));
    stack.drain().await;
    stack.assert_settled(&tasks, 7).await;
}

#[tokio::test(start_paused = true)]
async fn every_message_twice_and_in_any_order() {
    for seed in 0..10 {
        let stack = TestStack::with(json!({"max_batch": 4, "key": "content.order"})).await;
        let mut random = fastrand::Rng::with_seed(seed);
        let (_, ids) = stack.open(30, true).await;
        let requests: Vec<_> =
            ids.iter().enumerate().map(|(n, id)| order(Some(*id), ["117", "900", "331"][n % 3], n)).collect();
        for chunk in requests.chunks(7) {
            stack.send(QueueName::Register, json!({ "tasks": chunk })).await;
        }
        let mut late: Vec<(QueueName, Delivery)> = Vec::new();
        for round in 0..5_000 {
            let mut queues = QueueName::STEPS;
            random.shuffle(&mut queues);
            for queue in queues {
                let mut deliveries = stack.take(queue).await;
                late.extend(deliveries.iter().filter(|_| random.bool()).map(|delivery| (queue, delivery.clone())));
                random.shuffle(&mut deliveries);
                for delivery in deliveries {
                    let again = random.bool();
                    let failed = stack.hand(queue, vec![delivery.clone()]).await;
                    if again || !failed.is_empty() {
                        stack.hand(queue, vec![delivery]).await;
                    }
                }
            }
            // Copies that come much later, in the wrong order.
            if round % 20 == 19 {
                random.shuffle(&mut late);
                for (queue, delivery) in late.split_off(late.len() / 2) {
                    stack.hand(queue, vec![delivery]).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            if round > 200 && stack.backlog().await == 0 {
                break;
            }
        }
        stack.sweep().await;
        stack.drain().await;
        let tasks: Vec<TaskId> = ids.into_iter().map(TaskId::Item).collect();
        stack.assert_settled(&tasks, 4).await;
        let completions = stack.completions().await;
        assert_eq!(completions.len(), 1, "seed {seed}");
        assert_eq!((completions[0].succeeded, completions[0].failed), (30, 0), "seed {seed}");
    }
}

/// The plain algorithm's flaw: two workers act in one leader's name, one of them late.
#[tokio::test(start_paused = true)]
async fn a_leader_that_wakes_up_late_forms_nothing_twice() {
    let stack = TestStack::with(json!({"max_batch": 3})).await;
    let mut tasks = stack.register_orders("117", 0..8).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = stack.take(QueueName::Group).await;
    assert!(stack.hand(QueueName::Group, message.clone()).await.is_empty());
    tasks.extend(stack.register_orders("117", 8..12).await);
    stack.drain().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    for _ in 0..3 {
        assert!(stack.hand(QueueName::Group, message.clone()).await.is_empty());
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn two_workers_form_one_batch_at_once() {
    let stack = TestStack::with(json!({"max_batch": 3})).await;
    let tasks = stack.register_orders("117", 0..10).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = stack.take(QueueName::Group).await;
    let workers = (0..5).map(|_| stack.hand(QueueName::Group, message.clone()));
    assert!(join_all(workers).await.iter().all(Vec::is_empty));
    assert_eq!((stack.all_batches().await.len(), stack.claimed(&tasks).await), (1, 3));
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

/// A repeated election must not give the leader another epoch: its first message could then form the batch, but not
/// put it in flight, and a lost ack would be lost for good.
#[tokio::test(start_paused = true)]
async fn a_batch_is_known_to_its_lock_although_its_election_was_repeated() {
    let stack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(2, true).await;
    stack.register_items(&ids).await;
    let election = stack.take(QueueName::Elect).await;
    assert!(stack.hand(QueueName::Elect, election.clone()).await.is_empty());
    assert!(stack.hand(QueueName::Elect, election).await.is_empty());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut groups = stack.take(QueueName::Group).await;
    groups.sort_by_key(|delivery| serde_json::from_str::<GroupMessage>(&delivery.body).unwrap().epoch);
    assert_eq!(groups.len(), 2);
    let second = groups.split_off(1);
    assert!(stack.hand(QueueName::Group, groups).await.is_empty());
    stack.deliver(QueueName::Handle).await;
    assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "the ack is lost");
    assert!(stack.hand(QueueName::Group, second).await.is_empty());
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    assert_eq!(stack.completions().await.len(), 1, "the fan-out never completes");
}

#[tokio::test(start_paused = true)]
async fn forged_messages_change_nothing() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    let batch = Uuid::from_u128(9);
    let lane = || "parcel:0:117".parse().unwrap();
    let group = GroupMessage {
        lane: lane(),
        batch,
        epoch: 3,
        waiting: stack.waiting(&tasks).await,
        lingers: false,
        lingered_ms: 0,
        worker_waits: 0,
        hurries: false,
    };
    let bodies = [
        (QueueName::Handle, serde_json::to_string(&HandleMessage::first(batch, false)).unwrap(), 1),
        (QueueName::Elect, "{\"lane\":\"nonsense\"}".to_owned(), 1),
        (QueueName::Group, "[]".to_owned(), 1),
        // A leader that was never elected is refused, which ends its message.
        (QueueName::Group, serde_json::to_string(&group).unwrap(), 0),
    ];
    for (queue, body, failures) in bodies {
        let failed = stack.hand(queue, vec![delivery("m", body)]).await;
        assert_eq!(failed.len(), failures, "{queue:?}");
    }
    assert_eq!((stack.all_batches().await.len(), stack.claimed(&tasks).await), (0, 0));
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}
